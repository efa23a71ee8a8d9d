"""A loop of its own for a test that is no coroutine, whatever loop the test run has in this thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio


def run_alone(function: Callable[..., Awaitable[Any]], *args: Any) -> Any:
    """As `anyio.run`. Playwright's loop counts as running in this thread, though it only waits to be called again."""
    other = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        return anyio.run(function, *args)
    finally:
        asyncio._set_running_loop(other)

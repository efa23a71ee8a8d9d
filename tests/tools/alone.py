"""A loop of its own for a test that is no coroutine, whatever loop the test run has in this thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import sniffio


def run_alone(function: Callable[..., Awaitable[Any]], *args: Any) -> Any:
    """As `anyio.run`, which refuses while another loop counts as running in this thread.

    Two that only wait to be called again do: the one of anyio's pytest runner, as long as a fixture of the session
    keeps it open (it says so to sniffio), and Playwright's (it says so to asyncio). Another thread is no way out:
    hypothesis draws in its own only.
    """
    other = asyncio._get_running_loop()
    library = sniffio.current_async_library_cvar.set(None)
    asyncio._set_running_loop(None)
    try:
        return anyio.run(function, *args)
    finally:
        asyncio._set_running_loop(other)
        sniffio.current_async_library_cvar.reset(library)

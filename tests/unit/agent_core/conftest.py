"""A workshop for tests of the engine: `shop`, and `tools` to add tools to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from agent_core import spawning
from agent_core.tool import Tool
from tests.unit.agent_core.workshop import Shop, open_shop

AddTools = Callable[..., None]


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    """Ends with the check that the script was followed."""
    async with open_shop(tmp_path) as opened:
        yield opened
        assert opened.model.problems == []


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> AddTools:
    """`tools(a, b)` gives agents that are launched from now on these tools beside the built-in ones."""
    real = spawning.builtin_tools

    def add(*more: Tool) -> None:
        def every(*args: Any, **options: Any) -> tuple[Tool, ...]:
            return (*real(*args, **options), *more)

        monkeypatch.setattr(spawning, "builtin_tools", every)

    return add

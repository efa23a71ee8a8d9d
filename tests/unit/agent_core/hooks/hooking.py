"""Hooks as people write them: settings of a folder, small scripts, and what they were told.

write(shop, PreToolUse=[on("Bash", answers({"hookSpecificOutput": {...}}))])
told(shop, "PreToolUse")                                     # the JSON that each call of `listens` got
"""

from __future__ import annotations

import json
import shlex
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent_core.events import AgentInfo, HookRan
from tests.unit.agent_core.workshop import Shop, open_shop


@pytest.fixture
async def trusted(tmp_path: Path) -> AsyncIterator[Shop]:
    """A folder whose settings count."""
    async with open_shop(tmp_path, trusted=True) as opened:
        yield opened
        assert opened.model.problems == []


def write(shop: Shop, permissions: Any = None, file: str = "settings.json", **events: list[Any]) -> None:
    path = shop.folder / ".claude" / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"hooks": events, "permissions": permissions or {}}))


def on(matcher: str, *handlers: dict[str, Any]) -> dict[str, Any]:
    return {"matcher": matcher, "hooks": list(handlers)}


def command(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": text, **more}


def answers(value: Any, **more: Any) -> dict[str, Any]:
    return command(f"cat > /dev/null; printf %s {shlex.quote(json.dumps(value))}", **more)


def decides(event: str, **output: Any) -> dict[str, Any]:
    return answers({"hookSpecificOutput": {"hookEventName": event, **output}})


def pre(decision: str | None = None, **more: Any) -> dict[str, Any]:
    given = {"permissionDecision": decision, "permissionDecisionReason": "so it is"} if decision else {}
    return on("*", decides("PreToolUse", **given, **more))


def listens(name: str) -> dict[str, Any]:
    """Keeps what it was told, one JSON a line."""
    return command(f'cat >> "$CLAUDE_PROJECT_DIR"/{name}.told; echo >> "$CLAUDE_PROJECT_DIR"/{name}.told')


def told(shop: Shop, name: str) -> list[Any]:
    path = shop.folder / f"{name}.told"
    return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []


def ran(shop: Shop, info: AgentInfo) -> list[tuple[str, str, str | None]]:
    return [(body.hook_event, body.outcome, body.message) for body in shop.of(info, HookRan)]

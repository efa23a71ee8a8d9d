"""Hooks as a person sets them up: a settings file, small programs, a service, an agent file; seen from the editor."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from lsp_server.demo.script import conversation, say, use
from tests.e2e.desk import Desk, until

pytestmark = pytest.mark.anyio

LOG = """#!/bin/sh
# one file for each event, one JSON a line
given=$(cat); event=$(printf %s "$given" | sed 's/.*"hook_event_name": "\\([A-Za-z]*\\)".*/\\1/')
printf '%s\\n' "$given" >> "$CLAUDE_PROJECT_DIR/heard.$event"
"""
MAKE = use("Bash", command="sh -c 'echo made > made'")
RULES = {"allow": ["Bash(sh -c 'echo made > made')"]}
EVERY = ("PreToolUse", "PostToolUse", "SubagentStart", "SubagentStop", "UserPromptSubmit")


def set_up(desk: Desk, extra: dict[str, list[Any]] | None = None, hooks: tuple[str, ...] = EVERY) -> None:
    script = desk.repo.path / ".claude" / "log.sh"
    script.parent.mkdir(exist_ok=True)
    script.write_text(LOG)
    script.chmod(0o755)
    log = {"type": "command", "command": '"$CLAUDE_PROJECT_DIR"/.claude/log.sh'}
    events: dict[str, Any] = {name: [{"hooks": [log]}] for name in hooks}
    for name, handlers in (extra or {}).items():
        events.setdefault(name, []).append({"hooks": handlers})
    (script.parent / "settings.json").write_text(json.dumps({"hooks": events, "permissions": RULES}))


def heard(desk: Desk, event: str) -> list[Any]:
    path = desk.repo.path / f"heard.{event}"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def outcomes(desk: Desk, agent: Any) -> list[tuple[str, str]]:
    return [(each["hookEvent"], each["outcome"]) for each in desk.events(agent, "hook")]


@pytest.mark.spec("HK-1", "HK-2", "CTX-6")
async def test_a_session_with_hooks_in_settings_and_in_an_agent_file(desk: Desk):
    set_up(desk)
    agents = desk.repo.path / ".claude" / "agents"
    agents.mkdir()
    own = {"PreToolUse": [{"hooks": [{"type": "command", "command": "cat >> own; echo >> own"}]}]}
    (agents / "careful.md").write_text(f"---\nname: careful\ndescription: d\nhooks: {json.dumps(own)}\n---\nWork.")
    job = use("Agent", description="make it", prompt="child makes", subagent_type="careful", run_in_background=False)
    desk.script(
        conversation(say(MAKE), say("made"), first_user="child makes", name="child"),
        conversation(say(job), say(MAKE), say("done"), first_user="go", name="root"),
    )
    info = await desk.run()
    assert info["result"] == "done"
    [child] = await children(desk, info)
    both = {(each["agent_id"], each["agent_type"]) for each in heard(desk, "SubagentStart")}
    assert both == {(info["id"], "general-purpose"), (child["id"], "careful")}
    calls = [(each["agent_id"], each["tool_name"]) for each in heard(desk, "PreToolUse")]
    assert calls == [(info["id"], "Agent"), (child["id"], "Bash"), (info["id"], "Bash")]
    assert [each["tool_response"]["is_error"] for each in heard(desk, "PostToolUse")] == [False] * 3
    assert [each["prompt"] for each in heard(desk, "UserPromptSubmit")] == ["go"]
    assert [each["last_assistant_message"] for each in heard(desk, "SubagentStop")] == ["made", "done"]
    lines = [json.loads(line) for line in (desk.repo.path / "own").read_text().splitlines()]
    assert [each["agent_id"] for each in lines] == [child["id"]], "as long as that agent, and for it alone"
    kept = [
        json.loads(line) for line in Path(heard(desk, "SubagentStop")[1]["transcript_path"]).read_text().splitlines()
    ]
    assert len(kept) > 5


async def children(desk: Desk, info: Any) -> list[Any]:
    agents = (await desk.client.request("agent/list", {}))["agents"]
    return [each for each in agents if each.get("parentId") == info["id"]]


@pytest.mark.spec("HK-4", "HK-3")
async def test_hooks_that_hang_crash_and_babble_are_told_and_hold_up_nobody(desk: Desk):
    bad = [
        {"type": "command", "command": "sleep 60", "timeout": 0.3},
        {"type": "command", "command": "kill -9 $$"},
        {"type": "command", "command": "echo '{no json'"},
        {"type": "http", "url": "http://127.0.0.1:9/closed"},
        {"type": "mcp_tool", "server": "none", "tool": "x"},
    ]
    set_up(desk, {"PreToolUse": bad})
    desk.says(say(MAKE), say("done"))
    info = await desk.run()
    assert (info["status"], (desk.repo.path / "made").read_text()) == ("completed", "made\n")
    found = [outcome for event, outcome in outcomes(desk, info) if event == "PreToolUse"]
    assert found == ["ok", "timeout", "error", "error", "error", "error"]


@asynccontextmanager
async def service(answer: Any, seen: list[Any]) -> AsyncIterator[str]:
    async def handle(request: web.Request) -> web.Response:
        seen.append(await request.json())
        return web.json_response(answer)

    app = web.Application()
    app.router.add_post("/hook", handle)
    running = web.AppRunner(app)
    await running.setup()
    await web.TCPSite(running, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{running.addresses[0][1]}/hook"
    finally:
        await running.cleanup()


@pytest.mark.spec("HK-3", "CTX-3")
async def test_b10_a_service_decides_in_place_of_a_person_but_not_over_a_rule(desk: Desk):
    seen: list[Any] = []
    decision = {"behavior": "allow", "message": "the service says so"}
    allow = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}
    async with service(allow, seen) as url:
        set_up(desk, {"PermissionRequest": [{"type": "http", "url": url}]})
        rules = json.loads((desk.repo.path / ".claude" / "settings.json").read_text())
        rules["permissions"] = {"deny": ["Bash(touch *)"]}
        (desk.repo.path / ".claude" / "settings.json").write_text(json.dumps(rules))
        desk.client.forbid("agent/permission")
        desk.says(say(MAKE), say(use("Bash", command="touch no")), say("done"))
        info = await desk.run()
    assert [each["tool_input"] for each in seen] == [dict(MAKE.input)]
    assert ((desk.repo.path / "made").exists(), (desk.repo.path / "no").exists()) == (True, False)
    [settled] = desk.events(info, "permissionResolved")
    assert (settled["outcome"], settled["decidedBy"]) == ("allowOnce", "hook")


@pytest.mark.spec("HK-1")
async def test_a_folder_that_is_not_trusted_runs_no_hook_until_it_is(strangers_desk: Desk):
    desk = strangers_desk
    set_up(desk)
    desk.says(say("done"))
    await desk.run()
    assert list(desk.repo.path.glob("heard.*")) == []
    await desk.client.request("agent/trust", {"uri": desk.repo.path.as_uri(), "trusted": True})
    desk.says(say("done"))
    info = await desk.run()
    await until(lambda: heard(desk, "SubagentStop"))
    assert ("SubagentStart", "ok") in outcomes(desk, info)
    await desk.client.request("agent/trust", {"uri": desk.repo.path.as_uri(), "trusted": False})

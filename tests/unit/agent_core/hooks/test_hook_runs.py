"""What hooks add and hold up around a run, and that none of them hangs one: real programs, real HTTP, the real loop."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web

from agent_core.events import Compacted, HookRan
from agent_core.task import TaskStatus
from lsp_server.demo.script import conversation, say, use
from tests.unit.agent_core.hooks.hooking import answers, command, decides, listens, on, ran, told, write
from tests.unit.agent_core.test_background import child, child_of, job, root
from tests.unit.agent_core.workshop import Shop, open_shop

pytestmark = pytest.mark.anyio
TOUCH = use("Bash", command="sh -c 'touch made'")


@pytest.fixture
async def trusted(tmp_path: Path) -> AsyncIterator[Shop]:
    async with open_shop(tmp_path, trusted=True) as shop:
        yield shop


@pytest.mark.spec("CTX-6", "HK-1")
async def test_what_a_hook_says_at_the_start_of_an_agent_is_in_its_first_message(trusted: Shop) -> None:
    write(
        trusted,
        SubagentStart=[
            on("Explore", decides("SubagentStart", additionalContext="no")),
            on("general-purpose", listens("start"), decides("SubagentStart", additionalContext="Speak French.")),
        ],
    )
    trusted.script(child("x", say("oui")), root(say(job("x")), say("done")))
    info = await trusted.run()
    made = await child_of(trusted, info)
    first = trusted.asked(0, "x")["messages"][0]["content"]
    assert first[-1]["text"] == "Added by a SubagentStart hook:\nSpeak French."
    assert [each["agent_id"] for each in told(trusted, "start")] == [info.id, made.id]
    assert ran(trusted, made)[0][:2] == ("SubagentStart", "ok")


@pytest.mark.spec("HK-3", "HK-1")
async def test_h5_a_stop_hook_that_blocks_gives_the_agent_one_more_turn(trusted: Shop) -> None:
    again = 'cat > seen; if grep -q \'"stop_hook_active": false\' seen; then echo "run the tests" >&2; exit 2; fi'
    write(trusted, SubagentStop=[on("", command(again), listens("stop"))])
    trusted.says(say("I am done."), say("They pass."))
    info = await trusted.run()
    assert (info.status, info.result, info.usage.turns) == (TaskStatus.COMPLETED, "They pass.", 2)
    assert trusted.told(1) == ["A SubagentStop hook says that you are not done:\nrun the tests"]
    stops = told(trusted, "stop")
    assert [each["stop_hook_active"] for each in stops] == [False, True]
    assert [each["last_assistant_message"] for each in stops] == ["I am done.", "They pass."]


@pytest.mark.spec("HK-3")
async def test_h5_a_hook_that_always_blocks_is_outlived(trusted: Shop) -> None:
    write(trusted, SubagentStop=[on("", command("echo never >&2; exit 2"))])
    trusted.script(conversation(say("Done."), repeat_last=True))
    info = await trusted.run()
    assert (info.status, info.usage.turns) == (TaskStatus.COMPLETED, 9)
    assert "8 times in a row" in (trusted.of(info, HookRan)[-1].message or "")


@pytest.mark.spec("HK-2")
async def test_the_hooks_of_an_agent_file_live_as_long_as_that_agent(trusted: Shop) -> None:
    folder = trusted.folder / ".claude" / "agents"
    folder.mkdir(parents=True)
    said = json.dumps({"decision": "block", "reason": "say more"})
    hooks = {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}],
        "Stop": [{"hooks": [{"type": "command", "command": f"[ -e once ] || echo '{said}'; touch once"}]}],
    }
    text = f"---\nname: guarded\ndescription: d\nhooks: {json.dumps(hooks)}\n---\nWork."
    (folder / "guarded.md").write_text(text)
    trusted.says(say(TOUCH), say("short"), say("longer"))
    info = await trusted.run(agent_type="guarded")
    assert info.result == "longer" and "A PreToolUse hook refused this call: no." in trusted.results(1)[0][2]
    write(trusted, {"allow": ["Bash(sh -c 'touch made')"]})
    trusted.says(say(TOUCH), say("done"))
    other = await trusted.run()
    assert (trusted.folder / "made").exists() and trusted.of(other, HookRan) == []


@pytest.mark.spec("HK-2", "HK-1")
async def test_an_untrusted_folder_runs_no_hook(tmp_path: Path) -> None:
    async with open_shop(tmp_path, trusted=False) as shop:
        write(shop, SubagentStart=[on("", listens("start"))], SubagentStop=[on("", listens("stop"))])
        shop.says(say("done"))
        info = await shop.run()
        assert (shop.of(info, HookRan), told(shop, "start"), told(shop, "stop")) == ([], [], [])


@pytest.mark.spec("HK-4")
@pytest.mark.parametrize(
    ("hook", "outcome", "words"),
    [
        (command("sleep 60", timeout=0.3), "timeout", "it did not end within 0.3 s"),
        (command("kill -9 $$"), "error", "it was ended by signal 9"),
        (command("exit 3"), "error", "it ended with exit code 3"),
        (command("echo '{broken'"), "error", "is no JSON"),
        (answers({"hookSpecificOutput": "x"}), "error", "must be an object"),
        (command("/nonexistent/x", args=[]), "error", "could not be started"),
        ({"type": "http", "url": "http://127.0.0.1:9/x"}, "error", "http://127.0.0.1:9/x could not be asked"),
        ({"type": "mcp_tool", "server": "s", "tool": "t"}, "error", "no MCP server is connected"),
    ],
)
async def test_a_hook_that_fails_is_told_of_and_hangs_nobody(
    trusted: Shop, hook: dict[str, Any], outcome: str, words: str
) -> None:
    write(trusted, {"allow": ["Bash(sh -c 'touch made')"]}, PreToolUse=[on("Bash", hook)])
    trusted.says(say(TOUCH), say("done"))
    info = await trusted.run()
    [[event, found, message]] = ran(trusted, info)
    assert (event, found) == ("PreToolUse", outcome) and words in (message or "")
    assert (trusted.folder / "made").exists(), "it decides nothing"
    trusted.check(info)


@pytest.mark.spec("HK-4")
async def test_a_stop_ends_a_hook_that_hangs_with_all_it_has_started(trusted: Shop) -> None:
    write(trusted, PreToolUse=[on("Bash", command("echo $$ > pid; sleep 300"))])
    trusted.says(say(TOUCH), say("done"))
    info = await trusted.spawn()
    with anyio.fail_after(10):
        while not (trusted.folder / "pid").exists() or not (trusted.folder / "pid").read_text().strip():
            await anyio.sleep(0.02)
    await trusted.stopped(info, within=8.0)
    pid = int((trusted.folder / "pid").read_text())
    assert not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes()


@asynccontextmanager
async def service(reply: Any, seen: list[Any]) -> AsyncIterator[str]:
    async def handle(request: web.Request) -> web.Response:
        seen.append((await request.json(), dict(request.headers)))
        return web.json_response(reply)

    app = web.Application()
    app.router.add_post("/hook", handle)
    running = web.AppRunner(app)
    await running.setup()
    site = web.TCPSite(running, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{running.addresses[0][1]}/hook"
    finally:
        await running.cleanup()


@pytest.mark.spec("HK-3", "HK-1")
async def test_a_service_decides_as_a_program_does(tmp_path: Path) -> None:
    seen: list[Any] = []
    denied = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}
    env = {"TEAM": "blue", "HIDDEN": "x"}
    async with open_shop(tmp_path, trusted=True, env=env) as shop, service(denied, seen) as url:
        headers = {"X-Team": "$TEAM", "X-Hidden": "[${HIDDEN}]"}
        hook = {"type": "http", "url": url, "headers": headers, "allowedEnvVars": ["TEAM"]}
        write(shop, PreToolUse=[on("Bash", hook)])
        shop.says(say(TOUCH), say("done"))
        info = await shop.run()
        [(payload, sent)] = seen
        assert (payload["tool_name"], payload["agent_id"]) == ("Bash", info.id)
        assert (sent["X-Team"], sent["X-Hidden"]) == ("blue", "[]")
        assert shop.results(1)[0][2].startswith("A PreToolUse hook refused this call")


@pytest.mark.spec("HK-3")
@pytest.mark.parametrize("kind", ["prompt", "agent"])
async def test_a_model_judges_by_what_the_person_says(trusted: Shop, kind: str) -> None:
    hook = {"type": kind, "prompt": "Only reading is allowed. $ARGUMENTS"}
    write(trusted, PreToolUse=[on("Bash", hook)])
    verdict = json.dumps({"ok": False, "reason": "it writes"})
    looks = [say(use("Glob", pattern="*"))] if kind == "agent" else []
    trusted.script(
        conversation(*looks, say(verdict), first_user="Only reading is allowed.", name="judge"),
        conversation(say(TOUCH), say("done"), first_user="go", name="worker"),
    )
    info = await trusted.run()
    assert "A PreToolUse hook refused this call: it writes." in trusted.results(1, "worker")[0][2]
    assert not (trusted.folder / "made").exists() and info.status is TaskStatus.COMPLETED


@pytest.mark.spec("HK-3")
async def test_a_prompt_that_a_hook_refuses_is_not_worked_on(trusted: Shop) -> None:
    write(trusted, UserPromptSubmit=[on("", command('grep -q secret && { echo "no secrets" >&2; exit 2; }; exit 0'))])
    trusted.says(say("done"))
    info = await trusted.run("the secret")
    assert info.status is TaskStatus.FAILED and "no secrets" in (info.error or "")
    assert trusted.model.requests() == []
    assert (await trusted.run("the plan")).result == "done"


@pytest.mark.spec("HK-3")
async def test_a_hook_can_keep_everything_in_the_context(tmp_path: Path) -> None:
    env = {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "5"}
    async with open_shop(tmp_path, trusted=True, env=env) as shop:
        (shop.folder / "a.txt").write_text(("words " * 32 + "\n") * 50)
        write(shop, PreCompact=[on("auto", command("exit 2"))])
        looks = [say(use("Read", file_path="a.txt")) for _ in range(5)]
        shop.says(*looks, say("done"))
        info = await shop.run()
        assert (info.result, shop.of(info, Compacted)) == ("done", [])
        assert ("PreCompact", "block") in {each[:2] for each in ran(shop, info)}


@pytest.mark.spec("HK-1")
async def test_the_same_handler_of_two_files_runs_once_and_all_run_side_by_side(trusted: Shop) -> None:
    slow = [command("sleep 0.7"), command("sleep 0.8"), listens("start")]
    write(trusted, SubagentStart=[on("", *slow)])
    write(trusted, None, "settings.local.json", SubagentStart=[on("*", *slow)])
    trusted.says(say("done"))
    with anyio.fail_after(5):
        info = await trusted.run()
    assert len(told(trusted, "start")) == 1 and len(ran(trusted, info)) == 3
    assert info.usage.duration_ms < 1_400

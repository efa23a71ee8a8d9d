"""Sessions, main threads, notifications, `once`, `if`, `async`, and what a hook stores for later."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core.permissions import gate
from agent_core.permissions.types import PermissionAnswer
from agent_core.runtime import SpawnRequest
from agent_core.task import TaskStatus
from lsp_server.demo.script import conversation, say, use
from tests.unit.agent_core.hooks.hooking import answers, command, decides, listens, on, ran, told, write
from tests.unit.agent_core.test_background import child, child_of, job, root
from tests.unit.agent_core.workshop import SECONDS, Person, Shop, open_shop

pytestmark = pytest.mark.anyio

TOUCH = use("Bash", command="sh -c 'touch made'")
OTHER = use("Bash", command="sh -c 'touch other'")
FREE = {"allow": ["Bash(sh -c 'touch made')", "Bash(sh -c 'touch other')"]}


@pytest.fixture
async def trusted(tmp_path: Path) -> AsyncIterator[Shop]:
    async with open_shop(tmp_path, trusted=True) as shop:
        yield shop


async def heard(shop: Shop, name: str, count: int) -> list[Any]:
    """What hooks that nobody waits for were told, once it is so much."""
    with anyio.fail_after(SECONDS):
        while len(found := told(shop, name)) < count:
            await anyio.sleep(0.01)
    return found


def agent_file(shop: Shop, name: str, **hooks: Any) -> None:
    folder = shop.folder / ".claude" / "agents"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(f"---\nname: {name}\ndescription: d\nhooks: {json.dumps(hooks)}\n---\nWork.")


@pytest.mark.spec("HK-1")
async def test_sessions_begin_and_end_once(tmp_path: Path) -> None:
    said = decides("SessionStart", additionalContext="Tests are run with make.")
    async with open_shop(tmp_path, trusted=True) as shop:
        events = {"SessionStart": [on("startup", listens("start"), said)], "SessionEnd": [on("", listens("end"))]}
        write(shop, **events)
        shop.script(child("x", say("oui")), root(say(job("x", run_in_background=False)), say("done")))
        await shop.run()
        await shop.run()
        [start] = told(shop, "start")
        assert (start["source"], start["hook_event_name"]) == ("startup", "SessionStart")
        first = shop.asked(0, "root")["messages"][0]["content"]
        assert first[-1]["text"] == "Added by a SessionStart hook:\nTests are run with make."
        assert "make" not in json.dumps(shop.asked(0, "x")["messages"])
    [end] = told(shop, "end")
    assert (end["reason"], end["session_id"]) == ("other", start["session_id"])


@pytest.mark.spec("HK-4")
async def test_sessions_that_end_share_a_second_and_a_half(tmp_path: Path) -> None:
    async with open_shop(tmp_path, trusted=True) as shop:
        write(shop, SessionEnd=[on("", command("sleep 20"), command("sleep 21"))])
        shop.says(say("done"))
        await shop.run()
        began = anyio.current_time()
    assert anyio.current_time() - began < 8


@pytest.mark.spec("HK-1", "HK-2")
@pytest.mark.parametrize("named", [False, True])
async def test_the_main_thread_is_nobodys_sub_agent_whatever_it_is_called(tmp_path: Path, named: bool) -> None:
    async with open_shop(tmp_path, trusted=True, settings={"agent": "lead"} if named else {}) as shop:
        agent_file(shop, "lead", Stop=[{"hooks": [listens("own")]}])
        write(shop, **{name: [on("", listens(name))] for name in ("Stop", "SubagentStop", "SubagentStart")})
        shop.says(say("done"))
        info = await shop.runtime.run_main(SpawnRequest("go", shop.folder))
        await shop.ended(info)
        [stop] = told(shop, "Stop")
        assert "agent_id" not in stop and stop["last_assistant_message"] == "done"
        assert (told(shop, "SubagentStop"), told(shop, "SubagentStart")) == ([], [])
        assert [each["hook_event_name"] for each in told(shop, "own")] == (["Stop"] if named else [])


@pytest.mark.spec("HK-1")
async def test_people_are_notified_of_asks_that_stay_open(trusted: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "NOTIFY_SECONDS", 0.2)
    write(trusted, Notification=[on("permission_prompt", listens("asks")), on("idle_prompt", listens("never"))])
    person = Person()
    trusted.runtime.attach(person)
    trusted.says(say(TOUCH), say("done"))
    info = await trusted.spawn()
    [note] = await heard(trusted, "asks", 1)
    assert (note["notification_type"], note["agent_id"]) == ("permission_prompt", info.id)
    assert note["message"] == "general-purpose asks: Bash sh -c 'touch made'"
    assert told(trusted, "never") == []


@pytest.mark.spec("HK-1")
async def test_an_ask_that_is_answered_soon_notifies_nobody(trusted: Shop) -> None:
    write(trusted, Notification=[on("", listens("asks"))])
    trusted.runtime.attach(Person([PermissionAnswer("allowOnce")]))
    trusted.says(say(TOUCH), say("done"))
    await trusted.run()
    assert told(trusted, "asks") == []


@pytest.mark.spec("HK-1")
async def test_if_once_and_async(trusted: Shop) -> None:
    only = listens("only") | {"if": "Bash(sh -c 'touch other')"}
    once = command("touch once.ran; cat >> once.told; echo >> once.told", once=True)
    aside = command("cat >> aside.told; echo >> aside.told; sleep 30", **{"async": True})
    write(trusted, FREE, PreToolUse=[on("Bash", only, once, aside)])
    trusted.says(say(TOUCH), say(OTHER), say("done"))
    with anyio.fail_after(15):
        info = await trusted.run()
    assert info.status is TaskStatus.COMPLETED
    assert [each["tool_input"] for each in told(trusted, "only")] == [dict(OTHER.input)]
    assert len(told(trusted, "once")) == 1
    assert len(await heard(trusted, "aside", 2)) == 2


@pytest.mark.spec("HK-3")
async def test_a_run_that_a_hook_ends_says_so_to_whoever_launched_it(trusted: Shop) -> None:
    """And what only asks for an end that comes anyway does not make it a stop."""
    agent_file(trusted, "guarded", PreToolUse=[on("Bash", answers({"continue": False, "stopReason": "no budget"}))])
    agent_file(trusted, "quick", Stop=[{"hooks": [answers({"continue": False})]}])
    jobs = [
        use("Agent", description=name, prompt=f"child {name}", subagent_type=kind, run_in_background=behind)
        for name, kind, behind in (("waited", "guarded", False), ("behind", "guarded", True), ("quick", "quick", False))
    ]
    trusted.script(
        child("waited", say("I begin", TOUCH)),
        child("behind", say(TOUCH)),
        child("quick", say("all done")),
        conversation(say(*jobs), say("ok"), first_user="go", name="root", repeat_last=True),
    )
    top = await trusted.run()
    waited, behind, quick = [await child_of(trusted, top, name) for name in ("waited", "behind", "quick")]
    behind = await trusted.ended(behind)
    why = "a hook ended the run: no budget"
    assert [(each.status, each.error) for each in (waited, behind)] == [(TaskStatus.STOPPED, why)] * 2
    assert (quick.status, quick.result) == (TaskStatus.COMPLETED, "all done")
    texts = [text for _, _, text in trusted.results(1, "root")]
    assert texts[0].startswith(f"This agent did not finish: {why}\n\nWhat it had said last:\nI begin")
    await trusted.send(top, "and?")
    told_of = [
        text for number in range(1, len(trusted.model.requests("root"))) for text in trusted.told(number, "root")
    ]
    assert any(f'<summary>Agent "behind" did not finish: {why}</summary>' in text for text in told_of)


@pytest.mark.spec("HK-3", "PM-5")
@pytest.mark.parametrize(
    ("destination", "file"),
    [("session", None), ("localSettings", ".claude/settings.local.json"), ("userSettings", "home")],
)
async def test_rules_that_a_hook_adds_hold_for_later_calls(
    trusted: Shop, tmp_path: Path, destination: str, file: str | None
) -> None:
    rule = {"toolName": "Bash", "ruleContent": "sh -c 'touch made'"}
    update = {"type": "addRules", "rules": [rule], "behavior": "allow", "destination": destination}
    others = [{"type": "setMode", "mode": "bypassPermissions", "destination": "session"}, {"type": "addRules"}]
    decision = {"behavior": "allow", "updatedPermissions": [update, *others]}
    write(trusted, PermissionRequest=[on("Bash", decides("PermissionRequest", decision=decision))])
    trusted.says(say(TOUCH), say(TOUCH), say(OTHER), say("done"))
    info = await trusted.run()
    asks = [each for each in ran(trusted, info) if each[0] == "PermissionRequest"]
    note = "updatedPermissions 1, 2 not stored: only addRules with allow or deny are"
    assert asks == [("PermissionRequest", "allow", note)] * 2, "for made once, and for the other one"
    path = tmp_path / "home" / ".claude" / "settings.json" if file == "home" else trusted.folder / (file or "none")
    stored = json.loads(path.read_text())["permissions"]["allow"] if file else None
    assert stored == (["Bash(sh -c 'touch made')"] if file else None)
    assert info.permission_mode.value != "bypassPermissions"

"""Events at the edges of the work: tasks, failures, compaction, sessions, ends that nobody waits for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core.task import TaskStatus
from lsp_server.demo.script import Fault, conversation, say, use
from tests.unit.agent_core.hooks.hooking import command, listens, on, ran, told, write
from tests.unit.agent_core.test_background import child, child_of, job, root
from tests.unit.agent_core.workshop import Shop, open_shop

pytestmark = pytest.mark.anyio
TOUCH = use("Bash", command="touch made")
ALLOW = {"allow": ["Bash(touch made)"]}


@pytest.fixture
async def trusted(tmp_path: Path) -> AsyncIterator[Shop]:
    async with open_shop(tmp_path, trusted=True) as shop:
        yield shop


async def heard(shop: Shop, name: str, count: int = 1) -> list[Any]:
    """What hooks that nobody waits for were told, once there are that many; they tell only the file system."""
    with anyio.fail_after(15):
        while len(found := told(shop, name)) < count:
            await anyio.sleep(0.02)
    return found


@pytest.mark.spec("HK-1")
@pytest.mark.parametrize(("event", "input"), [("TaskCreated", {}), ("TaskCompleted", {"status": "completed"})])
async def test_a_hook_refuses_a_task(trusted: Shop, event: str, input: dict[str, Any]) -> None:
    write(trusted, **{event: [on("", listens("task"), command("echo 'tests first' >&2; exit 2"))]})
    calls = [use("TaskCreate", subject="ship", description="all of it")]
    if input:
        calls.append(use("TaskUpdate", task_id="1", **input))
    trusted.says(*(say(call) for call in calls), say(use("TaskList")), say("done"))
    info = await trusted.run()
    _, failed, text = trusted.results(len(calls))[0]
    assert failed and text == f"A {event} hook refused this: tests first"
    [[payload]] = [told(trusted, "task")]
    wanted = {"task_id": "1", "task_subject": "ship", "task_description": "all of it"}
    assert {name: payload[name] for name in wanted} == wanted
    listed = trusted.results(len(calls) + 1)[0][2]
    assert listed == "There are no tasks." if event == "TaskCreated" else "completed" not in listed
    trusted.check(info)


@pytest.mark.spec("HK-1")
async def test_a_run_that_fails_is_told(trusted: Shop) -> None:
    write(trusted, StopFailure=[on("", listens("failure"))])
    trusted.says(say("never", fault=Fault("status", status=401, type="authentication_error")))
    info = await trusted.run()
    assert info.status is TaskStatus.FAILED
    [payload] = await heard(trusted, "failure")
    assert payload["error_details"] == info.error and payload["agent_id"] == info.id


@pytest.mark.spec("HK-1")
async def test_room_that_was_made_is_told(tmp_path: Path) -> None:
    async with open_shop(tmp_path, trusted=True, env={"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "5"}) as shop:
        (shop.folder / "a.txt").write_text(("words " * 32 + "\n") * 50)
        write(shop, PostCompact=[on("auto", listens("post")), on("manual", listens("never"))])
        shop.says(*[say(use("Read", file_path="a.txt")) for _ in range(5)], say("done"))
        await shop.run()
        assert (await heard(shop, "post"))[0]["trigger"] == "auto" and told(shop, "never") == []


@pytest.mark.spec("HK-1")
async def test_the_end_of_an_agent_that_nobody_waits_for_notifies(trusted: Shop) -> None:
    write(trusted, Notification=[on("agent_completed", listens("end"))])
    turns = (say(job("x", run_in_background=True)), say("waiting"), say("over"))
    trusted.script(child("x", say("found")), root(*turns))
    info = await trusted.run()
    made = await child_of(trusted, info)
    payloads = await heard(trusted, "end", 2)
    assert {made.id, info.id} <= {each["agent_id"] for each in payloads}
    assert all(each["notification_type"] == "agent_completed" and "is done" in each["message"] for each in payloads)


@pytest.mark.spec("HK-4")
async def test_an_async_hook_that_fails_is_told_of(trusted: Shop) -> None:
    write(
        trusted,
        {"allow": ["Bash(touch made)", "Bash(sleep 1)"]},
        PreToolUse=[on("Bash", command("exit 3", **{"async": True}, **{"if": "Bash(touch made)"}))],
    )
    trusted.says(say(TOUCH), say(use("Bash", command="sleep 1")), say("done"))
    info = await trusted.run()
    assert (trusted.folder / "made").exists()
    assert ran(trusted, info) == [("PreToolUse", "error", "it ended with exit code 3")]


@pytest.mark.spec("HK-1", "HK-4")
async def test_sessions_begin_once_and_end_within_their_time(tmp_path: Path) -> None:
    hooks: dict[str, Any] = {
        "SessionStart": [on("startup", listens("start")), on("resume", listens("resumed"))],
        "SessionEnd": [on("", listens("end"), command("sleep 60"))],
    }
    async with open_shop(tmp_path, trusted=True) as shop:
        write(shop, **hooks)
        shop.script(conversation(say("one"), say("two")))
        info = await shop.run()
        await shop.send(info, "more")
        await shop.run()
        assert len(told(shop, "start")) == 1 and told(shop, "resumed") == told(shop, "end") == []
        before = anyio.current_time()
    assert 1.4 < anyio.current_time() - before < 6
    async with open_shop(tmp_path, trusted=True) as shop:
        assert [each["reason"] for each in told(shop, "end")] == ["other"]
        listed = {each.id: each.status for each in await shop.runtime.list()}
        assert set(listed.values()) == {TaskStatus.COMPLETED}, "hooks after the end of a run change nothing about it"
        shop.script(conversation(say("one"), say("two"), say("three")))
        await shop.ended(await shop.runtime.resume(info.id, "go on"))
        assert len(told(shop, "resumed")) == 1


@pytest.mark.spec("HK-4")
async def test_a_hook_after_the_end_of_a_run_leaves_it_ended(tmp_path: Path) -> None:
    async with open_shop(tmp_path, trusted=True) as shop:
        write(shop, SessionEnd=[on("", listens("end"))])
        shop.says(say("one"))
        info = await shop.run()
    assert b"SessionEnd" in info.output_file.with_suffix(".jsonl").read_bytes()
    async with open_shop(tmp_path, trusted=True) as shop:
        [listed] = await shop.runtime.list()
        assert (listed.status, listed.result) == (TaskStatus.COMPLETED, "one")

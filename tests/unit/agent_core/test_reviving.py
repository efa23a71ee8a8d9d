"""Agents of an earlier process go on: what they knew, what was open, where they worked, and what they send."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core.errors import AgentDenied, InvalidParams, OwnedElsewhere, UnknownAgentType, WorktreeFailed
from agent_core.events import AgentInfo, MessageAdded, PermissionAsked, StatusChanged, ToolEnded
from agent_core.messages import ToolResultBlock
from agent_core.permissions.types import PermissionAnswer, PermissionMode
from agent_core.runtime import SpawnRequest
from agent_core.task import TaskStatus
from agent_core.transcript.repair import INTERRUPTED
from lsp_server.demo.script import conversation, say, use
from tests.git_helpers import Repo, clean_git, repo
from tests.unit.agent_core.test_background import child, child_of, job, root, runs
from tests.unit.agent_core.test_forking import fork, forked, share, unmarked
from tests.unit.agent_core.workshop import Person, Shop, open_shop

__all__ = ["clean_git", "repo"]  # fixtures

pytestmark = pytest.mark.anyio
LOOK = use("Read", file_path="a.txt")


@asynccontextmanager
async def killed(place: Path, **options: Any) -> AsyncIterator[tuple[Shop, Path]]:
    """A runtime, and the place to which its state is copied at the end as it is on disk at that moment, before it ends
    in order: what a process leaves that was killed."""
    left = place / "left"
    async with open_shop(place, **options) as shop:
        (shop.folder / "a.txt").write_text("hello\n")
        yield shop, left
        for log in shop.logs.values():
            await log.written()
        shutil.copytree(shop.state, left / "state")


def later(left: Path, shop: Shop, **options: Any) -> Any:
    return open_shop(left, folder=shop.folder, **options)


async def state_of(shop: Shop, info: AgentInfo) -> AgentInfo:
    return await shop.runtime.info(info.id)


@pytest.mark.spec("TR-2", "TR-4", "TR-5", "MSG-1")
async def test_i1_a_finished_agent_goes_on_with_the_same_bytes(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as shop:
        (shop.folder / "a.txt").write_text("hello\n")
        shop.says(say("first", LOOK), say("done"))
        info = await shop.run("go", name="helper", permission_mode=None)
        before = shop.asked(1)
        agents = shop.folder / ".claude" / "agents"
        agents.mkdir(parents=True)
        (agents / "late.md").write_text("---\nname: late\ndescription: changes the list of agents\n---\nx")
    async with open_shop(tmp_path) as shop:
        shop.says(say(""), say(""), say("second"))
        resumed = await shop.send(info, "and then?")
        body = shop.asked(0)
        assert unmarked(body["tools"]) == unmarked(before["tools"])
        assert unmarked(body["system"]) == unmarked(before["system"])
        seen = len(before["messages"])
        assert unmarked(body["messages"])[:seen] == unmarked(before["messages"])
        assert (resumed.id, resumed.name, resumed.model, resumed.permission_mode, resumed.cwd) == (
            info.id,
            info.name,
            info.model,
            info.permission_mode,
            info.cwd,
        )
        assert (resumed.status, resumed.result, resumed.usage.turns) == (TaskStatus.COMPLETED, "second", 3)
        seqs = [event.seq for event in (await shop.runtime.transcript(info.id)).events]
        assert seqs == list(range(1, len(seqs) + 1))


@pytest.mark.spec("TR-4", "PM-8")
@pytest.mark.parametrize("crash", [True, False])
async def test_a_call_that_waited_for_an_answer_is_asked_again(tmp_path: Path, crash: bool) -> None:
    left = tmp_path / "left" if crash else tmp_path
    async with killed(tmp_path) as (first, _):
        first.runtime.attach(Person())
        first.says(say(LOOK, use("Bash", command="touch made")), say("done"))
        info = await first.spawn()
        await first.event(info, PermissionAsked)
    async with later(left, first) as shop:
        person = Person([PermissionAnswer("allowOnce")])
        shop.runtime.attach(person)
        shop.says(say(""), say("done"))
        listed = await state_of(shop, info)
        assert listed.status is TaskStatus.INTERRUPTED
        await shop.runtime.resume(info.id, None)
        resumed = await shop.ended(info)
        assert [request.title for request in person.requests] == ["Bash touch made"]
        assert (resumed.status, resumed.result, resumed.pending_permissions) == (TaskStatus.COMPLETED, "done", 0)
        assert (shop.folder / "made").exists()
        looked, made = shop.results(0)
        assert (looked[1], "hello" in looked[2], made[1]) == (False, True, False)
        assert shop.model.problems == []


@pytest.mark.spec("TR-4")
async def test_a_call_that_had_begun_has_an_unknown_outcome_and_is_not_done_again(tmp_path: Path) -> None:
    async with killed(tmp_path, settings={"permissions": {"allow": ["Bash"]}}) as (first, left):
        command = "echo once >> count; sleep 30"
        first.says(say(LOOK, use("Bash", command=command)), say("done"))
        info = await first.spawn()
        await first.event(info, ToolEnded)
        with anyio.fail_after(10):
            while not (first.folder / "count").exists():
                await anyio.sleep(0.01)
    async with later(left, first) as shop:
        shop.says(say(""), say("I check."))
        await shop.runtime.resume(info.id, "be careful")
        resumed = await shop.ended(info)
        assert resumed.result == "I check."
        looked, counted = shop.results(0)
        assert "hello" in looked[2] and (counted[1], counted[2]) == (True, INTERRUPTED)
        assert shop.told(0)[-1] == "be careful"
        assert (shop.folder / "count").read_text() == "once\n"
        assert shop.model.problems == []


@pytest.mark.spec("TR-4")
async def test_one_that_was_interrupted_in_the_queue_knows_its_task(tmp_path: Path) -> None:
    async with killed(tmp_path, settings={"maxConcurrentAgents": 1}) as (first, left):
        first.script(conversation(say("slow", gate="never"), first_user="slow"))
        await first.spawn("slow")
        info = await first.spawn("the task that waits")
        await first.event(info, StatusChanged, lambda body: body.queue_position is not None)
    async with later(left, first) as shop:
        shop.says(say("done"))
        await shop.runtime.resume(info.id, None)
        assert (await shop.ended(info)).result == "done"
        assert shop.told(0)[-1] == "the task that waits"


@pytest.mark.spec("TR-3")
async def test_a_torn_end_is_cut_off_and_kept(tmp_path: Path) -> None:
    async with killed(tmp_path) as (first, left):
        first.says(say("done"))
        info = await first.run()
    (path,) = left.rglob(f"agent-{info.id}.jsonl")
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"v":1,"zzz')
    async with later(left, first) as shop:
        shop.says(say(""), say("more"))
        assert (await shop.send(info, "go on")).result == "more"
        assert path.read_bytes().startswith(whole) and b"zzz" not in path.read_bytes()
        assert path.with_suffix(".torn").read_bytes() == b'{"v":1,"zzz'


@pytest.mark.spec("TR-4", "WT-3")
async def test_its_worktree_is_entered_again_and_locked(tmp_path: Path, repo: Repo, clean_git: None) -> None:
    async with open_shop(tmp_path, folder=repo.path) as shop:
        shop.says(say(use("Write", file_path="new.txt", content="x\n")), say("done"))
        info = await shop.run(isolation="worktree")
        assert info.worktree is not None
    async with open_shop(tmp_path, folder=repo.path) as shop:
        shop.says(say(""), say(""), say(use("Read", file_path="new.txt"), gate="g"), say("seen"))
        await shop.runtime.send(info.id, "look again")
        await shop.model.wait_for(1)
        assert "locked" in repo.git("worktree", "list", "--porcelain")
        shop.model.gate("g").set()
        resumed = await shop.ended(info)
        assert resumed.result == "seen" and resumed.worktree == info.worktree
        assert shop.results(1)[0][2] == "     1\tx"
        assert "locked" not in repo.git("worktree", "list", "--porcelain")


@pytest.mark.spec("TR-4", "WT-4")
async def test_a_missing_worktree_is_said_and_never_replaced(tmp_path: Path, repo: Repo, clean_git: None) -> None:
    async with open_shop(tmp_path, folder=repo.path) as shop:
        shop.says(say(use("Write", file_path="new.txt", content="x\n")), say("done"))
        info = await shop.run(isolation="worktree")
        assert info.worktree is not None
        shutil.rmtree(info.worktree.path)
        with pytest.raises(WorktreeFailed, match="is gone"):
            await shop.runtime.send(info.id, "more")
    repo.git("worktree", "prune")
    async with open_shop(tmp_path, folder=repo.path) as shop:
        with pytest.raises(WorktreeFailed, match="is no worktree of"):
            await shop.runtime.send(info.id, "more")
        assert len(shop.model.requests()) == 0
        assert (await state_of(shop, info)).result == "done"


@pytest.mark.spec("TR-4", "SEL-5")
async def test_what_cannot_be_brought_back_says_why_and_stays_as_it_is(tmp_path: Path) -> None:
    agents = tmp_path / "home" / ".claude" / "agents"
    agents.mkdir(parents=True)
    (agents / "odd.md").write_text("---\nname: odd\ndescription: d\n---\nx")
    async with open_shop(tmp_path) as shop:
        shop.says(say("done"), repeat_last=True)
        odd, plain = await shop.run(agent_type="odd"), await shop.run()
    (agents / "odd.md").unlink()
    rules = {"permissions": {"deny": ["Agent(general-purpose)"]}}
    before = {path: path.read_bytes() for path in (tmp_path / "state").rglob("*.jsonl")}
    async with open_shop(tmp_path, settings=rules) as shop:
        with pytest.raises(UnknownAgentType, match="odd"):
            await shop.runtime.send(odd.id, "more")
        with pytest.raises(AgentDenied):
            await shop.runtime.send(plain.id, "more")
    async with open_shop(tmp_path) as shop:
        with pytest.raises(InvalidParams, match="message"):
            await shop.runtime.resume(plain.id, None)
    assert before == {path: path.read_bytes() for path in (tmp_path / "state").rglob("*.jsonl")}


@pytest.mark.spec("TR-4")
async def test_one_process_at_a_time_goes_on_with_an_agent(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as first, open_shop(tmp_path) as second:
        first.says(say("done"), say("slow", gate="never"))
        second.says(say(""), say("from the second"))
        info = await first.run()
        assert (await second.send(info, "more")).result == "from the second"
        with pytest.raises(OwnedElsewhere, match="another process has gone on"):
            await first.runtime.send(info.id, "and here?")
        first.says(say("slow", gate="never"))
        running = await first.spawn()
        await first.model.wait_for(1)
        with pytest.raises(OwnedElsewhere):
            await second.runtime.send(running.id, "more")
        await first.stopped(running)


@pytest.mark.spec("TR-4", "MSG-1", "RUN-8")
async def test_f9_a_child_comes_back_with_its_parent_and_depth(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as first:
        first.script(
            child("x", say("found", gate="late")),
            root(say(job("x", run_in_background=True)), say("ok"), say("I heard.")),
        )
        info = await first.run()
        first.model.gate("late").set()
        info = await runs(first, info, 2)
        made = await child_of(first, info)
    async with open_shop(tmp_path) as shop:
        shop.script(
            conversation(*(say(""),) * 1, say("found more"), first_user="child x", name="x"),
            conversation(*(say(""),) * 3, say("I heard again."), first_user="go", name="root"),
        )
        await shop.runtime.send(made.id, "look again")
        again = await shop.ended(made)
        assert (again.depth, again.parent_id, again.root_id, again.result) == (1, info.id, info.id, "found more")
        with anyio.fail_after(10):
            while (await state_of(shop, info)).result != "I heard again.":
                await anyio.sleep(0.01)
        assert "<result>found more</result>" in shop.told(0, "root")[0]


@pytest.mark.spec("TR-2", "MSG-1")
async def test_the_model_reaches_its_agents_of_an_earlier_process(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as first:
        first.script(child("x", say("found")), root(say(job("x")), say("ok")))
        info = await first.run()
        made = await child_of(first, info)
    async with open_shop(tmp_path) as shop:
        again = use("SendMessage", to=made.id, message="look again")
        shop.script(
            conversation(say(""), say("found more"), first_user="child x", name="x"),
            conversation(*(say(""),) * 2, say(again), say("sent"), say("heard"), first_user="go", name="root"),
        )
        await shop.send(info, "go on")
        assert (await shop.ended(made)).result == "found more"
        await shop.ended(info)


@pytest.mark.spec("FK-3", "TR-5", "TR-2")
async def test_a_fork_comes_back_with_the_conversation_that_it_began_with(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as first:
        (first.folder / "a.txt").write_text("hello\n")
        first.script(
            forked("x", say("forked"), offset=2),
            root(say("I look.", LOOK), say(fork("x", run_in_background=False)), say("over")),
        )
        info = await first.run("go " + "All this was said. " * 2000)
        made = await child_of(first, info)
        before = first.asked(0, "x")
        size = made.output_file.with_suffix(".jsonl").stat().st_size
        assert size < 8_000, "the history is a reference"
    async with open_shop(tmp_path) as shop:
        shop.script(forked("x", say(""), say("more"), offset=2))
        resumed = await shop.send(made, "and?")
        assert resumed.result == "more" and resumed.fork
        body = shop.asked(0, "x")
        seen = len(before["messages"])
        assert unmarked(body["messages"])[:seen] == unmarked(before["messages"])
        assert json.dumps(unmarked([body["tools"], body["system"]])) == json.dumps(
            unmarked([before["tools"], before["system"]])
        )
        assert share(shop, "x", 0) == 0.0, "another service; the bytes are what counts"


async def test_results_of_ended_calls_are_those_that_were_recorded(tmp_path: Path) -> None:
    """The call had ended, the message with its result was not written yet."""
    async with killed(tmp_path) as (first, left):
        first.runtime.attach(Person())
        first.says(say(LOOK, use("Bash", command="touch made")))
        info = await first.spawn()
        await first.event(info, PermissionAsked)
    async with later(left, first) as shop:
        (shop.folder / "a.txt").write_text("changed since\n")
        shop.runtime.attach(Person([PermissionAnswer("rejectOnce")]))
        shop.says(say(""), say("done"))
        await shop.runtime.resume(info.id, None)
        await shop.ended(info)
        messages = [body.message for body in shop.of(info, MessageAdded)] if shop.logs[info.id].kept() else []
        blocks = [block for message in messages for block in message.content if isinstance(block, ToolResultBlock)]
        assert "hello" in shop.results(0)[0][2]
        assert len(blocks) in (0, 2)


@pytest.mark.spec("RUN-9", "TR-4")
async def test_what_ended_while_nobody_was_there_to_be_told_is_told_later(tmp_path: Path) -> None:
    async with killed(tmp_path) as (first, left):
        first.script(
            child("one", say("found one", gate="late")),
            child("two", say("never", gate="never")),
            root(
                say(job("one", run_in_background=True), job("two", run_in_background=True)), say("slow", gate="never")
            ),
        )
        info = await first.spawn()
        one = await child_of(first, info, "job one")
        await first.model.wait_for(2, conversation="root")
        await first.stopped(info)
        first.model.gate("late").set()
        await first.ended(one)
    async with later(left, first) as shop:
        shop.script(conversation(say(""), (*say("I see."),), say("I see."), first_user="go", name="root"))
        await shop.send(info, "well?")
        told = [text for text in shop.told(0, "root") if text.startswith("<task-notification>")]
        assert len(told) == 2
        assert any("<result>found one</result>" in text for text in told)
        assert any("<status>stopped</status>" in text and "was interrupted" in text for text in told)
    async with later(left, first) as shop:
        shop.script(conversation(*(say(""),) * 2, say("Nothing new."), first_user="go", name="root"))
        await shop.send(info, "and now?")
        assert not [text for text in shop.told(0, "root") if text.startswith("<task-notification>")]


@pytest.mark.spec("TR-4")
async def test_an_answer_that_was_complete_is_not_lost_with_its_end(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as first:
        first.says(say("THE ANSWER"))
        info = await first.run()
    (path,) = tmp_path.rglob(f"agent-{info.id}.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))  # the process ended before it could write the end
    async with open_shop(tmp_path) as shop:
        await shop.runtime.resume(info.id, None)
        assert (await shop.ended(info)).result == "THE ANSWER"
        assert shop.model.requests() == []


@pytest.mark.spec("TR-4")
async def test_calls_behind_one_that_waited_are_made_and_not_called_interrupted(tmp_path: Path) -> None:
    rules = {"permissions": {"allow": ["Bash(touch a)", "Bash(touch c)"]}}
    async with killed(tmp_path, settings=rules) as (first, left):
        first.runtime.attach(Person())
        first.says(say(*(use("Bash", command=f"touch {name}") for name in "abc")), say("done"))
        info = await first.spawn()
        await first.event(info, PermissionAsked)
        assert not (first.folder / "c").exists()
    async with later(left, first, settings=rules) as shop:
        shop.runtime.attach(Person([PermissionAnswer("allowOnce")]))
        shop.says(say(""), say("done"))
        await shop.runtime.resume(info.id, None)
        await shop.ended(info)
        assert [failed for _, failed, _ in shop.results(0)] == [False] * 3
        assert (shop.folder / "b").exists() and (shop.folder / "c").exists()


@pytest.mark.spec("PM-3", "TR-4")
@pytest.mark.parametrize(
    ("before", "setting", "after"),
    [
        (PermissionMode.BYPASS, {}, PermissionMode.DEFAULT),
        (PermissionMode.PLAN, {}, PermissionMode.DEFAULT),
        (PermissionMode.PLAN, {"permissions": {"defaultMode": "acceptEdits"}}, PermissionMode.ACCEPT_EDITS),
        (PermissionMode.ACCEPT_EDITS, {}, PermissionMode.ACCEPT_EDITS),
        (PermissionMode.DONT_ASK, {}, PermissionMode.DONT_ASK),
    ],
)
async def test_plan_and_bypass_do_not_come_back_with_the_main_thread(
    tmp_path: Path, before: PermissionMode, setting: dict[str, Any], after: PermissionMode
) -> None:
    async with open_shop(tmp_path) as shop:
        shop.says(say("done"))
        info = await shop.ended(await shop.runtime.run_main(SpawnRequest("go", shop.folder, permission_mode=before)))
        assert info.permission_mode is before
    async with open_shop(tmp_path, settings=setting) as shop:
        shop.says(say(""), say("again"))
        assert (await shop.send(info, "more")).permission_mode is after


@pytest.mark.spec("PM-3")
async def test_what_a_resumed_agent_may_is_what_it_may_now(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as shop:
        shop.says(say("done"))
        info = await shop.run(permission_mode=PermissionMode.BYPASS)
    async with open_shop(tmp_path) as shop:
        shop.says(say(""), say(use("Bash", command="touch made")), say("done"))
        resumed = await shop.send(info, "go on")
        assert (resumed.permission_mode, (shop.folder / "made").exists()) == (PermissionMode.DEFAULT, False)

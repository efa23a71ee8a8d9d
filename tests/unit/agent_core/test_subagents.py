"""One run from its queue to its one end: what is recorded, what the model is sent, what is left."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import anyio
import psutil
import pytest
from attrs import define, evolve, field, frozen

from agent_core import query_loop, subagents
from agent_core.errors import AlreadyTerminal
from agent_core.events import (
    AgentInfo,
    Ended,
    FilesChanged,
    MessageAdded,
    Outcome,
    PermissionSettled,
    Retrying,
    Started,
    StatusChanged,
    TextDelta,
    ToolCalled,
    ToolEnded,
    ToolOutput,
    UsageReported,
    WorktreeInfo,
)
from agent_core.messages import Message, StopReason, TextBlock, ToolResultBlock, ToolUseBlock, Usage
from agent_core.permissions.types import PermissionAnswer, PermissionMode, ToolKind
from agent_core.ports import Git
from agent_core.query_loop import STOPPED
from agent_core.repository import GitCommand
from agent_core.state import AgentState
from agent_core.subagents import NOTHING_SAID
from agent_core.task import TaskStatus
from agent_core.tool import ToolContext
from agent_core.turn import Step
from lsp_server.demo.script import Fault, Thinking, Turn, conversation, say, use
from tests.git_helpers import Repo, clean_git, repo
from tests.unit.agent_core.conftest import AddTools
from tests.unit.agent_core.workshop import SECONDS, Person, Probe, Shop, kinds, open_shop

__all__ = ["clean_git", "repo"]  # fixtures

pytestmark = pytest.mark.anyio

RUNNING = StatusChanged(TaskStatus.RUNNING, False)


@pytest.mark.spec("RES-2", "CTX-4")
async def test_a_whole_run(shop: Shop) -> None:
    (shop.folder / "a.txt").write_text("one\n")
    usage = {"input_tokens": 10, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2, "output_tokens": 5}
    shop.says(say("I look.", use("Read", file_path="a.txt"), usage=usage), say("It says one.", usage=usage))
    started = await shop.spawn("What is in a.txt?", description="read a.txt")
    info = await shop.ended(started)
    call = ToolUseBlock("toolu_conversation_0_1", "Read", {"file_path": "a.txt"})
    content = (TextBlock("     1\tone"),)
    environment = shop.told(0)[0]
    once = Usage(10, 5, 3, 2, tool_uses=1, turns=1)
    assert shop.bodies(info) == [
        Started(started, ANY, None, ANY),
        RUNNING,
        MessageAdded(Message(ANY, "user", (TextBlock(environment), TextBlock("What is in a.txt?")))),
        MessageAdded(Message(ANY, "assistant", (TextBlock("I look."), call)), "tool_use"),
        UsageReported(once, 20, 200_000),
        ToolCalled(call.id, "Read", ToolKind.READ, "Read a.txt", call.input, ((shop.folder / "a.txt", None),)),
        ToolEnded(call.id, "completed", content, None, ANY),
        MessageAdded(Message(ANY, "user", (ToolResultBlock(call.id, content),))),
        MessageAdded(Message(ANY, "assistant", (TextBlock("It says one."),)), "end_turn"),
        UsageReported(Usage(20, 10, 6, 4, tool_uses=1, turns=2), 20, 200_000),
        Ended(info),
    ]
    assert info == evolve(
        started,
        status=TaskStatus.COMPLETED,
        stop_reason=StopReason.END_TURN,
        result="It says one.",
        last_tool="Read",
        usage=Usage(20, 10, 6, 4, tool_uses=1, turns=2, duration_ms=info.usage.duration_ms),
        ended_at=info.ended_at,
    )
    shop.check(info)


async def test_facts_of_the_run_come_after_the_shared_prefix(shop: Shop) -> None:
    shop.says(say("ok"))
    (shop.folder / "deep").mkdir()
    first, second = await shop.run("one"), await shop.run("two", cwd=shop.folder / "deep")
    one, two = shop.asked(0), shop.asked(1)
    assert (one["tools"], one["system"]) == (two["tools"], two["system"])
    assert str(shop.folder) not in str(one["tools"]) + str(one["system"])
    lines = [shop.told(number)[0].split("\n") for number in (0, 1)]
    assert [each[1] for each in lines] == [f"Working directory: {info.cwd}" for info in (first, second)]
    assert [each[3] for each in lines] == [f"Date: {info.started_at.date().isoformat()}" for info in (first, second)]


@pytest.mark.spec("RES-2")
@pytest.mark.parametrize("silence", ["", "  \n", Thinking("hm")], ids=["empty", "blank", "thinking"])
async def test_an_answer_that_says_nothing_is_told_from_a_failure(shop: Shop, silence: str | Thinking) -> None:
    """And it leaves a conversation that can go on: the service refuses messages without a text that can be seen."""
    spoken = say("now I speak")
    shop.says((*say(silence, when="go"), *say("now I speak", when="and?")), spoken)
    info = await shop.run()
    assert (info.status, info.stop_reason, info.result, info.error) == (
        TaskStatus.COMPLETED,
        StopReason.END_TURN,
        "(Subagent completed but returned no output.)",
        None,
    )
    again = await shop.send(info, "and?")
    assert (again.status, again.result) == (TaskStatus.COMPLETED, "now I speak")


async def test_the_result_is_the_last_thing_said_in_this_run(shop: Shop) -> None:
    shop.says(say("found it", use("Glob", pattern="*")), say(""), repeat_last=True)
    info = await shop.run()
    assert info.result == "found it"
    assert (await shop.send(info, "more")).result == NOTHING_SAID


@pytest.mark.spec("CTX-10")
async def test_the_limit_of_turns_ends_a_run_with_a_note_and_counts_anew_for_the_next(shop: Shop) -> None:
    step = use("Glob", pattern="*")
    shop.says(say("found one", step), say("found two", step), say("found three", step), say(step), say("never"))
    info = await shop.run(max_turns=2)
    note = "(Stopped at the limit of 2 turns, before the task was finished.)"
    assert (info.status, info.stop_reason) == (TaskStatus.COMPLETED, StopReason.MAX_TURNS)
    assert info.result == f"found two\n\n{note}"
    again = await shop.send(info, "go on")
    assert (again.stop_reason, again.result) == (StopReason.MAX_TURNS, f"found three\n\n{note}")
    assert len(shop.model.requests()) == 4
    shop.check(again, runs=2)


async def test_a_limit_of_turns_with_nothing_said_is_still_told(shop: Shop) -> None:
    shop.says(say(use("Glob", pattern="*")))
    assert (await shop.run(max_turns=1)).result == "(Stopped at the limit of 1 turns, before the task was finished.)"


# Stops


async def hang(label: str, ctx: ToolContext) -> str:
    ctx.report(label)
    return await anyio.sleep_forever()  # type: ignore[func-returns-value]


@define
class Phase:
    """How to bring an agent to the moment at which it is stopped, and what is left afterwards."""

    turns: tuple[tuple[Turn, ...], ...]
    reached: Callable[[Shop, AgentInfo], Awaitable[object]]
    events: list[str]
    result: str | None = None


async def at_once(shop: Shop, info: AgentInfo) -> None:
    pass


async def streaming(shop: Shop, info: AgentInfo) -> None:
    await shop.event(info, TextDelta)


async def waiting(shop: Shop, info: AgentInfo) -> None:
    await shop.model.wait_for(1)


async def in_a_tool(shop: Shop, info: AgentInfo) -> None:
    await shop.event(info, ToolOutput, lambda body: body.output == "hanging")


async def asking(shop: Shop, info: AgentInfo) -> None:
    await shop.event(info, StatusChanged, lambda body: body.status is TaskStatus.WAITING)


HANG, ASK = use("Hang", label="hanging"), use("Bash", command="/bin/true")
START = ["Started", "StatusChanged", "MessageAdded"]
CALLED = [*START, "MessageAdded", "UsageReported", "ToolCalled"]
PHASES = {
    "before it ran": Phase((say("never"),), at_once, START),
    "before the first byte": Phase((say("never", first_byte_ms=60_000),), waiting, START),
    "in a stream": Phase((say("word " * 99, per_delta_ms=50),), streaming, START),
    "in a retry": Phase(
        (say("x", fault=Fault("status", headers={"retry-after": "50"})),), lambda s, i: s.event(i, Retrying), START
    ),
    "in a tool": Phase((say("I begin", HANG),), in_a_tool, [*CALLED, "ToolEnded", "MessageAdded"], "I begin"),
    "while it asks": Phase(
        (say("I ask", ASK),),
        asking,
        [
            *CALLED,
            "PermissionAsked",
            "StatusChanged",
            "PermissionSettled",
            "StatusChanged",
            "ToolEnded",
            "MessageAdded",
        ],
        "I ask",
    ),
}


@pytest.mark.parametrize("phase", PHASES.values(), ids=PHASES)
async def test_e5_a_stop_ends_a_run_at_once_and_the_conversation_can_go_on(
    shop: Shop, tools: AddTools, phase: Phase
) -> None:
    tools(Probe("Hang", hang, read_only=True, concurrent=True))
    shop.runtime.attach(Person())
    shop.says(*phase.turns)
    started = await shop.spawn()
    await phase.reached(shop, started)
    info = await shop.stopped(started)
    assert (info.status, info.stop_reason, info.result, info.error) == (
        TaskStatus.STOPPED,
        StopReason.CANCELLED,
        phase.result,
        None,
    )
    assert kinds(shop.bodies(info)) == [*phase.events, "Ended"]
    assert shop.bodies(info)[-1] == Ended(info)
    shop.check(info)
    for entry in shop.model.requests():
        await shop.model.wait_until(lambda entry=entry: entry.sent_ns or entry.closed_early_ns)  # type: ignore[misc]
    shop.script(conversation(say("still here"), say("still here")), check_prefix=False)
    again = await shop.send(info, "and now?")
    assert (again.status, again.result) == (TaskStatus.COMPLETED, "still here")
    shop.check(again, runs=2)


@pytest.mark.spec("PM-8")
async def test_a15_a_stop_withdraws_the_ask_and_a_late_answer_is_refused_politely(shop: Shop) -> None:
    person = Person()
    shop.runtime.attach(person)
    shop.says(say(use("Bash", command="touch made")))
    started = await shop.spawn()
    request = await person.request()
    info = await shop.stopped(started)
    [settled] = shop.of(info, PermissionSettled)
    assert settled == PermissionSettled(request.id, "Bash touch made", Outcome.WITHDRAWN, "none")
    assert (info.pending_permissions, shop.runtime.pending_permissions()) == (0, ())
    answer = shop.runtime.answer(request.id, PermissionAnswer("allowOnce"))
    assert answer == "this request is not open any more: it was answered, or its agent has ended"
    assert not (shop.folder / "made").exists()
    shop.check(info)


async def test_e8_a_stop_between_parallel_calls_keeps_what_was_done_and_answers_the_rest(
    shop: Shop, tools: AddTools
) -> None:
    async def quick(label: str, ctx: ToolContext) -> str:
        return f"did {label}"

    tools(
        Probe("Quick", quick, read_only=True, concurrent=True),
        Probe("Hang", hang, read_only=True, concurrent=True),
        Probe("Later", quick),
    )
    shop.says(
        say(use("Hang", label="a"), use("Quick", label="b"), use("Hang", label="hanging"), use("Later", label="d")),
        say("I go on"),
    )
    started = await shop.spawn(permission_mode=PermissionMode.BYPASS)
    await shop.event(started, ToolEnded)
    await in_a_tool(shop, started)
    info = await shop.stopped(started)
    ids = [f"toolu_conversation_0_{index}" for index in range(4)]
    interrupted = (TextBlock(STOPPED),)
    done = (TextBlock("did b"),)
    assert [(body.tool_call_id, body.status, body.output) for body in shop.of(info, ToolEnded)] == [
        (ids[1], "completed", done),
        (ids[0], "failed", interrupted),
        (ids[2], "failed", interrupted),
        (ids[3], "failed", interrupted),
    ]
    assert shop.bodies(info)[-2] == MessageAdded(
        Message(
            ANY,
            "user",
            (
                ToolResultBlock(ids[0], interrupted, True),
                ToolResultBlock(ids[1], done),
                ToolResultBlock(ids[2], interrupted, True),
                ToolResultBlock(ids[3], interrupted, True),
            ),
        )
    )
    again = await shop.send(info, "go on")
    assert (again.result, shop.told(1)[-1]) == ("I go on", "go on")
    shop.check(again, runs=2)


async def test_e4_a_stopped_command_leaves_no_process(shop: Shop) -> None:
    shop.runtime.client_settings = {"permissions": {"allow": ["Bash(echo $$; sleep 1000 & sleep 1000)"]}}
    shop.says(say(use("Bash", command="echo $$; sleep 1000 & sleep 1000")))
    started = await shop.spawn()
    shown = await shop.event(started, ToolOutput, lambda body: body.output.strip().isdigit())
    info = await shop.stopped(started, within=4)
    assert [process for process in psutil.process_iter() if in_group(process, int(shown.output))] == []
    shop.check(info)


def in_group(process: psutil.Process, group: int) -> bool:
    """Alive, that is: what nobody has waited for yet is no harm."""
    with suppress(psutil.Error, ProcessLookupError):
        return os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE
    return False


async def test_two_stops_are_one(shop: Shop) -> None:
    shop.says(say("word " * 99, per_delta_ms=50))
    started = await shop.spawn()
    await streaming(shop, started)
    async with anyio.create_task_group() as group:
        group.start_soon(shop.stopped, started)
        group.start_soon(shop.stopped, started)
    shop.check(started)
    with pytest.raises(AlreadyTerminal, match=f"agent {started.id} does not run: it is stopped"):
        await shop.runtime.stop(started.id)


# Failures


async def test_a_crash_of_the_loop_ends_its_own_run_only(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shop.script(
        conversation(say("slow", gate="g"), name="other", first_user="other"),
        conversation(say(use("Glob", pattern="*"))),
    )
    other = await shop.spawn("other")
    await shop.model.wait_for(1)
    real = query_loop.next_step

    def next_step(state: AgentState, max_turns: int | None) -> Step:
        if state.run_turns and state.info.id != other.id:
            raise ZeroDivisionError("secret")
        return real(state, max_turns)

    monkeypatch.setattr(query_loop, "next_step", next_step)
    info = await shop.run()
    assert (info.status, info.stop_reason, info.result, info.error) == (
        TaskStatus.FAILED,
        None,
        None,
        "internal error: ZeroDivisionError; see the server's log",
    )
    assert [record.message for record in caplog.records] == [f"the agent {info.id} crashed"]
    shop.check(info)
    shop.model.gate("g").set()
    assert (await shop.ended(other)).result == "slow"


async def test_what_had_been_found_is_kept_when_the_service_fails(shop: Shop) -> None:
    shop.says(say("half of it", use("Glob", pattern="*")), say("x", fault=Fault("status", status=400, message="no")))
    info = await shop.run()
    assert (info.status, info.result) == (TaskStatus.FAILED, "half of it")
    assert info.error is not None and info.error.startswith("the model service answered 400 ")
    shop.check(info)


async def test_a_transcript_that_cannot_be_written_ends_the_run_before_any_request(shop: Shop) -> None:
    project = await shop.runtime.project(shop.folder)
    project.sessions.parent.mkdir(parents=True)
    project.sessions.write_text("a file where a folder is due")
    shop.says(say("never"))
    info = await shop.run()
    assert (info.status, shop.model.requests()) == (TaskStatus.FAILED, [])
    assert info.error is not None and info.error.startswith("the transcript cannot be written: Not a directory: ")
    shop.check(info)
    project.sessions.unlink()
    assert (await shop.run("another")).result == "never"


# The queue


@pytest.mark.parametrize("fields", [{}, {"isolation": "worktree"}], ids=["plain", "isolated"])
async def test_agents_above_the_limit_wait_in_line(tmp_path: Path, repo: Repo, fields: dict[str, Any]) -> None:
    async with open_shop(tmp_path, folder=repo.path, settings={"maxConcurrentAgents": 1}) as shop:
        shop.says(say("ok", gate="{{last_user~(go.)}}"))
        agents = [await shop.spawn(f"go{number}", **fields) for number in range(3)]
        await shop.model.wait_for(1)
        queued = StatusChanged(TaskStatus.PENDING, False, 1)
        assert [(await shop.event(agent, StatusChanged)).queue_position for agent in agents] == [None, 1, 2]
        shop.model.gate("go0").set()
        await shop.model.wait_for(2)
        second = await shop.runtime.info(agents[1].id)
        assert (second.status, second.error) == (TaskStatus.RUNNING, None)
        assert shop.of(agents[2], StatusChanged) == [evolve(queued, queue_position=2), queued]
        info = await shop.stopped(agents[2])
        assert (info.status, kinds(shop.bodies(info))[-2:]) == (TaskStatus.STOPPED, ["StatusChanged", "Ended"])
        shop.check(info)
        shop.model.gate("go1").set()
        ends = [await shop.ended(agent) for agent in agents]
        assert [each.status for each in ends] == [TaskStatus.COMPLETED, TaskStatus.COMPLETED, TaskStatus.STOPPED]
        assert len(shop.model.requests()) == 2


async def test_a_long_queue_is_told_in_few_records(tmp_path: Path) -> None:
    async with open_shop(tmp_path, settings={"maxConcurrentAgents": 1}) as shop:
        shop.says(say("ok", gate="go"))
        agents = [await shop.spawn("go") for _ in range(32)]
        last = await shop.event(agents[-1], StatusChanged)
        assert last.queue_position == 31
        shop.model.gate("go").set()
        assert [(await shop.ended(agent)).status for agent in agents] == [TaskStatus.COMPLETED] * 32
        places = [[body.queue_position for body in shop.of(agent, StatusChanged)] for agent in agents]
        assert places[-1] == [31, 15, 7, 3, 2, 1, None]
        assert places[:5] == [[None], [1, None], [2, 1, None], [3, 2, 1, None], [4, 3, 2, 1, None]]


@pytest.mark.parametrize("end", ["stop", "go"])
async def test_a_further_run_waits_in_line_too(tmp_path: Path, end: str) -> None:
    async with open_shop(tmp_path, settings={"maxConcurrentAgents": 1}) as shop:
        shop.script(
            conversation(say("busy", gate="busy"), name="busy", first_user="be busy"),
            conversation(say("one"), say("two"), name="mine"),
        )
        mine = await shop.run("mine")
        busy = await shop.spawn("be busy")
        await shop.model.wait_for(1, conversation="busy")
        await shop.runtime.send(mine.id, "again")
        queued = await shop.event(mine, StatusChanged, lambda body: body.queue_position is not None)
        assert queued == StatusChanged(TaskStatus.PENDING, False, 1)
        assert (await shop.runtime.info(mine.id)).status is TaskStatus.PENDING
        if end == "stop":
            assert (await shop.stopped(mine)).status is TaskStatus.STOPPED
        shop.model.gate("busy").set()
        assert (await shop.ended(busy)).result == "busy"
        if end == "go":
            assert (await shop.ended(mine)).result == "two"
        shop.check(mine, runs=2)


# Worktrees


@pytest.mark.spec("WT-1", "WT-2", "WT-3")
async def test_an_isolated_agent_edits_its_own_checkout_which_is_kept(tmp_path: Path, repo: Repo) -> None:
    async with open_shop(tmp_path, folder=repo.path) as shop:
        shop.says(
            say(use("Read", file_path="src/b.py")),
            say(use("Edit", file_path="src/b.py", old_string="1", new_string="2")),
            say("changed"),
            say("looked again"),
        )
        started = await shop.spawn(isolation="worktree")
        assert started.worktree is None
        info = await shop.ended(started)
        kept = info.worktree
        assert (info.status, info.result, info.isolation) == (TaskStatus.COMPLETED, "changed", "worktree")
        name = f"agent-{info.id[:8]}"
        project = await shop.runtime.project(repo.path)
        assert kept == WorktreeInfo(project.worktrees / name, name, repo.git("rev-parse", "HEAD"))
        assert [body for body in shop.of(info, StatusChanged) if body.worktree] == [
            StatusChanged(TaskStatus.RUNNING, False, worktree=kept)
        ]
        assert ((kept.path / "src/b.py").read_text(), (repo.path / "src/b.py").read_text()) == ("b = 2\n", "b = 1\n")
        assert shop.of(info, FilesChanged) == [FilesChanged(((kept.path / "src/b.py", "modified"),))]
        assert f"worktree {kept.path}" in repo.state()["worktrees"]
        assert (f"Working directory: {kept.path}" in shop.told(0)[0], f"Git branch: {name}" in shop.told(0)[0]) == (
            True,
            True,
        )
        again = await shop.send(info, "look again")
        assert (again.result, again.worktree) == ("looked again", kept)
        shop.check(again, runs=2)


@pytest.mark.spec("WT-3")
async def test_an_unchanged_worktree_leaves_nothing(tmp_path: Path, repo: Repo) -> None:
    async with open_shop(tmp_path, folder=repo.path) as shop:
        before = repo.state()
        shop.says(
            say(use("Read", file_path="a.txt")),
            say("looked"),
            say(use("Write", file_path="new.txt", content="new\n")),
            say("wrote"),
        )
        info = await shop.run(isolation="worktree")
        assert (info.result, info.worktree, repo.state()) == ("looked", None, before)
        assert list((await shop.runtime.project(repo.path)).worktrees.iterdir()) == []
        again = await shop.send(info, "now write")
        assert (again.result, again.cwd) == ("wrote", repo.path)
        assert again.worktree is not None
        assert (again.worktree.path / "new.txt").read_text() == "new\n"
        assert not (repo.path / "new.txt").exists()
        shop.check(again, runs=2)


@pytest.mark.spec("WT-2")
async def test_c7_an_isolated_agent_keeps_its_folder_below_the_top_and_never_writes_to_the_main_checkout(
    tmp_path: Path, repo: Repo
) -> None:
    async with open_shop(tmp_path, folder=repo.path) as shop:
        shop.says(
            say(
                use("Write", file_path=str(repo.path / "a.txt"), content="x"),
                use("Write", file_path=str(repo.path / ".git/hooks/pre-commit"), content="x"),
                use("Write", file_path="c.py", content="c = 1\n"),
            ),
            say("done"),
        )
        info = await shop.run(isolation="worktree", cwd=repo.path / "src", permission_mode=PermissionMode.BYPASS)
        assert info.worktree is not None
        assert (info.worktree.path / "src/c.py").read_text() == "c = 1\n"
        first, second, third = shop.results(1)
        assert (first[1], second[1], third[1]) == (True, True, False)
        assert f"is in {repo.path}, which this agent must not change" in first[2]
        assert f"is in {repo.path / '.git'}, which this agent must not change" in second[2]
        assert (repo.path / "a.txt").read_text() == "one\ntwo\nthree\n"


@pytest.mark.spec("WT-3", "WT-4")
async def test_a_stopped_and_a_failed_agent_keep_their_changes(tmp_path: Path, repo: Repo) -> None:
    async with open_shop(tmp_path, folder=repo.path) as shop:
        write = use("Write", file_path="new.txt", content="new\n")
        shop.script(
            conversation(say(write), say("word " * 99, per_delta_ms=50), name="stops", first_user="stops"),
            conversation(say(write), say("x", fault=Fault("status", status=400)), name="fails"),
        )
        started = await shop.spawn("stops", isolation="worktree")
        await streaming(shop, started)
        stopped, failed = await shop.stopped(started), await shop.run("fails", isolation="worktree")
        for info, status in ((stopped, TaskStatus.STOPPED), (failed, TaskStatus.FAILED)):
            assert (info.status, info.worktree is not None) == (status, True)
            assert info.worktree and (info.worktree.path / "new.txt").read_text() == "new\n"
            shop.check(info)


async def test_a_worktree_that_cannot_be_made_fails_the_run_and_never_falls_back(tmp_path: Path, repo: Repo) -> None:
    """C7: nothing is ever done in place of what was isolated."""
    location = repo.path / "inside"
    async with open_shop(tmp_path, folder=repo.path, settings={"worktree": {"location": str(location)}}) as shop:
        shop.says(say("never"))
        before = repo.state()
        info = await shop.run(isolation="worktree")
        assert (info.status, info.worktree, shop.model.requests()) == (TaskStatus.FAILED, None, [])
        assert info.error is not None and "choose a folder outside the repository" in info.error
        assert repo.state() == before
        shop.check(info)


@frozen
class SlowGit:
    """git, but one command never ends."""

    word: str
    real: Git = field(factory=GitCommand)

    async def run(self, cwd: Path, *args: str, **options: Any) -> bytes:
        if self.word in args:
            await anyio.sleep_forever()
        return await self.real.run(cwd, *args, **options)


async def test_e11_a_clean_up_that_hangs_does_not_keep_the_run_from_its_end(
    tmp_path: Path, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subagents, "CLEANUP_SECONDS", 0.2)
    async with open_shop(tmp_path, folder=repo.path, git=SlowGit("unlock")) as shop:
        shop.says(say("done"))
        info = await shop.run(isolation="worktree")
        assert (info.status, info.worktree is not None) == (TaskStatus.COMPLETED, True)
        assert info.result is not None and info.result.startswith("done\n\nThe worktree ")
        shop.check(info)


# Messages


async def test_a_message_that_comes_while_the_run_ends_is_not_lost(tmp_path: Path, repo: Repo) -> None:
    git = PausingGit("unlock")
    async with open_shop(tmp_path, folder=repo.path, git=git) as shop:
        shop.says(say(use("Glob", pattern="*")), say("first"), say("second"))
        started = await shop.spawn(isolation="worktree")
        with anyio.fail_after(SECONDS):
            await git.reached.wait()
        await shop.runtime.send(started.id, "one more thing")
        git.go.set()
        await shop.event(started, MessageAdded, lambda body: body.message.text == "second")
        info = await shop.ended(started)
        assert (info.status, info.result, shop.told(2)[-1]) == (TaskStatus.COMPLETED, "second", "one more thing")
        shop.check(info, runs=2)


@define(eq=False)
class PausingGit:
    """git, but the first time that one command comes it waits to be let go."""

    word: str
    real: Git = field(factory=GitCommand)
    reached: anyio.Event = field(factory=anyio.Event)
    go: anyio.Event = field(factory=anyio.Event)

    async def run(self, cwd: Path, *args: str, **options: Any) -> bytes:
        if self.word in args:
            self.reached.set()
            await self.go.wait()
        return await self.real.run(cwd, *args, **options)

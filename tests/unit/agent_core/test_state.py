"""State is a fold; statuses walk only legal moves."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from agent_core.events import (
    Ended,
    EventBody,
    FilesChanged,
    MessageAdded,
    PermissionAsked,
    PermissionSettled,
    Started,
    StatusChanged,
    ToolCalled,
    UsageReported,
    WorktreeInfo,
)
from agent_core.ids import RequestId
from agent_core.messages import StopReason, Usage
from agent_core.permissions.types import ToolKind
from agent_core.state import AgentState, IllegalEvent, apply, unanswered
from agent_core.task import TERMINAL, TRANSITIONS, TaskStatus, may_move
from tests.unit.agent_core.builders import assistant, event, info, result, use, user


def fold(*bodies: EventBody) -> AgentState:
    state: AgentState | None = None
    for seq, body in enumerate(bodies, start=1):
        state = apply(state, event(seq, body))
    assert state is not None
    return state


RUNNING = StatusChanged(TaskStatus.RUNNING, False)


def test_a_whole_run_folds_to_its_state() -> None:
    worktree = WorktreeInfo(Path("/t"), "agent-a1", "abc")
    done = info(status=TaskStatus.COMPLETED, stop_reason=StopReason.END_TURN, result="done", last_tool="Read")
    state = fold(
        Started(info()),
        StatusChanged(TaskStatus.RUNNING, False, worktree=worktree),
        MessageAdded(user("go")),
        MessageAdded(assistant("I read", use("t1")), "tool_use"),
        ToolCalled("t1", "Read", ToolKind.READ, "Read a", {}, ()),
        MessageAdded(user(result("t1"))),
        FilesChanged(((Path("/w/a"), "modified"), (Path("/w/b"), "added"))),
        FilesChanged(((Path("/w/a"), "modified"),)),
        UsageReported(Usage(input_tokens=3, turns=1), 10, 200_000),
        MessageAdded(assistant("done", id="m9"), "end_turn"),
        Ended(done),
    )
    assert state == AgentState(
        done,
        messages=(user("go"), assistant("I read", use("t1")), user(result("t1")), assistant("done", id="m9")),
        stop_reason="end_turn",
        run_turns=2,
        changed_files=("/w/a", "/w/b"),
        context_tokens=10,
    )


def test_asks_are_counted_and_never_below_zero() -> None:
    asked, settled = PermissionAsked(RequestId("r"), "t"), PermissionSettled(RequestId("r"), "t", "allowOnce", "user")
    counts = [
        fold(Started(info()), *bodies).info.pending_permissions for bodies in [(asked,), (asked, settled), (settled,)]
    ]
    assert counts == [1, 0, 0]


def test_a_further_run_starts_clean() -> None:
    """The end of the last run is not shown while the next one goes on (settled details)."""
    ended = Ended(info(status=TaskStatus.FAILED, error="x", result="part", stop_reason=StopReason.CANCELLED))
    state = fold(Started(info()), RUNNING, MessageAdded(assistant("a"), "end_turn"), ended, RUNNING)
    shown = (state.info.status, state.info.error, state.info.result, state.info.stop_reason, state.run_turns)
    assert shown == (TaskStatus.RUNNING, None, None, None, 0)


def test_a_further_run_that_has_to_queue_is_pending_and_clean() -> None:
    ended = Ended(info(status=TaskStatus.COMPLETED, result="part", stop_reason=StopReason.END_TURN))
    bodies = (Started(info()), RUNNING, MessageAdded(assistant("a"), "end_turn"), ended)
    queued = fold(*bodies, StatusChanged(TaskStatus.PENDING, False, 1))
    assert (queued.info, queued.run_turns) == (info(status=TaskStatus.PENDING), 0)
    assert fold(*bodies, StatusChanged(TaskStatus.PENDING, False, 1), RUNNING).info == info(status=TaskStatus.RUNNING)


@pytest.mark.parametrize("bodies", [(RUNNING,), (Started(info()), Started(info()))])
def test_what_cannot_come_now_is_refused(bodies: tuple[EventBody, ...]) -> None:
    with pytest.raises(IllegalEvent):
        fold(*bodies)


@pytest.mark.parametrize("before", TaskStatus)
@pytest.mark.parametrize("after", TaskStatus)
def test_statuses_walk_only_legal_moves(before: TaskStatus, after: TaskStatus) -> None:
    state = AgentState(info(status=before))
    body = StatusChanged(after, False)
    if before is after or may_move(before, after):
        assert apply(state, event(2, body)).info.status is after
    else:
        with pytest.raises(IllegalEvent):
            apply(state, event(2, body))


def test_every_status_has_a_way_out_and_terminal_ones_only_into_a_further_run() -> None:
    assert set(TRANSITIONS) == set(TaskStatus)
    again = frozenset({TaskStatus.PENDING, TaskStatus.RUNNING})
    assert {TRANSITIONS[status] for status in TERMINAL} == {again}
    assert {status for status in TaskStatus if may_move(status, TaskStatus.PENDING)} == TERMINAL


@pytest.mark.parametrize(
    ("messages", "ids"),
    [
        ((), []),
        ((user("go"),), []),
        ((user("go"), assistant("hm", use("a"), use("b"))), ["a", "b"]),
        ((user("go"), assistant(use("a"), use("b")), user(result("a"))), ["b"]),
        ((user("go"), assistant(use("a")), user(result("a")), user("more")), []),
        ((assistant(use("a")), user(result("a")), assistant("done")), []),
    ],
)
def test_open_calls_are_those_of_the_last_answer(messages: tuple, ids: list[str]) -> None:  # type: ignore[type-arg]
    assert [call.id for call in unanswered(messages)] == ids


def test_usage_adds_up() -> None:
    one = Usage(1, 2, 3, 4, 5, 6, 7)
    assert one + one == Usage(2, 4, 6, 8, 10, 12, 14)
    assert (one.prompt_tokens, one.total_tokens) == (8, 10)
    assert evolve(one, turns=0) + Usage(turns=6) == one

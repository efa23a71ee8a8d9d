"""A broken log becomes a valid one; nothing before the break is lost."""

from __future__ import annotations

import pytest

from agent_core.events import (
    DurableBody,
    Ended,
    Event,
    MessageAdded,
    Outcome,
    PermissionAsked,
    PermissionSettled,
    Started,
    StatusChanged,
)
from agent_core.ids import RequestId
from agent_core.state import apply, unanswered
from agent_core.task import TaskStatus
from agent_core.transcript.codec import encode
from agent_core.transcript.repair import INTERRUPTED, closing, interrupted_results, recover
from tests.unit.agent_core.builders import NOW, assistant, event, info, result, use, user

RUNNING = StatusChanged(TaskStatus.RUNNING, False)
BODIES: tuple[DurableBody, ...] = (
    Started(info()),
    RUNNING,
    MessageAdded(user("go")),
    MessageAdded(assistant("hm", use("a"), use("b")), "tool_use"),
    PermissionAsked(RequestId("r"), "t"),
)
EVENTS = tuple(event(seq, body) for seq, body in enumerate(BODIES, start=1))


def data(events: tuple[Event, ...] = EVENTS) -> bytes:
    return b"".join(encode(each) for each in events)


def test_a_whole_log_is_read_whole() -> None:
    found = recover(data())
    assert (found.events, found.good_bytes, found.fault) == (EVENTS, len(data()), None)


@pytest.mark.spec("TR-3")
@pytest.mark.parametrize("cut", [1, 10, 57])
def test_a_torn_last_line_is_cut_off(cut: int) -> None:
    whole = data()
    found = recover(whole[:-cut])
    assert found.events == EVENTS[:-1]
    assert whole[: found.good_bytes] == data(EVENTS[:-1])
    assert found.fault is not None and found.fault.startswith("line 5: ")


@pytest.mark.spec("TR-3")
def test_damage_in_the_middle_keeps_what_came_before() -> None:
    lines = data().splitlines(keepends=True)
    lines[3] = b"\x00" * 20 + b"\n"
    assert recover(b"".join(lines)).events == EVENTS[:3]


@pytest.mark.parametrize("second", [event(3, RUNNING), event(2, Started(info())), event(2, Ended(info()))])
def test_a_record_that_cannot_follow_ends_the_log(second: Event) -> None:
    assert recover(data((EVENTS[0], second))).events == EVENTS[:1]


def test_an_empty_file_is_an_empty_log() -> None:
    assert (recover(b"").events, recover(b"").state) == ((), None)


@pytest.mark.spec("TR-4")
def test_e8_the_end_of_the_process_answers_every_call_and_ask() -> None:
    found = recover(data())
    assert found.state is not None
    bodies = closing(found.events, found.state, NOW)
    results = tuple(result(id, INTERRUPTED, is_error=True) for id in ("a", "b"))
    assert bodies == [
        PermissionSettled(RequestId("r"), "t", Outcome.WITHDRAWN, "none"),
        MessageAdded(user(*results, id="msg_a1_closing")),
        Ended(info(status=TaskStatus.INTERRUPTED, ended_at=NOW)),
    ]
    state = found.state
    for seq, body in enumerate(bodies, start=len(EVENTS) + 1):
        state = apply(state, event(seq, body))
    assert unanswered(state.messages) == () and state.terminal
    assert closing((), state, NOW) == []


def test_e8_calls_that_had_ended_keep_their_results() -> None:
    message = interrupted_results((use("a"), use("b")), (result("b", "done"),), "stopped", "m9")
    assert message == user(result("a", "stopped", is_error=True), result("b", "done"), id="m9")

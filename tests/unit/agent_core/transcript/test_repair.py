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
    ToolEnded,
)
from agent_core.ids import RequestId
from agent_core.messages import TextBlock
from agent_core.state import apply
from agent_core.task import TaskStatus
from agent_core.transcript.codec import encode
from agent_core.transcript.repair import INTERRUPTED, closing, earlier_results, interrupted_results, recover
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
def test_e8_the_end_of_the_process_ends_asks_and_run_and_knows_what_became_of_the_calls() -> None:
    found = recover(data())
    assert found.state is not None
    bodies = closing(found.events, found.state, NOW)
    unknown = {id: result(id, INTERRUPTED, is_error=True) for id in ("a", "b")}
    assert earlier_results(found.events, found.state) == unknown
    assert bodies == [
        PermissionSettled(RequestId("r"), "t", Outcome.WITHDRAWN, "none"),
        Ended(info(status=TaskStatus.INTERRUPTED, ended_at=NOW)),
    ]
    state = found.state
    for seq, body in enumerate(bodies, start=len(EVENTS) + 1):
        state = apply(state, event(seq, body))
    assert state.terminal
    assert closing((), state, NOW) == []


@pytest.mark.spec("TR-4")
@pytest.mark.parametrize(
    ("more", "results"),
    [
        (
            (ToolEnded("a", "completed", (TextBlock("done"),), None, 1),),
            {"a": ("done", False), "b": (INTERRUPTED, True)},
        ),
        ((PermissionAsked(RequestId("q"), "t", "a"),), {}),
        ((PermissionAsked(RequestId("q"), "t", "b"),), {"a": (INTERRUPTED, True)}),
        (
            (
                PermissionAsked(RequestId("q"), "t", "a"),
                PermissionSettled(RequestId("q"), "t", Outcome.WITHDRAWN, "none"),
            ),
            {},
        ),
        (
            (
                PermissionAsked(RequestId("q"), "t", "a"),
                PermissionSettled(RequestId("q"), "t", "allowOnce", "user"),
            ),
            {"a": (INTERRUPTED, True), "b": (INTERRUPTED, True)},
        ),
    ],
)
def test_a_call_that_waited_is_left_open_and_others_have_their_outcome(
    more: tuple[DurableBody, ...], results: dict[str, tuple[str, bool]]
) -> None:
    found = recover(data())
    assert found.state is not None
    events = (*found.events, *(event(seq, body) for seq, body in enumerate(more, start=len(EVENTS) + 1)))
    expected = {id: result(id, text, is_error=failed) for id, (text, failed) in results.items()}
    assert earlier_results(events, found.state) == expected


def test_e8_calls_that_had_ended_keep_their_results() -> None:
    message = interrupted_results((use("a"), use("b")), (result("b", "done"),), "stopped", "m9")
    assert message == user(result("a", "stopped", is_error=True), result("b", "done"), id="m9")

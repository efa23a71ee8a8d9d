"""Any run that can happen: without gaps for every reader, written and read back, repaired wherever it is cut."""

from __future__ import annotations

from itertools import pairwise

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.event_log import EventLog
from agent_core.events import (
    DurableBody,
    Ended,
    Event,
    EventBody,
    FilesChanged,
    MessageAdded,
    PermissionAsked,
    PermissionSettled,
    Retrying,
    Started,
    StatusChanged,
    TextDelta,
    ToolCalled,
    ToolEnded,
    ToolOutput,
    UsageReported,
)
from agent_core.ids import AgentId, MessageId, RequestId
from agent_core.messages import StopReason, TextBlock, Usage
from agent_core.permissions.types import ToolKind
from agent_core.state import AgentState, IllegalEvent, apply, unanswered
from agent_core.task import TERMINAL, TRANSITIONS, TaskStatus
from agent_core.transcript.codec import decode, encode
from agent_core.transcript.repair import closing, open_asks, recover
from tests.tools.alone import run_alone
from tests.unit.agent_core.builders import NOW, StillClock, assistant, event, info, result, use, user

TEXT = st.text(max_size=20)
"""Half surrogates too: a model or a file may hold them."""


@st.composite
def legal_bodies(draw: st.DrawFn, most: int = 25) -> list[EventBody]:
    """What an engine could append, one after the other; asks are settled at most once and only when open."""
    bodies: list[EventBody] = [Started(info(name=draw(TEXT)))]
    status, asked = TaskStatus.PENDING, []
    for number in range(draw(st.integers(0, most))):
        match draw(st.integers(0, 9)):
            case 0 | 1:
                status = draw(st.sampled_from(sorted(TRANSITIONS[status] | {status})))
                if status in TERMINAL:
                    bodies.append(Ended(info(status=status, result=draw(TEXT), stop_reason=StopReason.END_TURN)))
                    status = TaskStatus.RUNNING
                    bodies.append(StatusChanged(status, False))
                else:
                    bodies.append(StatusChanged(status, draw(st.booleans())))
            case 2:
                calls = [use(f"t{number}-{each}", text=draw(TEXT)) for each in range(draw(st.integers(0, 3)))]
                bodies.append(MessageAdded(assistant(draw(TEXT), *calls, id=f"m{number}"), "tool_use"))
            case 3:
                results = [result(f"t{draw(st.integers(0, number))}-{each}") for each in range(draw(st.integers(0, 2)))]
                bodies.append(MessageAdded(user(*results, draw(TEXT), id=f"m{number}")))
            case 4:
                bodies.append(PermissionAsked(RequestId(f"r{number}"), draw(TEXT)))
                asked.append(f"r{number}")
            case 5 if asked:
                bodies.append(PermissionSettled(RequestId(asked.pop()), "t", "allowOnce", "user", draw(TEXT)))
            case 6:
                bodies.append(ToolCalled(f"t{number}", "Read", ToolKind.READ, draw(TEXT), {draw(TEXT): 1}, ()))
            case 7:
                bodies.append(ToolEnded(f"t{number}", "completed", (TextBlock(draw(TEXT)),), draw(TEXT), 3))
            case 8:
                bodies.append(UsageReported(Usage(input_tokens=number), number, 9))
            case _:
                bodies.append(FilesChanged(()))
    return bodies


PASSING = st.sampled_from(
    [TextDelta(MessageId("m"), "x"), ToolOutput("t1", "x"), Retrying(1, 2, 3, "r"), ToolOutput("t2", "")]
)


@st.composite
def with_passing(draw: st.DrawFn) -> list[EventBody]:
    bodies = draw(legal_bodies())
    for place in sorted(draw(st.lists(st.integers(1, len(bodies)), max_size=8)), reverse=True):
        bodies.insert(place, draw(PASSING))
    return bodies


def durable(bodies: list[EventBody]) -> tuple[Event, ...]:
    return tuple(event(seq, body) for seq, body in enumerate(bodies, start=1))


def fold(events: tuple[Event, ...]) -> AgentState | None:
    state: AgentState | None = None
    for each in events:
        state = apply(state, each)
    return state


@given(legal_bodies())
def test_what_is_written_is_read_back(bodies: list[EventBody]) -> None:
    for each in durable(bodies):
        line = encode(each)
        assert (decode(line), line.count(b"\n"), line[-1:]) == (each, 1, b"\n")


@pytest.mark.spec("TR-3")
@given(legal_bodies(), st.data())
def test_a_log_cut_at_any_byte_is_repaired_to_a_valid_end(bodies: list[EventBody], data: st.DataObject) -> None:
    events = durable(bodies)
    lines = [encode(each) for each in events]
    whole = b"".join(lines)
    cut = data.draw(st.integers(0, len(whole)))
    found = recover(whole[:cut])
    intact = sum(1 for number in range(len(lines)) if sum(map(len, lines[: number + 1])) <= cut)
    assert found.events == events[:intact]
    assert found.good_bytes == sum(map(len, lines[:intact]))
    assert (found.fault is None) == (found.good_bytes == cut)
    assert found.state == fold(events[:intact])
    if found.state is None:
        return
    end: list[DurableBody] = closing(found.events, found.state, NOW)
    closed = (*found.events, *(event(intact + number, body) for number, body in enumerate(end, start=1)))
    state = fold(closed)
    assert state is not None and state.terminal and state.info.pending_permissions == 0
    assert unanswered(state.messages) == () or found.state.terminal
    assert open_asks(closed) == [] or found.state.terminal
    again = whole[: found.good_bytes] + b"".join(encode(each) for each in closed[intact:])
    assert (recover(again).events, recover(again).fault) == (closed, None)


@pytest.mark.spec("TR-3")
@given(legal_bodies(), st.data())
def test_damage_anywhere_never_loses_what_came_before_it(bodies: list[EventBody], data: st.DataObject) -> None:
    events = durable(bodies)
    lines = [encode(each) for each in events]
    broken = data.draw(st.integers(0, len(lines) - 1))
    damage = data.draw(st.binary(max_size=30))
    found = recover(b"".join([*lines[:broken], damage, b"\n", *lines[broken + 1 :]]))
    assert found.events[:broken] == events[:broken]
    assert fold(found.events) == found.state


@given(with_passing(), st.data())
def test_every_reader_from_any_place_sees_no_gap(bodies: list[EventBody], data: st.DataObject) -> None:
    """Readers that come at any moment, at any position, while events are appended, written and forgotten."""
    whole: list[Event] = []
    log = EventLog(AgentId("a1"), StillClock(), whole.append)
    log.append(bodies[0])
    joins = data.draw(st.lists(st.integers(1, len(bodies)), min_size=1, max_size=4))
    seen: list[tuple[int, list[Event]]] = []

    async def source() -> list[Event]:
        await anyio.lowlevel.checkpoint()
        return list(whole)

    async def follow(after: int, events: list[Event]) -> None:
        events.extend([each async for each in log.read(after)])

    async def main() -> None:
        if data.draw(st.booleans()):
            log.forget(source)
        async with anyio.create_task_group() as group:
            for place, body in enumerate([*bodies[1:], None], start=1):
                for _ in range(joins.count(place)):
                    after = data.draw(st.integers(0, log.seq))
                    seen.append((after, []))
                    group.start_soon(follow, after, seen[-1][1])
                if data.draw(st.booleans()):
                    await anyio.lowlevel.checkpoint()
                if data.draw(st.booleans()):
                    log.mark_written(log.seq)
                if body is not None:
                    log.append(body)
            log.close()
        assert await log.events() == whole

    run_alone(main)
    assert [each.seq for each in whole] == list(range(1, len(whole) + 1))
    for after, events in seen:
        assert [each for each in events if each.durable] == whole[after:]
        counted = [each.delta_seq for each in events if not each.durable]
        assert counted == sorted(set(counted))  # type: ignore[type-var]
        assert all(a.seq <= b.seq for a, b in pairwise(events))


@given(st.lists(st.sampled_from(TaskStatus), max_size=30))
def test_statuses_walk_only_legal_moves_and_a_refused_one_changes_nothing(wanted: list[TaskStatus]) -> None:
    log = EventLog(AgentId("a1"), StillClock(), lambda event: None)
    log.append(Started(info()))
    walked = [TaskStatus.PENDING]
    for status in wanted:
        body = Ended(info(status=status)) if status in TERMINAL else StatusChanged(status, False)
        legal = status in TRANSITIONS[walked[-1]] or (status is walked[-1] and status not in TERMINAL)
        before = (log.seq, log.state)
        try:
            log.append(body)
        except IllegalEvent:
            assert not legal
            assert (log.seq, log.state) == before
        else:
            assert legal
            walked.append(status)
        assert log.state.info.status is walked[-1]

"""One append-only log: numbered, folded, read by cursors that never hold it up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import pytest

from agent_core.errors import TranscriptFailed
from agent_core.event_log import EventLog
from agent_core.events import Ended, Event, MessageAdded, Retrying, StatusChanged, TextDelta, ToolEnded, ToolOutput
from agent_core.ids import MessageId
from agent_core.messages import TextBlock
from agent_core.state import IllegalEvent
from agent_core.task import TaskStatus
from tests.unit.agent_core.builders import assistant, info, log, user

pytestmark = pytest.mark.anyio

RUNNING = StatusChanged(TaskStatus.RUNNING, False)


def delta(text: str, id: str = "m2") -> TextDelta:
    return TextDelta(MessageId(id), text)


async def read(made: object, count: int, after: int = 0, written: bool = False) -> list[tuple[int, int | None, str]]:
    found: list[tuple[int, int | None, str]] = []
    with anyio.fail_after(2):
        async for event in made.read(after, written=written):  # type: ignore[attr-defined]
            found.append((event.seq, event.delta_seq, type(event.body).__name__))
            if len(found) == count:
                break
    return found


async def test_durable_events_are_numbered_without_gaps_and_deltas_beside_them() -> None:
    sink: list[Event] = []
    made = log(sink)
    made.append(RUNNING)
    made.append(delta("a"))
    made.append(delta("b"))
    assert await read(made, 4) == [
        (1, None, "Started"),
        (2, None, "StatusChanged"),
        (2, 1, "TextDelta"),
        (2, 2, "TextDelta"),
    ]
    assert [event.seq for event in sink] == [1, 2]


async def test_deltas_are_gone_once_their_message_came() -> None:
    made = log()
    made.append(RUNNING)
    made.append(delta("a"))
    made.append(ToolOutput("t1", "still running"))
    made.append(MessageAdded(assistant("a"), "end_turn"))
    assert await read(made, 4) == [
        (1, None, "Started"),
        (2, None, "StatusChanged"),
        (2, 2, "ToolOutput"),
        (3, None, "MessageAdded"),
    ]
    made.append(ToolEnded("t1", "completed", (TextBlock(""),), None, 1))
    assert [name for _, _, name in await read(made, 4)] == ["Started", "StatusChanged", "MessageAdded", "ToolEnded"]


async def test_a_retry_voids_the_deltas_before_it() -> None:
    made = log()
    made.append(delta("lost"))
    made.append(Retrying(1, 3, 10, "overloaded"))
    assert [name for _, _, name in await read(made, 2)] == ["Started", "Retrying"]


async def test_a_late_reader_gets_everything_after_its_number() -> None:
    made = log()
    for status in (TaskStatus.RUNNING, TaskStatus.WAITING, TaskStatus.RUNNING):
        made.append(StatusChanged(status, False))
    assert await read(made, 2, after=2) == [(3, None, "StatusChanged"), (4, None, "StatusChanged")]


async def test_a_live_reader_wakes_and_ends_with_the_log() -> None:
    made, found = log(), []

    async def follow() -> None:
        found.extend([event.seq async for event in made.read()])

    with anyio.fail_after(2):
        async with anyio.create_task_group() as group:
            group.start_soon(follow)
            await anyio.sleep(0.01)
            made.append(RUNNING)
            await anyio.sleep(0.01)
            made.close()
    assert found == [1, 2]


async def test_a_careful_reader_waits_until_the_transcript_has_it() -> None:
    made = log()
    made.append(RUNNING)
    made.mark_written(1)
    with pytest.raises(TimeoutError):
        await read_soon(made, 2)
    made.mark_written(2)
    assert await read(made, 2, written=True) == [(1, None, "Started"), (2, None, "StatusChanged")]


async def read_soon(made: object, count: int) -> None:
    with anyio.fail_after(0.05):
        seen = 0
        async for _ in made.read(written=True):  # type: ignore[attr-defined]
            seen += 1
            if seen == count:
                return


async def test_nothing_goes_on_unrecorded() -> None:
    made = log()
    made.fail("No space left on device")
    with pytest.raises(TranscriptFailed, match="No space left"):
        await made.written()


async def test_an_illegal_event_is_refused_and_leaves_the_log_as_it_was() -> None:
    made = log()
    with pytest.raises(IllegalEvent):
        made.append(StatusChanged(TaskStatus.WAITING, False))
    assert made.seq == 1


ENDED = Ended(info(status=TaskStatus.COMPLETED, result="done"))


def ended_log() -> tuple[EventLog, list[Event]]:
    """A log that forgets, whose agent has ended; nothing is written yet."""
    sink: list[Event] = []
    made = log(sink)

    for body in (RUNNING, MessageAdded(user("task")), MessageAdded(assistant("said")), delta("late"), ENDED):
        made.append(body)
    made.forget(source_of(sink))
    return made, sink


def source_of(sink: list[Event]) -> Callable[[], Awaitable[list[Event]]]:
    async def source() -> list[Event]:
        await anyio.lowlevel.checkpoint()
        return sink

    return source


@pytest.mark.spec("CTX-9")
async def test_an_ended_agent_is_forgotten_once_it_is_written_and_read() -> None:
    made, sink = ended_log()
    made.mark_written(4)
    assert made.kept() == sink and made.state.messages
    reader = made.read()
    first = await anext(reader)
    made.mark_written(5)
    assert (first, made.kept()) == (sink[0], sink)
    rest = [await anext(reader) for _ in range(5)]
    assert ([event for event in rest if event.durable], len(rest)) == (sink[1:], 5)
    with pytest.raises(TimeoutError), anyio.fail_after(0.01):
        await anext(reader)
    assert (made.kept(), made.state.messages, made.seq, made.state.info.result) == ([], (), 5, "done")
    assert await read(made, 5) == [(event.seq, None, type(event.body).__name__) for event in sink]
    assert (await made.events(), await made.events(3)) == (sink, sink[3:])


@pytest.mark.spec("CTX-9")
async def test_a_further_run_has_the_messages_back_and_is_forgotten_in_turn() -> None:
    made, sink = ended_log()
    made.mark_written(5)
    made.append(StatusChanged(TaskStatus.RUNNING, False))
    assert await made.recall() == made.state.messages == (user("task"), assistant("said"))
    made.append(MessageAdded(user("more", id="m3")))
    assert len(await made.recall()) == 3
    assert (await made.events(), await made.events(6), [event.seq for event in made.kept()]) == (sink, sink[6:], [6, 7])
    made.append(ENDED)
    made.mark_written(8)
    assert (len(made.state.messages), len(made.kept())) == (3, 3)
    made.forget(source_of(sink))
    assert (made.kept(), len(await made.recall()), await made.events()) == ([], 3, sink)


@pytest.mark.spec("CTX-9")
async def test_two_who_recall_at_once_lose_nothing_that_came_meanwhile() -> None:
    made, _ = ended_log()
    made.mark_written(5)

    async def go_on() -> None:
        await made.recall()
        if made.state.terminal:
            made.append(RUNNING)
            made.append(MessageAdded(user("more", id="m3")))

    async with anyio.create_task_group() as group:
        group.start_soon(go_on)
        group.start_soon(go_on)
    assert [message.id for message in made.state.messages] == ["m1", "m2", "m3"]


@pytest.mark.spec("CTX-9")
async def test_what_the_transcript_has_lost_is_an_error_and_no_gap() -> None:
    made, sink = ended_log()
    made.mark_written(5)
    del sink[3:]
    for reading in (made.events(), made.recall(), read(made, 1)):
        with pytest.raises(TranscriptFailed, match="holds 3 of its first 5 events"):
            await reading


async def test_an_agent_whose_transcript_cannot_be_written_is_kept() -> None:
    made, sink = ended_log()
    made.fail("disk full")
    assert made.kept() == sink

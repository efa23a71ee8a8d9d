"""Deltas are merged, never reordered, and never overtaken by what came after them."""

from __future__ import annotations

from types import SimpleNamespace

import anyio
import pytest

from agent_core.events import Event, EventBody, Retrying, StatusChanged, TextDelta, ThinkingDelta, ToolOutput
from agent_core.ids import AgentId, MessageId
from agent_core.task import TaskStatus
from lsp_server.progress import DeltaMerger
from lsp_server.session import BACKPRESSURE_BYTES, EditorSession
from tests.unit.agent_core.builders import NOW, event, log


def passing(delta_seq: int, body: EventBody) -> Event:
    return Event(AgentId("a1"), 1, delta_seq, NOW, body)


def text(value: str, message: str = "m") -> TextDelta:
    return TextDelta(MessageId(message), value)


def test_deltas_of_one_message_are_joined_until_the_next_flush() -> None:
    merger = DeltaMerger(True)
    assert merger.feed(passing(1, text("a"))) == []
    assert merger.feed(passing(2, ThinkingDelta(MessageId("m"), "hm"))) == []
    assert merger.feed(passing(3, text("b"))) == []
    assert merger.holding
    assert merger.flush() == [passing(2, ThinkingDelta(MessageId("m"), "hm")), passing(3, text("ab"))]
    assert (merger.flush(), merger.holding) == ([], False)


def test_whatever_is_held_back_goes_before_a_durable_event() -> None:
    merger = DeltaMerger(True)
    merger.feed(passing(1, text("a")))
    merger.feed(passing(2, ToolOutput("t", "out")))
    durable = event(2, StatusChanged(TaskStatus.RUNNING, False))
    assert merger.feed(durable) == [passing(1, text("a")), passing(2, ToolOutput("t", "out")), durable]


def test_a_retry_and_the_begin_of_a_call_are_sent_at_once() -> None:
    merger = DeltaMerger(True)
    retry = passing(1, Retrying(1, 3, 10, "busy"))
    begin = passing(2, ToolOutput("t", ""))
    assert (merger.feed(retry), merger.feed(begin)) == ([retry], [begin])


def test_a_client_without_text_deltas_gets_the_output_of_calls_only() -> None:
    merger = DeltaMerger(False)
    merger.feed(passing(1, text("a")))
    merger.feed(passing(2, ThinkingDelta(MessageId("m"), "hm")))
    merger.feed(passing(3, ToolOutput("t", "x")))
    merger.feed(passing(4, ToolOutput("t", "y")))
    assert merger.flush() == [passing(4, ToolOutput("t", "xy"))]


@pytest.mark.anyio
async def test_what_was_held_back_is_sent_when_the_client_reads_again() -> None:
    """Not only with the next event: a model that thinks for a minute must not leave its last words unsent."""
    waits: list[int] = [BACKPRESSURE_BYTES + 1, BACKPRESSURE_BYTES + 1, 0]

    class Writer:
        @property
        def pending_bytes(self) -> int:
            return waits.pop(0) if len(waits) > 1 else waits[0]

    sent: list[str] = []
    session = object.__new__(EditorSession)
    session.rpc = SimpleNamespace(writer=Writer())  # type: ignore[assignment]
    session.client = SimpleNamespace(progress=lambda params: sent.append(params.event["delta"]))  # type: ignore[assignment]
    merger, held = DeltaMerger(True), anyio.Event()
    merger.feed(passing(1, text("last words")))
    held.set()
    wakes = iter([held])
    with anyio.move_on_after(2):
        await session._tick(log(), merger, lambda: next(wakes, anyio.Event()))
    assert sent == ["last words"]

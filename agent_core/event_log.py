"""The append-only log of one agent: number, fold, wake the readers.

`append` is synchronous and never waits for a reader. Readers are cursors: a slow one costs the agent nothing, a late
one replays. Durable events that were read with `written=True` are in the transcript already.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncIterator, Callable

import anyio
from attrs import define, field

from agent_core.errors import TranscriptFailed
from agent_core.events import PASSING, Event, EventBody, MessageAdded, Retrying, ToolEnded, ToolOutput
from agent_core.ids import AgentId
from agent_core.ports import Clock
from agent_core.state import AgentState, apply


@define
class EventLog:
    """`sink` gets every durable event, in order, as it is appended (the transcript writer); it must not block."""

    agent_id: AgentId
    clock: Clock
    sink: Callable[[Event], None]
    _durable: list[tuple[int, Event]] = field(factory=list)
    _passing: list[tuple[int, Event]] = field(factory=list)
    _order: int = 0
    _delta_seq: int = 0
    _state: AgentState | None = None
    _written: int = 0
    _closed: bool = False
    _failure: str | None = None
    _changed: anyio.Event = field(factory=anyio.Event)

    @property
    def state(self) -> AgentState:
        assert self._state is not None, "the first event of a log is Started"
        return self._state

    @property
    def seq(self) -> int:
        return len(self._durable)

    def append(self, body: EventBody) -> Event:
        """Number, fold and publish. IllegalEvent (nothing appended) when the event cannot come now."""
        if isinstance(body, PASSING):
            return self._append_passing(body)
        event = Event(self.agent_id, self.seq + 1, None, self.clock.now(), body)
        self._state = apply(self._state, event)
        self._order += 1
        self._durable.append((self._order, event))
        self._drop_void(body)
        self.sink(event)
        self._wake()
        return event

    def mark_written(self, seq: int) -> None:
        """The transcript holds everything up to `seq`."""
        self._written = max(self._written, seq)
        self._wake()

    def fail(self, reason: str) -> None:
        """The transcript cannot be written: `written` raises from now on, so that the agent does nothing unrecorded."""
        self._failure = reason
        self._wake()

    def close(self) -> None:
        """No more events of this process; readers that have seen all of them end."""
        self._closed = True
        self._wake()

    def events(self, after: int = 0) -> list[Event]:
        """Durable events with a `seq` above `after`."""
        return [event for _, event in self._durable[after:]]

    async def written(self) -> None:
        """Wait until all events so far are in the transcript. TranscriptFailed when that cannot be."""
        seq = self.seq
        while self._written < seq and not self._closed:
            if self._failure is not None:
                raise TranscriptFailed(f"the transcript cannot be written: {self._failure}")
            await self._changed.wait()

    async def read(self, after: int = 0, *, written: bool = False) -> AsyncIterator[Event]:
        """All durable events above `after`, then live ones; passing events that are already void are left out."""
        order = self._durable[after - 1][0] if 0 < after <= self.seq else 0
        index = after
        while True:
            entry = self._next(index, order)
            if entry is None:
                if self._closed:
                    return
                await self._changed.wait()
                continue
            order, event = entry
            if event.durable:
                index += 1
                while written and self._written < event.seq and not self._closed and self._failure is None:
                    await self._changed.wait()
            yield event

    def _append_passing(self, body: EventBody) -> Event:
        self._delta_seq += 1
        event = Event(self.agent_id, self.seq, self._delta_seq, self.clock.now(), body)
        self._order += 1
        if isinstance(body, Retrying):
            self._passing.clear()
        self._passing.append((self._order, event))
        self._wake()
        return event

    def _drop_void(self, body: EventBody) -> None:
        """Forget the passing events whose outcome `body` contains, so that memory stays flat."""
        if isinstance(body, MessageAdded):
            self._passing = [entry for entry in self._passing if isinstance(entry[1].body, ToolOutput)]
        elif isinstance(body, ToolEnded):
            ended = body.tool_call_id
            self._passing = [entry for entry in self._passing if getattr(entry[1].body, "tool_call_id", "") != ended]

    def _next(self, index: int, order: int) -> tuple[int, Event] | None:
        durable = self._durable[index] if index < len(self._durable) else None
        at = bisect_right(self._passing, order, key=lambda entry: entry[0])
        passing = self._passing[at] if at < len(self._passing) else None
        if durable is None or passing is None:
            return durable or passing
        return min(durable, passing, key=lambda entry: entry[0])

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

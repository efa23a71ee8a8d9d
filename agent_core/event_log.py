"""The append-only log of one agent: number, fold, wake the readers.

`append` is synchronous and never waits for a reader. Readers are cursors: a slow one costs the agent nothing, a late
one replays. Durable events that were read with `written=True` are in the transcript already.

The log of an ended agent forgets its events and messages once they are in the transcript and every reader has had them
(`forget`, CTX-9). Who comes later gets them from there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import anyio
from attrs import define, evolve, field

from agent_core.errors import TranscriptFailed
from agent_core.events import PASSING, Event, EventBody, MessageAdded, Retrying, ToolEnded, ToolOutput
from agent_core.ids import AgentId
from agent_core.messages import Message
from agent_core.ports import Clock
from agent_core.state import AgentState, apply


@define
class EventLog:
    """`sink` gets every durable event, in order, as it is appended (the transcript writer); it must not block.

    `forgotten` counts the first events that only the transcript holds now; `source` reads all that it holds.
    """

    agent_id: AgentId
    clock: Clock
    sink: Callable[[Event], None]
    forgotten: int = 0
    _source: Callable[[], Awaitable[Sequence[Event]]] | None = None
    _forgetting: bool = False
    _bare: bool = False
    """The messages of the state are in the transcript only."""
    _readers: dict[object, int] = field(factory=dict)
    """How many durable events each reader has had."""
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
        return self.forgotten + len(self._durable)

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
        self._drop()

    def fail(self, reason: str) -> None:
        """The transcript cannot be written: `written` raises from now on, so that the agent does nothing unrecorded."""
        self._failure = reason
        self._wake()

    def close(self) -> None:
        """No more events of this process; readers that have seen all of them end."""
        self._closed = True
        self._wake()

    def forget(self, source: Callable[[], Awaitable[Sequence[Event]]]) -> None:
        """Keep in memory only what `source` cannot read back, once the agent has ended; until somebody recalls it."""
        self._source, self._forgetting = source, True
        self._drop()

    async def recall(self) -> tuple[Message, ...]:
        """The messages of the state, back from the transcript by the same fold, and kept. TranscriptFailed."""
        self._forgetting = False
        if self._bare:
            self._restore(await self._read_back())
        return self.state.messages

    async def events(self, after: int = 0) -> list[Event]:
        """Durable events with a `seq` above `after`. TranscriptFailed when they cannot be read back."""
        if after >= self.forgotten:
            return self.kept(after)
        kept = self.kept()
        return [*(await self._read_back())[after:], *kept]

    def kept(self, after: int = 0) -> list[Event]:
        """Those among them that are in memory."""
        return [event for _, event in self._durable[max(0, after - self.forgotten) :]]

    async def written(self) -> None:
        """Wait until all events so far are in the transcript. TranscriptFailed when that cannot be."""
        seq = self.seq
        while self._written < seq and not self._closed:
            if self._failure is not None:
                raise TranscriptFailed(f"the transcript cannot be written: {self._failure}")
            await self._changed.wait()

    async def read(self, after: int = 0, *, written: bool = False) -> AsyncIterator[Event]:
        """All durable events above `after`, then live ones; passing events that are already void are left out."""
        reader = object()
        self._readers[reader] = index = after
        order = self._durable[after - self.forgotten - 1][0] if self.forgotten < after <= self.seq else 0
        try:
            while True:
                for event in (await self._read_back())[index:] if index < self.forgotten else ():
                    self._readers[reader] = index = index + 1
                    yield event
                entry = self._next(index, order)
                if entry is None:
                    if self._closed:
                        return
                    self._drop()
                    await self._changed.wait()
                    continue
                order, event = entry
                if event.durable:
                    self._readers[reader] = index = index + 1
                    while written and self._written < event.seq and not self._closed and self._failure is None:
                        await self._changed.wait()
                yield event
        finally:
            del self._readers[reader]
            self._drop()

    async def _read_back(self) -> Sequence[Event]:
        """The forgotten events."""
        assert self._source is not None, "a log without a source forgets nothing"
        forgotten = self.forgotten
        events = await self._source()
        if len(events) < forgotten:
            found = f"{len(events)} of its first {forgotten} events"
            raise TranscriptFailed(f"the transcript of agent {self.agent_id} was damaged or removed: it holds {found}")
        return events[:forgotten]

    def _restore(self, events: Sequence[Event]) -> None:
        state: AgentState | None = None
        for event in events:
            state = apply(state, event)
        if self._bare and state is not None:  # nobody else has done it meanwhile
            self._state, self._bare = evolve(self.state, messages=state.messages), False

    def _drop(self) -> None:
        """Readers are waited for rather than sent to the disk; a late one that reads back is one of them."""
        ended = self._forgetting and self._state is not None and self._state.terminal
        if ended and self._written >= self.seq and all(had >= self.seq for had in self._readers.values()):
            self.forgotten = self.seq
            self._durable.clear()
            self._passing.clear()
            self._state, self._bare = evolve(self.state, messages=()), True

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
        place = index - self.forgotten
        durable = self._durable[place] if 0 <= place < len(self._durable) else None
        at = bisect_right(self._passing, order, key=lambda entry: entry[0])
        passing = self._passing[at] if at < len(self._passing) else None
        if durable is None or passing is None:
            return durable or passing
        return min(durable, passing, key=lambda entry: entry[0])

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

"""At most so many agents run at once; the others queue, visibly, in the order in which they came.

A parent that only waits for agents lends its slot, so that nesting cannot starve.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
from attrs import define, field


@define(eq=False)
class _Waiting:
    turn: anyio.Event
    moved: Callable[[int], None]


@define(eq=False)
class Slot:
    """One run's place. `lent` may be entered several times at once: the slot is given away while any of them lasts."""

    _slots: Slots
    _held: bool = False
    _lent: int = 0
    _returning: anyio.Lock = field(factory=anyio.Lock)

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[None]:
        self._lent += 1
        self.give()
        try:
            yield
        finally:
            self._lent -= 1
            if self._lent == 0:
                await self._take_back()

    async def _take_back(self) -> None:
        """Once, however many ended together; and not for a run that has lent it again meanwhile."""
        async with self._returning:
            if self._lent == 0 and not self._held:
                await self.take(lambda place: None, first=True)
                if self._lent:
                    self.give()

    async def take(self, moved: Callable[[int], None], *, first: bool = False) -> None:
        await self._slots.acquire(moved, first=first)
        self._held = True

    def give(self) -> None:
        """Harmless when it is not held."""
        if self._held:
            self._held = False
            self._slots.release()


@define(eq=False)
class Slots:
    """`limit` may change at any time; it counts for the next one that wants to start."""

    limit: Callable[[], int]
    _running: int = 0
    _queue: deque[_Waiting] = field(factory=deque)

    @property
    def queued(self) -> int:
        return len(self._queue)

    @asynccontextmanager
    async def hold(self, moved: Callable[[int], None]) -> AsyncIterator[Slot]:
        """Wait for a slot; `moved` is told each new place in the queue, from 1."""
        slot = Slot(self)
        await slot.take(moved)
        try:
            yield slot
        finally:
            slot.give()

    async def acquire(self, moved: Callable[[int], None], *, first: bool = False) -> None:
        if self._running < self.limit() and (first or not self._queue):
            self._running += 1
        else:
            await self._wait(moved, first)

    def release(self) -> None:
        self._running -= 1
        self._admit()

    async def _wait(self, moved: Callable[[int], None], first: bool) -> None:
        waiting = _Waiting(anyio.Event(), moved)
        if first:
            self._queue.appendleft(waiting)
            self._tell()
        else:
            self._queue.append(waiting)
            moved(len(self._queue))
        try:
            await waiting.turn.wait()
        except BaseException:
            if waiting in self._queue:
                self._queue.remove(waiting)
                self._tell()
            else:
                self.release()
            raise

    def _admit(self) -> None:
        admitted = False
        while self._queue and self._running < self.limit():
            self._running += 1
            self._queue.popleft().turn.set()
            admitted = True
        if admitted:
            self._tell()

    def _tell(self) -> None:
        for place, waiting in enumerate(self._queue, start=1):
            waiting.moved(place)

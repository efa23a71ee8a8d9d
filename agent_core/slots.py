"""At most so many agents run at once; the others queue, visibly, in the order in which they came."""

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
class Slots:
    """`limit` may change at any time; it counts for the next one that wants to start."""

    limit: Callable[[], int]
    _running: int = 0
    _queue: deque[_Waiting] = field(factory=deque)

    @property
    def queued(self) -> int:
        return len(self._queue)

    @asynccontextmanager
    async def hold(self, moved: Callable[[int], None]) -> AsyncIterator[None]:
        """Wait for a slot; `moved` is told each new place in the queue, from 1."""
        if self._running >= self.limit() or self._queue:
            await self._wait(moved)
        else:
            self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            self._admit()

    async def _wait(self, moved: Callable[[int], None]) -> None:
        waiting = _Waiting(anyio.Event(), moved)
        self._queue.append(waiting)
        moved(len(self._queue))
        try:
            await waiting.turn.wait()
        except BaseException:
            if waiting in self._queue:
                self._queue.remove(waiting)
                self._tell()
            else:
                self._running -= 1
                self._admit()
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

"""Any schedule of runs, lendings and cancellations: never above the limit, nobody starves, nothing is lost."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
from attrs import define, field, frozen
from hypothesis import given
from hypothesis import strategies as st

from agent_core.slots import Slots
from tests.tools.alone import run_alone


@frozen
class Job:
    """Begins at `at`, works so many ticks, lends its slot for each of `lends` (start and length in ticks, several at
    once), works on, and is cancelled at `cancelled`, if ever."""

    at: int
    work: int
    lends: tuple[tuple[int, int], ...]
    rest: int
    cancelled: int | None


TICKS = st.integers(0, 4)
JOBS = st.lists(
    st.builds(
        Job,
        TICKS,
        TICKS,
        st.lists(st.tuples(TICKS, TICKS), max_size=3).map(tuple),
        TICKS,
        st.none() | st.integers(0, 12),
    ),
    min_size=1,
    max_size=6,
)


@define(eq=False)
class Run:
    slots: Slots
    limit: int
    working: set[int] = field(factory=set)
    most: int = 0
    ended: list[int] = field(factory=list)
    began: list[int] = field(factory=list)
    arrived: list[int] = field(factory=list)
    clock: anyio.Event = field(factory=anyio.Event)

    async def ticks(self, count: int) -> None:
        for _ in range(count):
            await self.clock.wait()

    async def job(self, number: int, job: Job, scope: anyio.CancelScope) -> None:
        with scope:
            await self.ticks(job.at)
            self.arrived.append(number)
            async with self.slots.hold(lambda place: None) as slot:
                self.began.append(number)
                self._work(number)
                try:
                    await self.ticks(job.work)
                    async with anyio.create_task_group() as group:
                        for start, length in job.lends:
                            group.start_soon(self._lend, slot, start, length)
                        if job.lends:
                            self.working.discard(number)
                    self._work(number)
                    await self.ticks(job.rest)
                finally:
                    self.working.discard(number)
        self.ended.append(number)

    def _work(self, number: int) -> None:
        self.working.add(number)
        self.most = max(self.most, len(self.working))

    async def _lend(self, slot: Any, start: int, length: int) -> None:
        await self.ticks(start)
        async with slot.lent():
            await self.ticks(length)


async def settle() -> None:
    """Until all have done what they can; anyio.wait_all_tasks_blocked looks only ten times a second."""
    for _ in range(30):
        await anyio.lowlevel.checkpoint()


async def play(jobs: list[Job], limit: int) -> Run:
    slots = Slots(lambda: limit)
    run = Run(slots, limit)
    scopes = [anyio.CancelScope() for _ in jobs]
    async with anyio.create_task_group() as group:
        for number, job in enumerate(jobs):
            group.start_soon(run.job, number, job, scopes[number])
        for tick in range(200):
            await settle()
            if len(run.ended) == len(jobs):
                break
            for job, scope in zip(jobs, scopes, strict=True):
                if job.cancelled == tick:
                    scope.cancel()
            clock, run.clock = run.clock, anyio.Event()
            clock.set()
        group.cancel_scope.cancel()
    return run


@given(JOBS, st.integers(1, 3))
def test_never_above_the_limit_and_everybody_ends(jobs: list[Job], limit: int) -> None:
    run = run_alone(play, jobs, limit)
    assert run.most <= limit
    assert sorted(run.ended) == list(range(len(jobs)))
    assert (run.slots.queued, run.slots._running) == (0, 0)


@given(st.lists(st.builds(Job, TICKS, TICKS, st.just(()), TICKS, st.none()), min_size=1, max_size=6), st.integers(1, 3))
def test_they_begin_in_the_order_in_which_they_came(jobs: list[Job], limit: int) -> None:
    run = run_alone(play, jobs, limit)
    assert run.began == run.arrived

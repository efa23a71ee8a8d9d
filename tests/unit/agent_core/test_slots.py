"""At most so many at once; the others queue in order, visibly."""

from __future__ import annotations

import anyio
import pytest

from agent_core.slots import Slot, Slots

pytestmark = pytest.mark.anyio


async def test_the_queue_moves_up_in_order() -> None:
    slots, told, order = Slots(lambda: 1), [], []
    releases = [anyio.Event() for _ in range(3)]

    async def run(number: int) -> None:
        async with slots.hold(lambda place: told.append((number, place))):
            order.append(number)
            await releases[number].wait()

    with anyio.fail_after(2):
        async with anyio.create_task_group() as group:
            for number in range(3):
                group.start_soon(run, number)
                await anyio.wait_all_tasks_blocked()
            assert (order, told, slots.queued) == ([0], [(1, 1), (2, 2)], 2)
            releases[0].set()
            await anyio.wait_all_tasks_blocked()
            assert (order, told[2:]) == ([0, 1], [(2, 1)])
            releases[1].set(), releases[2].set()
    assert (order, slots.queued) == ([0, 1, 2], 0)


@pytest.mark.parametrize("running", [True, False])
async def test_one_that_is_stopped_gives_its_place_back(running: bool) -> None:
    slots, order = Slots(lambda: 1), []
    first = anyio.Event()

    async def hold(name: str, until: anyio.Event, scope: anyio.CancelScope) -> None:
        with scope:
            async with slots.hold(lambda place: None):
                order.append(name)
                await until.wait()

    with anyio.fail_after(2):
        async with anyio.create_task_group() as group:
            scopes = [anyio.CancelScope() for _ in range(3)]
            group.start_soon(hold, "a", first, scopes[0])
            await anyio.wait_all_tasks_blocked()
            for name, scope in (("b", scopes[1]), ("c", scopes[2])):
                group.start_soon(hold, name, anyio.Event(), scope)
                await anyio.wait_all_tasks_blocked()
            scopes[0 if running else 1].cancel()
            await anyio.wait_all_tasks_blocked()
            first.set()
            await anyio.wait_all_tasks_blocked()
            assert order == (["a", "b"] if running else ["a", "c"])
            scopes[1].cancel(), scopes[2].cancel()


async def test_the_limit_counts_when_the_next_one_starts() -> None:
    limit = [1]
    slots, order = Slots(lambda: limit[0]), []

    async def hold(name: str) -> None:
        async with slots.hold(lambda place: None):
            order.append(name)
            await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        group.start_soon(hold, "a")
        await anyio.wait_all_tasks_blocked()
        limit[0] = 2
        group.start_soon(hold, "b")
        await anyio.wait_all_tasks_blocked()
        assert order == ["a", "b"]
        group.cancel_scope.cancel()


async def test_a_slot_that_is_lent_again_while_it_comes_back_is_neither_lost_nor_held_twice() -> None:
    """Two Agent calls of one message: the first has ended and waits for the slot, only then the second begins."""
    slots = Slots(lambda: 1)
    second, other, done = anyio.Event(), anyio.Event(), []

    async def lend(slot: Slot, until: anyio.Event, name: str) -> None:
        async with slot.lent():
            await until.wait()
        done.append(name)

    async def parent() -> None:
        async with slots.hold(lambda place: None) as slot, anyio.create_task_group() as calls:
            first = anyio.Event()
            calls.start_soon(lend, slot, first, "first")
            await anyio.wait_all_tasks_blocked()
            first.set()
            await anyio.wait_all_tasks_blocked()
            calls.start_soon(lend, slot, second, "second")

    async def stranger() -> None:
        async with slots.hold(lambda place: None):
            await other.wait()

    with anyio.fail_after(2):
        async with anyio.create_task_group() as group:
            group.start_soon(parent)
            group.start_soon(stranger)
            await anyio.wait_all_tasks_blocked()
            other.set()
            await anyio.wait_all_tasks_blocked()
            second.set()
        assert sorted(done) == ["first", "second"]
        async with slots.hold(lambda place: None), anyio.create_task_group() as group:
            group.start_soon(stranger)
            await anyio.wait_all_tasks_blocked()
            assert slots.queued == 1
            group.cancel_scope.cancel()

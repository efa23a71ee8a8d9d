"""Asks reach whoever can answer, are answered once, and are withdrawn when they end otherwise."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from attrs import define, field

from agent_core.ids import AgentId, RequestId
from agent_core.permissions.broker import NOBODY, PermissionBroker, Settled
from agent_core.permissions.options import options_for
from agent_core.permissions.policy import Call, PolicyContext
from agent_core.permissions.rules import MatchContext
from agent_core.permissions.types import (
    OptionKind,
    PermissionAnswer,
    PermissionFacts,
    PermissionMode,
    PermissionRequest,
    ToolKind,
)
from tests.unit.agent_core.builders import NOW

pytestmark = pytest.mark.anyio


def request(name: str = "r1") -> PermissionRequest:
    facts = PermissionFacts(command="make", cwd=Path("/w"))
    agent = AgentId("a1")
    where = MatchContext((Path("/w"),), Path("/home/me"))
    ctx = PolicyContext(PermissionMode.DEFAULT, (), (Path("/w"),), None, where)
    offered = options_for(Call("Bash", ToolKind.EXECUTE, False, facts), ctx, None)
    return PermissionRequest(
        RequestId(name), agent, agent, "x", "d", (), "Bash", ToolKind.EXECUTE, "t", "t", {}, "why", facts, offered, NOW
    )


@define(eq=False)
class Person:
    """Answers with what is put into `replies`; notes what was asked and what was withdrawn."""

    reply: PermissionAnswer | None = None
    silent: bool = True
    asked: list[str] = field(factory=list)
    withdrawn: list[str] = field(factory=list)

    async def ask(self, request: PermissionRequest) -> PermissionAnswer | None:
        self.asked.append(request.id)
        if not self.silent:
            return self.reply
        try:
            await anyio.sleep_forever()
        except BaseException:
            self.withdrawn.append(request.id)
            raise


def says(option: str) -> Person:
    return Person(PermissionAnswer(option), silent=False)


@pytest.fixture
async def broker() -> AsyncIterator[PermissionBroker]:
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            yield PermissionBroker(group)
            group.cancel_scope.cancel()


async def settle() -> None:
    for _ in range(8):
        await anyio.lowlevel.checkpoint()


@pytest.mark.spec("CTX-3")
async def test_nobody_to_ask_means_no(broker: PermissionBroker) -> None:
    assert await broker.ask(request()) == NOBODY


@pytest.mark.spec("PM-8")
async def test_the_first_answer_wins_and_the_others_are_withdrawn(broker: PermissionBroker) -> None:
    silent, quick = Person(), says("allowOnce")
    broker.attach(silent)
    broker.attach(quick)
    settled = await broker.ask(request())
    await settle()
    assert (settled.outcome, settled.decided_by, settled.allowed) == (OptionKind.ALLOW_ONCE, "user", True)
    assert (silent.asked, silent.withdrawn) == (["r1"], ["r1"])
    assert broker.pending == ()


async def test_one_who_cannot_answer_is_passed_over(broker: PermissionBroker) -> None:
    broker.attach(Person(None, silent=False))
    broker.attach(says("rejectOnce"))
    assert (await broker.ask(request())).outcome == OptionKind.REJECT_ONCE


async def test_when_all_are_passed_over_it_is_denied(broker: PermissionBroker) -> None:
    broker.attach(Person(None, silent=False))
    broker.attach(Person(None, silent=False))
    assert await broker.ask(request()) == NOBODY


async def test_an_option_that_was_not_offered_decides_nothing(broker: PermissionBroker) -> None:
    person = says("allowEverything")
    broker.attach(person)
    async with anyio.create_task_group() as group:
        done: list[Settled] = []

        async def ask() -> None:
            done.append(await broker.ask(request()))

        group.start_soon(ask)
        await settle()
        assert (done, person.asked, [each.id for each in broker.pending]) == ([], ["r1"], ["r1"])
        refused = broker.answer(RequestId("r1"), PermissionAnswer("allowAlways"))
        assert refused is not None and "was not offered" in refused
        assert broker.answer(RequestId("r1"), PermissionAnswer("allowOnce")) is None
    assert [each.allowed for each in done] == [True]


async def test_a_destination_that_was_not_offered_is_refused(broker: PermissionBroker) -> None:
    broker.attach(Person())
    async with anyio.create_task_group() as group:
        group.start_soon(broker.ask, request())
        await settle()
        answer = PermissionAnswer("allowSession", destination="userSettings")
        assert broker.answer(RequestId("r1"), answer) == (
            "destination 'userSettings' was not offered; this option stores in session"
        )
        broker.answer(RequestId("r1"), PermissionAnswer("rejectOnce"))


@pytest.mark.spec("PM-8")
async def test_a15_the_end_of_the_agent_withdraws_its_ask_and_a_late_answer_is_ignored(
    broker: PermissionBroker,
) -> None:
    person = Person()
    broker.attach(person)
    async with anyio.create_task_group() as group:
        group.start_soon(broker.ask, request())
        await settle()
        group.cancel_scope.cancel()
    await settle()
    assert (person.withdrawn, broker.pending) == (["r1"], ())
    late = broker.answer(RequestId("r1"), PermissionAnswer("allowOnce"))
    assert late == "this request is not open any more: it was answered, or its agent has ended"


@pytest.mark.spec("PM-8")
async def test_one_who_comes_late_gets_what_is_pending(broker: PermissionBroker) -> None:
    broker.attach(Person())
    async with anyio.create_task_group() as group:
        for name in ("r1", "r2"):
            group.start_soon(broker.ask, request(name))
        await settle()
        late = says("rejectOnce")
        broker.attach(late)
    assert sorted(late.asked) == ["r1", "r2"]


async def test_when_the_last_editor_leaves_its_asks_are_denied(broker: PermissionBroker) -> None:
    first, second, done = Person(), Person(), []
    broker.attach(first)
    broker.attach(second)

    async def ask() -> None:
        done.append(await broker.ask(request()))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await settle()
        broker.detach(first)
        await settle()
        assert (done, first.withdrawn) == ([], ["r1"])
        broker.detach(second)
    assert done == [NOBODY]


async def test_a3_many_asks_at_once_each_get_their_own_answer(broker: PermissionBroker) -> None:
    broker.attach(says("allowOnce"))
    outcomes: list[str] = []

    async def ask(name: str) -> None:
        outcomes.append((await broker.ask(request(name))).outcome)

    async with anyio.create_task_group() as group:
        for number in range(24):
            group.start_soon(ask, f"r{number}")
    assert outcomes == ["allowOnce"] * 24

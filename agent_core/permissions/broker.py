"""Brings asks to whoever can answer and answers back, once each (PM-5 to PM-8).

The registry of pending asks belongs to the runtime, not to a view: an asker that comes late gets all of them, the
first answer wins, and the others are withdrawn. With nobody left who could ever answer the ask is denied (CTX-3).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import anyio
from anyio.abc import TaskGroup
from attrs import define, field, frozen

from agent_core.events import Outcome
from agent_core.ids import RequestId
from agent_core.permissions.types import (
    DecidedBy,
    OptionKind,
    PermissionAnswer,
    PermissionOption,
    PermissionRequest,
)
from agent_core.ports import Asker

logger = logging.getLogger(__name__)


@frozen
class Settled:
    """How an ask ended. `option` and `answer` are None when nobody chose."""

    outcome: str
    decided_by: DecidedBy
    option: PermissionOption | None = None
    answer: PermissionAnswer | None = None

    @property
    def allowed(self) -> bool:
        return self.option is not None and self.option.kind.allows


NOBODY = Settled(Outcome.NO_CLIENT, "none")


Check = Callable[[Mapping[str, Any]], str | None]
"""What is wrong with an input, None when nothing is."""


@define(eq=False)
class _Pending:
    request: PermissionRequest
    check: Check
    done: anyio.Event = field(factory=anyio.Event)
    settled: Settled | None = None
    asked: dict[Asker, anyio.CancelScope] = field(factory=dict)

    def settle(self, settled: Settled) -> bool:
        """False when it was settled before: the first answer wins."""
        if self.settled is not None:
            return False
        self.settled = settled
        self.done.set()
        for scope in self.asked.values():
            scope.cancel()
        return True


@define(eq=False)
class PermissionBroker:
    """Tasks that wait for answers live in `group`, the runtime's own; `changed` is called after each change."""

    group: TaskGroup
    changed: Callable[[], None] = lambda: None
    _askers: list[Asker] = field(factory=list)
    _pending: dict[RequestId, _Pending] = field(factory=dict)

    def attach(self, asker: Asker) -> None:
        self._askers.append(asker)
        for pending in self._pending.values():
            self._offer(pending, asker)

    def detach(self, asker: Asker) -> None:
        self._askers.remove(asker)
        for pending in list(self._pending.values()):
            if (scope := pending.asked.pop(asker, None)) is not None:
                scope.cancel()
            self._deny_if_alone(pending)

    @property
    def pending(self) -> tuple[PermissionRequest, ...]:
        return tuple(pending.request for pending in self._pending.values())

    async def ask(self, request: PermissionRequest, check: Check = lambda input: None) -> Settled:
        """Wait for the answer without limit. Cancellation withdraws the ask everywhere. `check` is for what a person
        makes of the input."""
        pending = _Pending(request, check)
        self._pending[request.id] = pending
        try:
            for asker in self._askers:
                self._offer(pending, asker)
            self._deny_if_alone(pending)
            self.changed()
            await pending.done.wait()
            assert pending.settled is not None
            return pending.settled
        finally:
            pending.settle(Settled(Outcome.WITHDRAWN, "none"))
            del self._pending[request.id]
            self.changed()

    def answer(self, request_id: RequestId, answer: PermissionAnswer) -> str | None:
        """None when accepted, else why not. An unknown option, or an input that cannot run, is no decision."""
        pending = self._pending.get(request_id)
        if pending is not None and pending.settled is None and answer.updated_input is not None:
            allows = any(each.kind.allows for each in pending.request.options if each.id == answer.option_id)
            if allows and (problem := pending.check(answer.updated_input)):
                return f"updatedInput cannot run, so nothing is decided; the request stays open: {problem}"
        return self._take(request_id, answer)

    def _take(self, request_id: RequestId, answer: PermissionAnswer) -> str | None:
        pending = self._pending.get(request_id)
        if pending is None or pending.settled is not None:
            return "this request is not open any more: it was answered, or its agent has ended"
        option = next((each for each in pending.request.options if each.id == answer.option_id), None)
        if option is None:
            offered = ", ".join(each.id for each in pending.request.options)
            return f"optionId {answer.option_id!r} was not offered; choose one of {offered}"
        if (problem := _elsewhere(pending.request, option, answer)) is not None:
            return problem
        pending.settle(Settled(option.kind, "user", option, answer))
        return None

    def _offer(self, pending: _Pending, asker: Asker) -> None:
        scope = anyio.CancelScope()
        pending.asked[asker] = scope
        self.group.start_soon(self._put, pending, asker, scope)

    async def _put(self, pending: _Pending, asker: Asker, scope: anyio.CancelScope) -> None:
        with scope:
            answer = await _asked(asker, pending.request)
            if answer is None:
                pending.asked.pop(asker, None)
                self._deny_if_alone(pending)
            elif (
                self._take(pending.request.id, answer) is not None
            ):  # nobody could be told of a bad input but the model
                # No decision: the ask stays open for `agent/answer` and is not put to this asker again and again.
                await anyio.sleep_forever()

    def _deny_if_alone(self, pending: _Pending) -> None:
        if not pending.asked:
            pending.settle(NOBODY)


def _elsewhere(request: PermissionRequest, option: PermissionOption, answer: PermissionAnswer) -> str | None:
    """A person may have a lasting answer stored in any place that is read back, in no other one (B4)."""
    allowed = dict.fromkeys([option.destination, *request.destinations]) if option.rules else {option.destination: None}
    if answer.destination is None or answer.destination in allowed:
        return None
    places = ", ".join(str(each) for each in allowed if each is not None) or "nowhere"
    return f"destination {answer.destination!r} was not offered; this option stores in {places}"


async def _asked(asker: Asker, request: PermissionRequest) -> PermissionAnswer | None:
    """A fault of one asker means that it cannot answer; it must not reach the agents."""
    try:
        return await asker.ask(request)
    except Exception:
        logger.exception("an asker failed at request %s", request.id)
        return None


def is_stop(settled: Settled) -> bool:
    return settled.option is not None and settled.option.kind is OptionKind.REJECT_AND_STOP

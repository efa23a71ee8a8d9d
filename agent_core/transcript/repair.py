"""A broken log to a valid one (TR-3, E8). Pure: bytes in, events and closing bodies out."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from attrs import evolve, frozen

from agent_core.events import DurableBody, Ended, Event, Outcome, PermissionAsked, PermissionSettled, ToolEnded
from agent_core.ids import MessageId
from agent_core.messages import Message, TextBlock, ToolResultBlock, ToolUseBlock
from agent_core.state import AgentState, IllegalEvent, apply, unanswered
from agent_core.task import TaskStatus
from agent_core.transcript.codec import BadRecord, decode

INTERRUPTED = "The process ended while this call was running; whether it took effect is unknown."


@frozen
class Recovered:
    """`good_bytes` is the length of the intact prefix: a writer that goes on must cut the file there first."""

    events: tuple[Event, ...]
    state: AgentState | None
    good_bytes: int
    fault: str | None


def recover(data: bytes) -> Recovered:
    """Everything up to the first torn or damaged line; nothing before it is lost."""
    events: list[Event] = []
    state: AgentState | None = None
    offset, fault = 0, None
    for line in data.splitlines(keepends=True):
        try:
            if not line.endswith(b"\n"):
                raise BadRecord("the last line is torn")
            event = decode(line)
            if event.seq != len(events) + 1:
                raise BadRecord(f"record {event.seq} where {len(events) + 1} was due")
            state = apply(state, event)
        except (BadRecord, IllegalEvent) as error:
            fault = f"line {len(events) + 1}: {error}"
            break
        events.append(event)
        offset += len(line)
    return Recovered(tuple(events), state, offset, fault)


def closing(events: Iterable[Event], state: AgentState, at: datetime) -> list[DurableBody]:
    """What to append to a log whose process ended, so that no ask is open and the run has its end. Its open calls stay
    open until it goes on, see `earlier_results`."""
    if state.terminal:
        return []
    bodies: list[DurableBody] = [
        PermissionSettled(ask.request_id, ask.title, Outcome.WITHDRAWN, "none") for ask in open_asks(events)
    ]
    info = evolve(state.info, status=TaskStatus.INTERRUPTED, ended_at=at, pending_permissions=0)
    return [*bodies, Ended(info)]


def earlier_results(events: Iterable[Event], state: AgentState) -> dict[str, ToolResultBlock]:
    """What became of the open calls of a run whose process ended (protocol.md, agent/resume).

    One that had ended keeps its result. One that waited for an answer is left out, so that it is asked again, and so
    are those behind it: what asks runs alone and in order. Of any other the outcome is unknown.
    """
    ended: dict[str, ToolResultBlock] = {}
    waiting: dict[str, str | None] = {}
    for event in events:
        match event.body:
            case ToolEnded(id, status, output):
                ended[id] = ToolResultBlock(id, output, status == "failed")
            case PermissionAsked(request_id=request_id, tool_use_id=use_id):
                waiting[request_id] = use_id
            case PermissionSettled(request_id=request_id, outcome=outcome) if outcome != Outcome.WITHDRAWN:
                waiting.pop(request_id, None)
            case _:
                pass
    unknown = (TextBlock(INTERRUPTED),)
    results: dict[str, ToolResultBlock] = {}
    held_back = False
    for call in unanswered(state.messages):
        held_back = held_back or call.id in waiting.values()
        if call.id in ended:
            results[call.id] = ended[call.id]
        elif not held_back:
            results[call.id] = ToolResultBlock(call.id, unknown, is_error=True)
    return results


def open_asks(events: Iterable[Event]) -> list[PermissionAsked]:
    asks: dict[str, PermissionAsked] = {}
    for event in events:
        if isinstance(event.body, PermissionAsked):
            asks[event.body.request_id] = event.body
        elif isinstance(event.body, PermissionSettled):
            asks.pop(event.body.request_id, None)
    return list(asks.values())


def interrupted_results(
    calls: tuple[ToolUseBlock, ...], done: tuple[ToolResultBlock, ...], text: str, message_id: str
) -> Message:
    """One user message that answers every call: with its result where there is one, else with an error of `text`."""
    results = {result.tool_use_id: result for result in done}
    blocks = tuple(results.get(call.id, ToolResultBlock(call.id, (TextBlock(text),), is_error=True)) for call in calls)
    return Message(MessageId(message_id), "user", blocks)

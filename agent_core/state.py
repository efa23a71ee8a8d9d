"""An agent's state is a fold over its events; live and replayed logs use the same function."""

from __future__ import annotations

from typing import assert_never

from attrs import evolve, frozen

from agent_core.events import (
    AgentInfo,
    Compacted,
    Ended,
    Event,
    FilesChanged,
    HookRan,
    MessageAdded,
    Notified,
    PermissionAsked,
    PermissionSettled,
    Retrying,
    Started,
    StatusChanged,
    TextDelta,
    ThinkingDelta,
    ToolCalled,
    ToolEnded,
    ToolOutput,
    UsageReported,
)
from agent_core.messages import Message, ToolResultBlock, ToolUseBlock
from agent_core.task import TERMINAL, TaskStatus, may_move


class IllegalEvent(Exception):
    """An event that cannot follow what came before: a bug in the engine or a damaged log."""


@frozen
class AgentState:
    """`stop_reason` is the service's word on the last assistant message; `run_turns` counts replies of this run."""

    info: AgentInfo
    messages: tuple[Message, ...] = ()
    stop_reason: str | None = None
    run_turns: int = 0
    changed_files: tuple[str, ...] = ()
    cleared: frozenset[str] = frozenset()
    """Calls whose results have left the prompt; the messages here keep them."""
    context_tokens: int = 0
    """Of the last request and its answer."""

    @property
    def terminal(self) -> bool:
        return self.info.status in TERMINAL


def apply(state: AgentState | None, event: Event) -> AgentState:
    """The state after `event`. IllegalEvent when the event cannot come now."""
    body = event.body
    if isinstance(body, Started):
        if state is not None:
            raise IllegalEvent(f"agent {event.agent_id} was started twice")
        return AgentState(body.info)
    if state is None:
        raise IllegalEvent(f"agent {event.agent_id}: {type(body).__name__} came before Started")
    match body:
        case StatusChanged():
            return _status(state, body)
        case MessageAdded(message, stop_reason):
            assistant = message.role == "assistant"
            return evolve(
                state,
                messages=(*state.messages, message),
                stop_reason=stop_reason if assistant else state.stop_reason,
                run_turns=state.run_turns + assistant,
            )
        case ToolCalled(name=name):
            return evolve(state, info=evolve(state.info, last_tool=name))
        case PermissionAsked():
            return _asks(state, +1)
        case PermissionSettled():
            return _asks(state, -1)
        case UsageReported(usage=usage, context_tokens=context):
            return evolve(state, info=evolve(state.info, usage=usage), context_tokens=context)
        case Compacted(after_tokens=context, cleared=cleared):
            return evolve(state, cleared=state.cleared | set(cleared), context_tokens=context)
        case FilesChanged(paths):
            known = dict.fromkeys(state.changed_files)
            return evolve(state, changed_files=tuple(known | dict.fromkeys(str(path) for path, _ in paths)))
        case Ended(info):
            _check_move(state.info.status, info.status)
            return evolve(state, info=info)
        case ToolEnded() | Notified() | HookRan() | TextDelta() | ThinkingDelta() | ToolOutput() | Retrying():
            return state
        case _:
            assert_never(body)


def unanswered(messages: tuple[Message, ...]) -> tuple[ToolUseBlock, ...]:
    """The tool calls of the last assistant message that no later message answers (E8)."""
    answered: set[str] = set()
    for message in reversed(messages):
        if message.role == "assistant":
            return tuple(use for use in message.tool_uses if use.id not in answered)
        answered.update(block.tool_use_id for block in message.content if isinstance(block, ToolResultBlock))
    return ()


def _status(state: AgentState, body: StatusChanged) -> AgentState:
    before = state.info.status
    if body.status is not before:
        _check_move(before, body.status)
    info = evolve(
        state.info,
        status=body.status,
        background=body.background,
        worktree=body.worktree or state.info.worktree,
    )
    if before in TERMINAL or before is TaskStatus.PENDING:
        info = evolve(info, stop_reason=None, ended_at=None, result=None, error=None)
        return evolve(state, info=info, run_turns=0)
    return evolve(state, info=info)


def _asks(state: AgentState, change: int) -> AgentState:
    count = max(0, state.info.pending_permissions + change)
    return evolve(state, info=evolve(state.info, pending_permissions=count))


def _check_move(before: TaskStatus, after: TaskStatus) -> None:
    if not may_move(before, after):
        raise IllegalEvent(f"an agent that is {before} cannot become {after}")

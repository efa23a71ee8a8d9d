"""Everything that can happen to an agent, as a closed union; the log holds nothing else.

    EventBody
      Durable: Started StatusChanged MessageAdded ToolCalled ToolEnded PermissionAsked PermissionSettled
               UsageReported FilesChanged Notified Compacted HookRan Ended
      Passing: TextDelta ThinkingDelta ToolOutput Retrying

Durable events are numbered without gaps, written to the transcript and replayed. Passing ones are shown live and
dropped once the durable event that contains their outcome has arrived.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from attrs import frozen

from agent_core.definitions import BaseKind, Isolation
from agent_core.hooks.values import HookOutcome
from agent_core.ids import AgentId, ConversationId, MessageId, RequestId
from agent_core.messages import Message, ResultContent, StopReason, Usage
from agent_core.permissions.types import DecidedBy, PermissionMode, ToolKind
from agent_core.task import TaskStatus


@frozen
class WorktreeInfo:
    """`path` is absolute; `branch` is its own branch; `base_commit` the commit it started from. `by_hook`: a hook made
    it, and it may be none of git's: then the other two are empty. `note` is what people must know of the base."""

    path: Path
    branch: str
    base_commit: str
    by_hook: bool = False
    base: BaseKind = "head"
    note: str | None = None


@frozen
class AgentInfo:
    """One agent as lists show it (protocol.md, Values). `result` is its final answer, `error` why it failed."""

    id: AgentId
    root_id: AgentId
    parent_id: AgentId | None
    depth: int
    name: str | None
    agent_type: str
    description: str
    status: TaskStatus
    stop_reason: StopReason | None
    background: bool
    fork: bool
    isolation: Isolation
    worktree: WorktreeInfo | None
    model: str
    permission_mode: PermissionMode
    cwd: Path
    started_at: datetime
    ended_at: datetime | None
    usage: Usage
    output_file: Path
    pending_permissions: int
    last_tool: str | None
    result: str | None
    error: str | None
    conversation_id: ConversationId


@frozen
class ForkBase:
    """What a fork began with: the messages of that agent up to the event `seq`."""

    agent_id: AgentId
    seq: int


@frozen
class Started:
    """Once per agent, ever, at registration. `head` names the stored tools and system prompt (TR-5), `task` is what it
    was launched for: one that is interrupted in the queue has no message yet."""

    info: AgentInfo
    head: str | None = None
    base: ForkBase | None = None
    task: str | None = None


@frozen
class StatusChanged:
    """`worktree` comes with the first `running` of an isolated agent, once its checkout exists; `summary` is one line
    on what a background agent does (RUN-11)."""

    status: TaskStatus
    background: bool
    queue_position: int | None = None
    worktree: WorktreeInfo | None = None
    summary: str | None = None


@frozen
class MessageAdded:
    """`stop_reason` is the service's word for why an assistant message ended (`end_turn`, `tool_use`, ...)."""

    message: Message
    stop_reason: str | None = None


@frozen
class ToolCalled:
    """A call was announced. `locations` are files that it names, with a line counted from 0 or None."""

    tool_call_id: str
    name: str
    kind: ToolKind
    title: str
    input: Mapping[str, Any]
    locations: tuple[tuple[Path, int | None], ...]


@frozen
class ToolEnded:
    tool_call_id: str
    status: Literal["completed", "failed"]
    output: ResultContent
    diff: str | None
    duration_ms: int


class Outcome(StrEnum):
    """How an ask ended, beside the option kinds."""

    WITHDRAWN = "withdrawn"
    NO_CLIENT = "noClient"


@frozen
class PermissionAsked:
    request_id: RequestId
    title: str
    tool_use_id: str | None = None


@frozen
class PermissionSettled:
    """`outcome` is an OptionKind value or an Outcome value."""

    request_id: RequestId
    title: str
    outcome: str
    decided_by: DecidedBy
    comment: str | None = None


@frozen
class UsageReported:
    """`usage` is the run's sum so far; `context_tokens` what the last request held, of at most `context_limit`."""

    usage: Usage
    context_tokens: int
    context_limit: int


@frozen
class FilesChanged:
    """(absolute path, added | modified | deleted)."""

    paths: tuple[tuple[Path, str], ...]


@frozen
class Notified:
    """The end of a background agent has reached this agent's conversation."""

    from_agent_id: AgentId
    status: TaskStatus
    summary: str


@frozen
class Compacted:
    """Results of old calls have left the prompt, to make room; `cleared` are the calls. Tokens are estimates."""

    before_tokens: int
    after_tokens: int
    trigger: Literal["auto", "manual"]
    cleared: tuple[str, ...]


@frozen
class HookRan:
    """A hook was called at that event of the agent's work and answered `outcome`; `message` is for people (HK-4)."""

    hook_event: str
    outcome: HookOutcome
    message: str | None = None


@frozen
class Ended:
    """The end of one run, with the agent's final state."""

    info: AgentInfo


@frozen
class TextDelta:
    message_id: MessageId
    delta: str


@frozen
class ThinkingDelta:
    message_id: MessageId
    delta: str


@frozen
class ToolOutput:
    """A call that runs; `output` is new text of it, empty when it just began."""

    tool_call_id: str
    output: str


@frozen
class Retrying:
    """The model request is tried again after `delay_ms`; deltas of the failed attempt are void."""

    attempt: int
    max_attempts: int
    delay_ms: int
    reason: str


DurableBody = (
    Started
    | StatusChanged
    | MessageAdded
    | ToolCalled
    | ToolEnded
    | PermissionAsked
    | PermissionSettled
    | UsageReported
    | FilesChanged
    | Notified
    | Compacted
    | HookRan
    | Ended
)
PassingBody = TextDelta | ThinkingDelta | ToolOutput | Retrying
EventBody = DurableBody | PassingBody
PASSING = (TextDelta, ThinkingDelta, ToolOutput, Retrying)


@frozen
class Event:
    """`seq` numbers durable events from 1. A passing event carries the last `seq` and its own `delta_seq` from 1."""

    agent_id: AgentId
    seq: int
    delta_seq: int | None
    at: datetime
    body: EventBody

    @property
    def durable(self) -> bool:
        return self.delta_seq is None

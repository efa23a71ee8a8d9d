"""Wire types and method names of `agent/*`, version 1: the only place where a wire name is written.

Fields are snake_case here and camelCase on the wire (`rpc.wire_converter`). A field with a default is optional and left
out when it has its default. `protocol.md` documents each method; tests/test_protocol_doc.py fails when they differ.
"""

from __future__ import annotations

from typing import Any, Literal

from attrs import frozen

VERSION = 1

Status = Literal["pending", "running", "waiting", "completed", "failed", "stopped", "interrupted"]
Mode = Literal["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions", "bubble"]
Kind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"]
OptionKind = Literal[
    "allowOnce", "allowSession", "allowAlways", "rejectOnce", "rejectSession", "rejectAlways", "rejectAndStop"
]
Destination = Literal["session", "localSettings", "projectSettings", "userSettings"]
Json = dict[str, Any]

# Values


@frozen
class Position:
    line: int
    character: int


@frozen
class Range:
    start: Position
    end: Position


@frozen
class Usage:
    """Tokens of the whole run; `duration_ms` in milliseconds."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_creation_tokens: int
    tool_uses: int
    turns: int
    duration_ms: int
    cost_usd: float | None = None


@frozen
class WorktreeInfo:
    path: str
    branch: str
    base_commit: str
    base: Literal["head", "snapshot", "fresh"] | None = None
    note: str | None = None


@frozen
class AgentInfo:
    id: str
    root_id: str
    depth: int
    agent_type: str
    description: str
    status: Status
    background: bool
    fork: bool
    isolation: Literal["none", "worktree", "remote"]
    model: str
    permission_mode: Mode
    cwd: str
    started_at: str
    usage: Usage
    output_file: str
    pending_permissions: int
    conversation_id: str
    parent_id: str | None = None
    name: str | None = None
    stop_reason: Literal["end_turn", "max_tokens", "max_turns", "refusal", "cancelled"] | None = None
    worktree: WorktreeInfo | None = None
    ended_at: str | None = None
    last_tool: str | None = None
    result: str | None = None
    error: str | None = None


@frozen
class AgentResult:
    agent: AgentInfo


# agent/spawn


@frozen
class SpawnContext:
    """What the user looks at. `diagnostics` are LSP diagnostics."""

    uri: str | None = None
    range: Range | None = None
    diagnostics: list[Json] | None = None


@frozen
class SpawnParams:
    prompt: str
    description: str | None = None
    agent_type: str | None = None
    model: str | None = None
    permission_mode: Mode | None = None
    isolation: Literal["none", "worktree", "remote"] | None = None
    background: bool | None = None
    fork: bool | None = None
    parent_id: str | None = None
    name: str | None = None
    team_name: str | None = None
    cwd: str | None = None
    max_turns: int | None = None
    context: SpawnContext | None = None


# agent/list, agent/send, agent/stop, agent/wait, agent/transcript


@frozen
class ListParams:
    conversation_id: str | None = None


@frozen
class ListResult:
    agents: list[AgentInfo]


@frozen
class SendParams:
    to: str
    message: str


@frozen
class StopParams:
    agent_id: str
    scope: Literal["turn", "agent", "tree"] | None = None


@frozen
class BackgroundParams:
    agent_id: str


@frozen
class ResumeParams:
    agent_id: str
    message: str | None = None


@frozen
class ConversationsParams:
    pass


@frozen
class Conversation:
    """`title` is made of what was said first; `agents` counts those besides the main thread."""

    id: str
    title: str
    started_at: str
    agents: int


@frozen
class ConversationsResult:
    conversations: list[Conversation]


@frozen
class ConversationParams:
    """`id` absent: a new conversation."""

    id: str | None = None


@frozen
class ConversationResult:
    conversation: Conversation


@frozen
class WaitParams:
    agent_id: str


@frozen
class TrustParams:
    uri: str
    trusted: bool


@frozen
class TrustResult:
    trusted: bool


@frozen
class TranscriptParams:
    agent_id: str
    after_seq: int | None = None
    limit: int | None = None


@frozen
class TranscriptEvent:
    seq: int
    at: str
    event: Json


@frozen
class TranscriptResult:
    events: list[TranscriptEvent]
    next_seq: int
    complete: bool


# agent/definitions


@frozen
class DefinitionsParams:
    pass


@frozen
class Definition:
    name: str
    description: str
    source: Literal["managed", "cli", "project", "user", "plugin", "builtin"]
    model: str
    overridden: bool
    uri: str | None = None
    tools: list[str] | None = None
    permission_mode: Mode | None = None
    isolation: Literal["none", "worktree"] | None = None
    background: bool | None = None
    color: str | None = None


@frozen
class Problem:
    """`severity` as in LSP: 1 error, 2 warning."""

    uri: str
    range: Range
    severity: int
    message: str


@frozen
class DefinitionsResult:
    agents: list[Definition]
    problems: list[Problem]


# agent/permission, agent/permissions, agent/answer


@frozen
class ChainLink:
    id: str
    agent_type: str
    description: str


@frozen
class AskingAgent:
    id: str
    root_id: str
    agent_type: str
    description: str
    chain: list[ChainLink]


@frozen
class AskedTool:
    name: str
    kind: Kind
    use_id: str


@frozen
class PermissionDetail:
    """`edit` is an LSP WorkspaceEdit, `diff` unified."""

    command: str | None = None
    cwd: str | None = None
    edit: Json | None = None
    diff: str | None = None
    url: str | None = None
    server: str | None = None


@frozen
class PermissionOption:
    id: str
    kind: OptionKind
    label: str
    rule: str | None = None
    destination: Destination | None = None


@frozen
class DestinationFile:
    """The absolute path of the file that an answer stored in `destination` goes to."""

    destination: Destination
    path: str


@frozen
class PermissionParams:
    request_id: str
    agent: AskingAgent
    tool: AskedTool
    title: str
    input: Json
    reason: str
    options: list[PermissionOption]
    created_at: str
    detail: PermissionDetail | None = None
    destinations: list[Destination] | None = None
    destination_files: list[DestinationFile] | None = None


@frozen
class PermissionResult:
    """Either `option_id`, or `cancelled`: no decision, never an allow."""

    option_id: str | None = None
    comment: str | None = None
    updated_input: Json | None = None
    destination: Destination | None = None
    cancelled: bool | None = None


@frozen
class PermissionsParams:
    pass


@frozen
class PermissionsResult:
    requests: list[PermissionParams]


@frozen
class AnswerParams:
    request_id: str
    option_id: str | None = None
    comment: str | None = None
    updated_input: Json | None = None
    destination: Destination | None = None
    cancelled: bool | None = None


@frozen
class AnswerResult:
    accepted: bool
    reason: str | None = None


# agent/review, agent/apply, agent/content


@frozen
class ReviewParams:
    agent_id: str
    round: Literal["all", "new"] | None = None


@frozen
class ReviewBase:
    commit: str
    branch: str | None = None


@frozen
class Hunk:
    id: str
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    header: str
    text: str
    state: Literal["open", "accepted", "rejected"]


@frozen
class FileConflict:
    reason: str
    hunks: list[str]


@frozen
class FileChange:
    path: str
    status: Literal["added", "modified", "deleted", "renamed", "copied", "typechange", "mode"]
    binary: bool
    uri: str
    base_uri: str
    worktree_uri: str
    hunks: list[Hunk]
    notes: list[str]
    needs_confirmation: bool
    old_path: str | None = None
    conflict: FileConflict | None = None


@frozen
class ReviewStats:
    files: int
    insertions: int
    deletions: int


@frozen
class Review:
    agent_id: str
    round: Literal["all", "new"]
    base: ReviewBase
    head: str
    files: list[FileChange]
    stats: ReviewStats
    worktree: str | None = None


@frozen
class FileSelection:
    """`hunks` absent means the whole file."""

    path: str
    hunks: list[str] | None = None


@frozen
class ApplyParams:
    agent_id: str
    files: list[FileSelection] | None = None
    dry_run: bool | None = None


@frozen
class AppliedFile:
    path: str
    hunks: list[str]


@frozen
class ApplyConflict:
    path: str
    reason: str
    hunk: str | None = None


@frozen
class ApplyResult:
    applied: list[AppliedFile]
    conflicts: list[ApplyConflict]
    remaining: int
    edit: Json | None = None
    failure_reason: str | None = None
    recover_ref: str | None = None


@frozen
class DiscardParams:
    agent_id: str
    files: list[FileSelection] | None = None


@frozen
class DiscardResult:
    discarded: list[AppliedFile]
    recover_ref: str


@frozen
class RestoreFile:
    path: str


@frozen
class RestoreParams:
    agent_id: str
    recover_ref: str
    files: list[RestoreFile] | None = None


@frozen
class RestoreResult:
    restored: list[str]
    conflicts: list[ApplyConflict]


@frozen
class FinishParams:
    agent_id: str
    as_: Literal["commit", "branch", "merge"]
    message: str | None = None
    branch: str | None = None


@frozen
class FinishConflict:
    path: str
    reason: str


@frozen
class FinishResult:
    conflicts: list[FinishConflict]
    commit: str | None = None
    branch: str | None = None


@frozen
class Comment:
    """`line` counts from 0 in the agent's version."""

    path: str
    text: str
    line: int | None = None
    hunk: str | None = None


@frozen
class CommentParams:
    agent_id: str
    comments: list[Comment]


@frozen
class ContentParams:
    uri: str


@frozen
class ContentResult:
    text: str
    language_id: str | None = None


# agent/progress


@frozen
class ProgressParams:
    """`event` is {kind, ...}; the kinds are those of protocol.md. `delta_seq` marks a passing event."""

    agent_id: str
    root_id: str
    seq: int
    at: str
    event: Json
    parent_id: str | None = None
    delta_seq: int | None = None


INBOUND: dict[str, tuple[type, type]] = {
    "agent/spawn": (SpawnParams, AgentResult),
    "agent/list": (ListParams, ListResult),
    "agent/send": (SendParams, AgentResult),
    "agent/stop": (StopParams, AgentResult),
    "agent/background": (BackgroundParams, AgentResult),
    "agent/resume": (ResumeParams, AgentResult),
    "agent/conversations": (ConversationsParams, ConversationsResult),
    "agent/conversation": (ConversationParams, ConversationResult),
    "agent/wait": (WaitParams, AgentResult),
    "agent/trust": (TrustParams, TrustResult),
    "agent/transcript": (TranscriptParams, TranscriptResult),
    "agent/definitions": (DefinitionsParams, DefinitionsResult),
    "agent/permissions": (PermissionsParams, PermissionsResult),
    "agent/answer": (AnswerParams, AnswerResult),
    "agent/review": (ReviewParams, Review),
    "agent/apply": (ApplyParams, ApplyResult),
    "agent/discard": (DiscardParams, DiscardResult),
    "agent/restore": (RestoreParams, RestoreResult),
    "agent/finish": (FinishParams, FinishResult),
    "agent/comment": (CommentParams, AgentResult),
    "agent/content": (ContentParams, ContentResult),
}
"""Requests of the client: method to (params, result)."""

OUTBOUND_REQUESTS: dict[str, tuple[type, type]] = {"agent/permission": (PermissionParams, PermissionResult)}
OUTBOUND_NOTIFICATIONS: dict[str, type] = {"agent/progress": ProgressParams}

PERMISSION = "agent/permission"
PROGRESS = "agent/progress"
SCHEMES = ("agent-base", "agent-worktree", "agent-transcript")

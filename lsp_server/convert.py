"""Core values to wire values and back, by hand and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, assert_never, cast

from agent_core import events
from agent_core.conversations import Conversation as CoreConversation
from agent_core.definitions import AgentDefinition
from agent_core.definitions import Problem as CoreProblem
from agent_core.events import AgentInfo, Event, WorktreeInfo
from agent_core.messages import (
    Block,
    ImageBlock,
    Message,
    RedactedThinkingBlock,
    ResultContent,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from agent_core.permissions.types import PermissionAnswer, PermissionRequest
from lsp_server import protocol as wire
from lsp_server.edits import whole_file_edit
from lsp_server.wire import to_wire

_NOWHERE = wire.Range(wire.Position(0, 0), wire.Position(0, 0))


def time(at: datetime) -> str:
    """RFC 3339 in UTC, milliseconds."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def agent(info: AgentInfo) -> wire.AgentInfo:
    return wire.AgentInfo(
        id=info.id,
        root_id=info.root_id,
        parent_id=info.parent_id,
        depth=info.depth,
        name=info.name,
        agent_type=info.agent_type,
        description=info.description,
        status=info.status.value,
        stop_reason=info.stop_reason.value if info.stop_reason else None,
        background=info.background,
        fork=info.fork,
        isolation=info.isolation,
        worktree=_worktree(info.worktree) if info.worktree else None,
        model=info.model,
        permission_mode=info.permission_mode.value,
        cwd=str(info.cwd),
        started_at=time(info.started_at),
        ended_at=time(info.ended_at) if info.ended_at else None,
        usage=usage(info.usage),
        output_file=str(info.output_file),
        pending_permissions=info.pending_permissions,
        last_tool=info.last_tool,
        result=info.result,
        error=info.error,
        conversation_id=info.conversation_id,
    )


def _worktree(worktree: WorktreeInfo) -> wire.WorktreeInfo:
    base = None if worktree.by_hook else worktree.base
    return wire.WorktreeInfo(str(worktree.path), worktree.branch, worktree.base_commit, base, worktree.note)


def usage(used: Usage) -> wire.Usage:
    return wire.Usage(
        used.input_tokens,
        used.output_tokens,
        used.cache_read_tokens,
        used.cache_creation_tokens,
        used.tool_uses,
        used.turns,
        used.duration_ms,
        round(used.cost_usd, 6) or None,
    )


def progress(event: Event, info: AgentInfo) -> wire.ProgressParams:
    return wire.ProgressParams(
        agent_id=event.agent_id,
        root_id=info.root_id,
        parent_id=info.parent_id,
        seq=event.seq,
        delta_seq=event.delta_seq,
        at=time(event.at),
        event=event_body(event.body),
    )


def transcript_event(event: Event) -> wire.TranscriptEvent:
    return wire.TranscriptEvent(event.seq, time(event.at), event_body(event.body))


def event_body(body: events.EventBody) -> wire.Json:
    """{kind, ...}: the table of protocol.md."""
    match body:
        case events.Started(info=info):
            return {"kind": "started", "agent": to_wire(agent(info))}
        case events.StatusChanged():
            fields = {"kind": "status", "status": body.status.value, "background": body.background}
            return _with(fields, queuePosition=body.queue_position, summary=body.summary)
        case events.MessageAdded(message):
            return _message(message)
        case events.ToolCalled():
            return _tool_called(body)
        case events.ToolEnded():
            return _with(
                {"kind": "toolUpdate", "toolCallId": body.tool_call_id, "status": body.status},
                output=_text(body.output),
                diff=body.diff,
                durationMs=body.duration_ms,
            )
        case events.PermissionAsked(request_id=request_id, title=title):
            return {"kind": "permissionRequested", "requestId": request_id, "title": title}
        case events.PermissionSettled():
            return _with(
                {"kind": "permissionResolved", "requestId": body.request_id, "title": body.title},
                outcome=str(body.outcome),
                decidedBy=body.decided_by,
                comment=body.comment,
            )
        case events.UsageReported(used, context, limit):
            return {
                "kind": "usage",
                "usage": to_wire(usage(used)),
                "contextTokens": context,
                "contextLimit": limit,
            }
        case events.FilesChanged(paths):
            return {"kind": "filesChanged", "paths": [{"path": str(path), "status": how} for path, how in paths]}
        case events.Notified(from_agent_id, status, summary):
            return {"kind": "notification", "fromAgentId": from_agent_id, "status": status.value, "summary": summary}
        case events.Compacted(before, after, trigger):
            return {"kind": "compacted", "beforeTokens": before, "afterTokens": after, "trigger": trigger}
        case events.HookRan():
            return _with({"kind": "hook", "hookEvent": body.hook_event, "outcome": body.outcome}, message=body.message)
        case events.Ended(info):
            return {"kind": "ended", "agent": to_wire(agent(info))}
        case events.TextDelta(message_id, delta):
            return {"kind": "text", "messageId": message_id, "delta": delta}
        case events.ThinkingDelta(message_id, delta):
            return {"kind": "thinking", "messageId": message_id, "delta": delta}
        case events.ToolOutput(tool_call_id, output):
            fields = {"kind": "toolUpdate", "toolCallId": tool_call_id, "status": "in_progress"}
            return _with(fields, output=output or None)
        case events.Retrying():
            return {
                "kind": "retry",
                "attempt": body.attempt,
                "maxAttempts": body.max_attempts,
                "delayMs": body.delay_ms,
                "reason": body.reason,
            }
        case _:
            assert_never(body)


def permission(request: PermissionRequest, encoding: str) -> wire.PermissionParams:
    return wire.PermissionParams(
        request_id=request.id,
        agent=wire.AskingAgent(
            request.agent_id,
            request.root_id,
            request.agent_type,
            request.description,
            [wire.ChainLink(link.id, link.agent_type, link.description) for link in request.chain],
        ),
        tool=wire.AskedTool(request.tool_name, request.tool_kind.value, request.tool_use_id),
        title=request.title,
        input=dict(request.input),
        reason=request.reason,
        detail=_detail(request, encoding),
        options=[
            wire.PermissionOption(
                option.id, option.kind.value, option.label, ", ".join(option.rules) or None, option.destination
            )
            for option in request.options
        ],
        created_at=time(request.created_at),
        destinations=list(request.destinations) or None,
        destination_files=[wire.DestinationFile(name, str(path)) for name, path in request.destination_files.items()]
        or None,
    )


def answer(result: wire.PermissionResult | wire.AnswerParams) -> PermissionAnswer | None:
    """None for no decision."""
    if result.cancelled or result.option_id is None:
        return None
    return PermissionAnswer(result.option_id, result.comment, result.updated_input, result.destination)


def conversation(found: CoreConversation) -> wire.Conversation:
    return wire.Conversation(found.id, found.title, time(found.started_at), found.agents)


def definition(found: AgentDefinition, overridden: bool) -> wire.Definition:
    return wire.Definition(
        name=found.name,
        description=found.description,
        source=found.source,
        uri=found.path.as_uri() if found.path else None,
        model=found.model or "inherit",
        tools=list(found.tools) if found.tools is not None else None,
        permission_mode=found.permission_mode.value if found.permission_mode else None,
        isolation=found.isolation,
        background=found.background or None,
        color=found.color,
        overridden=overridden,
    )


def problem(found: CoreProblem) -> wire.Problem:
    where = wire.Range(wire.Position(found.line, 0), wire.Position(found.line + 1, 0))
    uri = found.path.as_uri() if found.path.is_absolute() else str(found.path)
    return wire.Problem(uri, where if found.path.is_absolute() else _NOWHERE, found.severity, found.message)


def _detail(request: PermissionRequest, encoding: str) -> wire.PermissionDetail | None:
    facts = request.facts
    if facts.command is None and facts.diff is None and facts.edit is None:
        return None
    return wire.PermissionDetail(
        command=facts.command,
        cwd=str(facts.cwd) if facts.cwd else None,
        edit=whole_file_edit(*facts.edit, encoding) if facts.edit else None,
        diff=facts.diff,
    )


def _message(message: Message) -> wire.Json:
    content = [_block(block) for block in message.content]
    fields = {"kind": "message", "role": message.role, "content": content, "messageId": message.id}
    return _with(fields, meta=message.meta)


def _tool_called(body: events.ToolCalled) -> wire.Json:
    return {
        "kind": "toolCall",
        "toolCallId": body.tool_call_id,
        "name": body.name,
        "toolKind": body.kind.value,
        "title": body.title,
        "input": dict(body.input),
        "locations": [_location(path, line) for path, line in body.locations],
    }


def _location(path: Path, line: int | None) -> wire.Json:
    fields: wire.Json = {"uri": path.as_uri()}
    if line is None:
        return fields
    return {**fields, "range": to_wire(wire.Range(wire.Position(line, 0), wire.Position(line, 0)))}


def _block(block: Block) -> wire.Json:
    match block:
        case TextBlock(text):
            return {"type": "text", "text": text}
        case ThinkingBlock(thinking):
            return {"type": "thinking", "thinking": thinking}
        case RedactedThinkingBlock():
            return {"type": "thinking", "thinking": ""}
        case ToolUseBlock(id, name, input):
            return {"type": "toolUse", "id": id, "name": name, "input": input}
        case ToolResultBlock(use_id, content, is_error):
            blocks = [_block(cast(Block, part)) for part in content]
            return {"type": "toolResult", "toolUseId": use_id, "content": blocks, "isError": is_error}
        case ImageBlock(media_type, data):
            return {"type": "image", "mediaType": media_type, "data": data}
        case _:
            assert_never(block)


def _text(content: ResultContent) -> str:
    return "".join(part.text for part in content if isinstance(part, TextBlock))


def _with(fields: Mapping[str, Any], **optional: Any) -> wire.Json:
    return {**fields, **{name: value for name, value in optional.items() if value is not None}}

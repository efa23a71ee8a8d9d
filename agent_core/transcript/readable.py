"""Events as Markdown for people: the output file, and the document behind `agent-transcript:` (RES-8). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from agent_core.events import (
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
from agent_core.messages import Message, TextBlock

_MAX_OUTPUT = 2_000
"""Characters of one tool result; the whole is in the transcript."""


def render_all(events: Iterable[Event]) -> str:
    return "".join(render(event) for event in events)


def render(event: Event) -> str:
    """The text that this event adds, with a final blank line; empty when it adds none."""
    match event.body:
        case Started(info=info):
            return f"# {info.description or info.agent_type}\n\n{info.agent_type} `{info.id}`, model {info.model}\n\n"
        case MessageAdded(message):
            return _message(message)
        case ToolCalled(title=title):
            return f"### {title}\n\n"
        case ToolEnded(status=status, output=output, diff=diff):
            text = "".join(block.text for block in output if isinstance(block, TextBlock))
            if diff:
                return _fenced(diff, "diff")
            return ("Failed:\n\n" if status == "failed" else "") + _fenced(_shortened(text), "")
        case PermissionAsked(title=title):
            return f"*Asked for permission: {title}*\n\n"
        case PermissionSettled(outcome=outcome, comment=comment):
            return f"*Answered: {outcome}{f' ({comment})' if comment else ''}*\n\n"
        case Notified(summary=summary):
            return f"*{summary}*\n\n"
        case Compacted(before_tokens=before, after_tokens=after):
            return f"*Made room in the context: {before} tokens became about {after}*\n\n"
        case HookRan():
            return f"*Hook {event.body.hook_event}: {event.body.outcome}{_said(event.body.message)}*\n\n"
        case Ended(info):
            usage = info.usage
            line = f"{info.status}, {usage.total_tokens} tokens, {usage.tool_uses} tool uses, {usage.duration_ms} ms"
            return f"---\n\n{info.error or ''}\n\n*{line}*\n\n" if info.error else f"---\n\n*{line}*\n\n"
        case StatusChanged() | UsageReported() | FilesChanged():
            return ""
        case TextDelta() | ThinkingDelta() | ToolOutput() | Retrying():
            return ""
        case _:
            assert_never(event.body)


def _said(message: str | None) -> str:
    return f" ({_shortened(' '.join(message.split()))})" if message else ""


def _message(message: Message) -> str:
    texts = [block.text.strip() for block in message.content if isinstance(block, TextBlock)]
    shown = "\n\n".join(text for text in texts if text and not text.startswith("<environment>"))
    if not shown or message.meta:
        return ""
    heading = "## Task\n\n" if message.role == "user" else ""
    return f"{heading}{shown}\n\n"


def _shortened(text: str) -> str:
    if len(text) <= _MAX_OUTPUT:
        return text
    half = _MAX_OUTPUT // 2
    return f"{text[:half]}\n... {len(text) - _MAX_OUTPUT} characters left out ...\n{text[-half:]}"


def _fenced(text: str, language: str) -> str:
    if not text.strip():
        return ""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n\n"

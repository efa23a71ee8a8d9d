"""A turn of the script as an answer of the service: content blocks, one message, or its stream events."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

from attrs import frozen

from lsp_server.demo.body import compact
from lsp_server.demo.loading import ScriptError
from lsp_server.demo.matching import View, fill
from lsp_server.demo.script import Content, RedactedThinking, Text, Thinking, ToolUse, Turn
from lsp_server.demo.signing import sign
from lsp_server.demo.validation import input_problem

Event = dict[str, Any]


@frozen
class Answer:
    """`content` in wire form; `usage` complete."""

    id: str
    model: str
    content: tuple[Event, ...]
    stop_reason: str
    usage: Mapping[str, Any]

    def message(self) -> Event:
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": list(self.content),
            "stop_reason": self.stop_reason,
            "stop_sequence": None,
            "usage": dict(self.usage),
        }


def make_answer(turn: Turn, view: View, label: str, input_usage: Mapping[str, Any]) -> Answer:
    """`label` makes the ids: `msg_<label>`, `toolu_<label>_<index>`. ScriptError when the turn does not suit the
    request: a tool that was not sent, an input that breaks its schema, a template without a value."""
    label = re.sub(r"[^a-zA-Z0-9_-]", "-", label)
    content = tuple(_wire(block, view, f"toolu_{label}_{i}") for i, block in enumerate(turn.content))
    for block, sent in zip(turn.content, content, strict=True):
        if isinstance(block, ToolUse) and not block.unchecked:
            _check_use(sent, view)
    uses = any(block["type"] == "tool_use" for block in content)
    said = [{**block, "id": None} for block in content]  # ids differ between attempts, the count should not
    output = max(1, len(compact(said).encode()) // 4)
    usage = {**input_usage, "output_tokens": output, "service_tier": "standard", **turn.usage}
    stop_reason = turn.stop_reason or ("tool_use" if uses else "end_turn")
    return Answer(f"msg_{label}", view.model, content, stop_reason, usage)


def _wire(block: Content, view: View, use_id: str) -> Event:
    match block:
        case Text(text):
            return {"type": "text", "text": fill(text, view)}
        case Thinking(text, signature):
            thinking = fill(text, view)
            return {"type": "thinking", "thinking": thinking, "signature": signature or sign(thinking)}
        case RedactedThinking(data):
            return {"type": "redacted_thinking", "data": data}
        case ToolUse(name, values, own_id):
            return {"type": "tool_use", "id": own_id or use_id, "name": name, "input": fill(values, view)}
        case _:
            assert_never(block)


def _check_use(block: Event, view: View) -> None:
    tools = {tool["name"]: tool for tool in view.body.get("tools", ())}
    name = block["name"]
    if name not in tools:
        raise ScriptError(f"the script uses the tool {name!r}, which the request does not offer ({', '.join(tools)})")
    if "input_schema" not in tools[name]:
        return
    problem = input_problem(compact(tools[name]["input_schema"]), compact(block["input"]))
    if problem:
        raise ScriptError(f"the script's input for {name!r} breaks the tool's schema at {problem}")


def stream_events(answer: Answer, chunk: int) -> Iterator[Event]:
    """`message_start` to `message_stop`; deltas of at most `chunk` characters."""
    start = {**answer.message(), "content": [], "stop_reason": None}
    start["usage"] = {**answer.usage, "output_tokens": 1}
    yield {"type": "message_start", "message": start}
    yield {"type": "ping"}
    for index, block in enumerate(answer.content):
        yield {"type": "content_block_start", "index": index, "content_block": _empty(block)}
        for delta in _deltas(block, chunk):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": answer.stop_reason, "stop_sequence": None}
    usage = {key: value for key, value in answer.usage.items() if key.endswith("_tokens")}
    yield {"type": "message_delta", "delta": delta, "usage": usage}
    yield {"type": "message_stop"}


def _empty(block: Event) -> Event:
    blanks: dict[str, Any] = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {key: blanks.get(key, value) for key, value in block.items()} | {"type": block["type"]}


def _deltas(block: Event, chunk: int) -> Iterator[Event]:
    if block["type"] == "text":
        for piece in _pieces(block["text"], chunk):
            yield {"type": "text_delta", "text": piece}
    if block["type"] == "thinking":
        for piece in _pieces(block["thinking"], chunk):
            yield {"type": "thinking_delta", "thinking": piece}
        yield {"type": "signature_delta", "signature": block["signature"]}
    if block["type"] == "tool_use":
        for piece in ("", *_pieces(json.dumps(block["input"], ensure_ascii=False), chunk)):
            yield {"type": "input_json_delta", "partial_json": piece}


def _pieces(text: str, chunk: int) -> Sequence[str]:
    return [text[start : start + chunk] for start in range(0, len(text), max(1, chunk))]


def encode_event(event: Event) -> bytes:
    """One server-sent event."""
    return f"event: {event['type']}\ndata: {compact(event)}\n\n".encode()


def error_body(type: str, message: str, request_id: str | None = None) -> Event:
    return {"type": "error", "error": {"type": type, "message": message}, "request_id": request_id}

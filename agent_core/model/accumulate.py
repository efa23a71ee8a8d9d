"""Stream events of the Messages API to deltas for people and one final message. Pure: no clock, no I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import define, field

from agent_core.errors import RetryableModelError
from agent_core.events import TextDelta, ThinkingDelta
from agent_core.ids import MessageId
from agent_core.messages import (
    Block,
    Message,
    ModelReply,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    Usage,
)
from agent_core.text import encodable

Delta = TextDelta | ThinkingDelta


@define
class _Part:
    """One content block while it grows; `pieces` joins to its text or to the JSON of a tool's input."""

    kind: str
    start: Mapping[str, Any]
    pieces: list[str] = field(factory=list)
    signature: str = ""
    stopped: bool = False


@define
class Accumulator:
    """Feed every event in order, then call `reply`. Unknown events and blocks are passed over: they are additive."""

    message_id: MessageId
    _parts: dict[int, _Part] = field(factory=dict)
    _usage: dict[str, int] = field(factory=dict)
    _stop_reason: str | None = None
    _complete: bool = False

    def feed(self, event: Mapping[str, Any]) -> Delta | None:
        match event.get("type"):
            case "message_start":
                self._take_usage(event["message"].get("usage") or {})
            case "content_block_start":
                block = event["content_block"]
                self._parts[event["index"]] = _Part(block["type"], block)
            case "content_block_delta":
                return self._delta(self._parts[event["index"]], event["delta"])
            case "content_block_stop":
                self._parts[event["index"]].stopped = True
            case "message_delta":
                self._stop_reason = event["delta"].get("stop_reason") or self._stop_reason
                self._take_usage(event.get("usage") or {})
            case "message_stop":
                self._complete = True
            case _:
                pass
        return None

    def reply(self) -> ModelReply:
        """RetryableModelError when the stream ended early: the SDK reports that as success."""
        if not self._complete or self._stop_reason is None:
            raise RetryableModelError("the model's answer was cut off: the stream ended without message_stop")
        parts = (self._parts[index] for index in sorted(self._parts))
        content = tuple(block for part in parts if (block := _block(part)) is not None)
        usage = Usage(
            input_tokens=self._usage.get("input_tokens", 0),
            output_tokens=self._usage.get("output_tokens", 0),
            cache_read_tokens=self._usage.get("cache_read_input_tokens", 0),
            cache_creation_tokens=self._usage.get("cache_creation_input_tokens", 0),
            turns=1,
        )
        return ModelReply(Message(self.message_id, "assistant", content), self._stop_reason, usage)

    def _delta(self, part: _Part, delta: Mapping[str, Any]) -> Delta | None:
        match delta["type"]:
            case "text_delta":
                part.pieces.append(delta["text"])
                return TextDelta(self.message_id, encodable(delta["text"]))
            case "thinking_delta":
                part.pieces.append(delta["thinking"])
                return ThinkingDelta(self.message_id, encodable(delta["thinking"]))
            case "signature_delta":
                part.signature += delta["signature"]
            case "input_json_delta":
                part.pieces.append(delta["partial_json"])
            case _:
                pass
        return None

    def _take_usage(self, usage: Mapping[str, Any]) -> None:
        self._usage.update({name: count for name, count in usage.items() if isinstance(count, int)})


def _block(part: _Part) -> Block | None:
    """None for what must not be sent back: blank text, a call that was cut off, kinds that we do not know."""
    text = "".join(part.pieces)
    match part.kind:
        case "text":
            text = encodable(part.start.get("text", "") + text)
            return TextBlock(text) if text.strip() else None
        case "thinking":
            thinking = encodable(part.start.get("thinking", "") + text)
            return ThinkingBlock(thinking, part.signature or part.start.get("signature", ""))
        case "redacted_thinking":
            return RedactedThinkingBlock(part.start["data"])
        case "tool_use":
            return _tool_use(part, text)
        case _:
            return None


def _tool_use(part: _Part, text: str) -> ToolUseBlock | None:
    if not text:
        value = part.start.get("input") or {} if part.stopped else None
    else:
        try:
            value = json.loads(text)
        except ValueError:
            value = None
    if not isinstance(value, dict):
        return None
    return ToolUseBlock(part.start["id"], encodable(part.start["name"]), encodable(value))

"""The prompt as a sequence of frozen fragments; a fork shares its parent's fragment objects.

Order on the service's side is tools, system, messages; a cached prefix must be equal byte by byte up to a breakpoint.
Breakpoints are laid at rendering and never stored: after the system prompt (serves siblings), at the end of the
message before the newest user message (so that a turn with more than 20 blocks is still found), at the end, and in a
fork where its own words begin (serves its siblings).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from attrs import evolve, frozen

from agent_core.messages import (
    Block,
    ImageBlock,
    Message,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from agent_core.ports import ModelRequest
from agent_core.text import encodable

Json = Mapping[str, Any]
CLEARED: Json = {
    "type": "text",
    "text": "[The result of this earlier call was removed to make room. Call again if you still need it.]",
}
_CACHED = {"cache_control": {"type": "ephemeral"}}


@frozen
class Prompt:
    """`tools` and `system` never change during a run; `messages` only grows."""

    tools: tuple[Json, ...]
    system: tuple[Json, ...]
    messages: tuple[Json, ...] = ()
    thinking: Json | None = None
    shared: tuple[int, int] | None = None
    """(message, block): the last block that this prompt has in common with its siblings, where forks began."""

    def append(self, *messages: Message) -> Prompt:
        """An answer without content is left out: the service refuses empty messages."""
        added = (render_message(message) for message in messages if message.content)
        return evolve(self, messages=(*self.messages, *added))

    def without_results(self, calls: frozenset[str]) -> Prompt:
        """The results of these calls say only that they were removed. Where they stood the cached prefix ends."""
        return evolve(self, messages=tuple(_without(message, calls) for message in self.messages)) if calls else self

    def head(self) -> tuple[str, bytes]:
        """Tools, system prompt and thinking as bytes, and a name made of them."""
        data = json.dumps([self.tools, self.system, self.thinking], ensure_ascii=False).encode("utf-8", "surrogatepass")
        return hashlib.sha256(data).hexdigest()[:32], data

    @classmethod
    def of_head(cls, data: bytes) -> Prompt:
        """A prompt without messages, from what `head` gave. ValueError when it is damaged."""
        tools, system, thinking = json.loads(data.decode("utf-8", "surrogatepass"))
        return cls(tuple(tools), tuple(system), thinking=thinking)

    def forked_by(self, first: Message) -> Prompt:
        """As a fork has it, whose own message `first` comes next: only the last block of that is not shared (FK-2)."""
        block = len(first.content) - 2
        return evolve(self, shared=(len(self.messages), block)) if block >= 0 else self

    def starts_with(self, other: Prompt) -> bool:
        """True when `other` is a prefix of this one, so that its cache entries serve this one."""
        same_head = (self.tools, self.system, self.thinking) == (other.tools, other.system, other.thinking)
        return same_head and self.messages[: len(other.messages)] == other.messages

    def request(self, model: str, max_tokens: int) -> ModelRequest:
        marked = self._marked_messages()
        return ModelRequest(model, max_tokens, _marked_last(self.system), self.tools, marked, self.thinking)

    def _marked_messages(self) -> Sequence[Json]:
        marked = list(self.messages)
        users = [index for index, message in enumerate(marked) if message["role"] == "user"]
        for index in users[-2:]:
            marked[index] = {**marked[index], "content": _marked_last(marked[index]["content"])}
        if self.shared is not None:
            index, block = self.shared
            content = marked[index]["content"]
            marked[index] = {**marked[index], "content": [*_marked_last(content[: block + 1]), *content[block + 1 :]]}
        return marked


def render_message(message: Message) -> Json:
    """Results of tools may hold names of files that are not UTF-8, and old transcripts anything."""
    return {"role": message.role, "content": [encodable(_render_block(block)) for block in message.content]}


def _without(message: Json, calls: frozenset[str]) -> Json:
    if not any(block.get("tool_use_id") in calls for block in message["content"]):
        return message
    blocks = [
        {**block, "content": [CLEARED]} if block.get("tool_use_id") in calls else block for block in message["content"]
    ]
    return {**message, "content": blocks}


def _marked_last(blocks: Sequence[Json]) -> list[Json]:
    return [*blocks[:-1], {**blocks[-1], **_CACHED}] if blocks else []


def _render_block(block: Block) -> Json:
    match block:
        case TextBlock(text):
            return {"type": "text", "text": text}
        case ThinkingBlock(thinking, signature):
            return {"type": "thinking", "thinking": thinking, "signature": signature}
        case RedactedThinkingBlock(data):
            return {"type": "redacted_thinking", "data": data}
        case ToolUseBlock(id, name, input):
            return {"type": "tool_use", "id": id, "name": name, "input": input}
        case ToolResultBlock(tool_use_id, content, is_error):
            parts = [_render_block(part) for part in content if part != TextBlock("")]
            result: dict[str, Any] = {"type": "tool_result", "tool_use_id": tool_use_id, "content": parts}
            return {**result, "is_error": True} if is_error else result
        case ImageBlock(media_type, data):
            return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}
        case _:
            assert_never(block)

"""What models and tools say: content blocks, messages, usage. Frozen; a block is never edited, only replaced.

Block = TextBlock | ThinkingBlock | RedactedThinkingBlock | ToolUseBlock | ToolResultBlock | ImageBlock
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from attrs import frozen

from agent_core.ids import MessageId

Role = Literal["user", "assistant"]


@frozen
class TextBlock:
    text: str


@frozen
class ThinkingBlock:
    """Sent back unmodified, signature included, or the service refuses the turn."""

    thinking: str
    signature: str


@frozen
class RedactedThinkingBlock:
    data: str


@frozen
class ToolUseBlock:
    """`input` keeps the key order in which the model wrote it: the bytes are part of the cached prefix."""

    id: str
    name: str
    input: Mapping[str, Any]


@frozen
class ImageBlock:
    """`data` is base64."""

    media_type: str
    data: str


ResultContent = tuple[TextBlock | ImageBlock, ...]


@frozen
class ToolResultBlock:
    tool_use_id: str
    content: ResultContent
    is_error: bool = False


Block = TextBlock | ThinkingBlock | RedactedThinkingBlock | ToolUseBlock | ToolResultBlock | ImageBlock


class StopReason(StrEnum):
    """Why a run ended."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    MAX_TURNS = "max_turns"
    REFUSAL = "refusal"
    CANCELLED = "cancelled"


@frozen
class Message:
    """`meta` names why the host wrote a user message (`environment`, `comment`); None for what was really said."""

    id: MessageId
    role: Role
    content: tuple[Block, ...]
    meta: str | None = None

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.content if isinstance(block, TextBlock))

    @property
    def tool_uses(self) -> tuple[ToolUseBlock, ...]:
        return tuple(block for block in self.content if isinstance(block, ToolUseBlock))


@frozen
class Usage:
    """Tokens and counts of a whole run; `duration_ms` is wall time, `cost_usd` 0 where the price is not known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0
    tool_uses: int = 0
    turns: int = 0
    duration_ms: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_creation_tokens + other.cache_creation_tokens,
            self.tool_uses + other.tool_uses,
            self.turns + other.turns,
            self.duration_ms + other.duration_ms,
            self.cost_usd + other.cost_usd,
        )

    @property
    def prompt_tokens(self) -> int:
        """Everything the model read: uncached, read from cache, and written to cache."""
        return self.input_tokens + self.cache_read_tokens + self.cache_creation_tokens

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.output_tokens


@frozen
class ModelReply:
    """One complete answer of the model. `stop_reason` is the service's own word (`end_turn`, `tool_use`, ...)."""

    message: Message
    stop_reason: str
    usage: Usage

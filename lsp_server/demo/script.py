"""What the scripted model says, as data: the same shapes in Python and in JSON (keys named as the fields).

Script
    conversations: Conversation ...     a request belongs to the first one that matches it
        match: Match                    substrings; all that are given must be there
        turns: Turn ...                 chosen by the number of assistant messages in the request, less `offset`
               or a list of alternatives, chosen by attempt (the same request seen again) among those whose `when` fits
            content: blocks             Text (in JSON also a plain string), Thinking, RedactedThinking, ToolUse
            fault: Fault                what goes wrong, on every attempt or on those named

Strings in content may hold templates, see `templates`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from attrs import field, frozen

FaultKind = Literal["status", "drop", "no_stop", "error_event", "ping", "hang", "malformed"]
MODELS = (r"claude-(opus|sonnet|haiku|fable|mythos)-[a-z0-9.-]+(\[1m\])?", r"claude-3-5-haiku-\w+")


@frozen
class Text:
    text: str


@frozen
class Thinking:
    """Without a `signature` one is derived from the text."""

    thinking: str
    signature: str | None = None


@frozen
class RedactedThinking:
    data: str


@frozen
class ToolUse:
    """`unchecked` lets the model misbehave: an unknown tool or an input that breaks its schema is sent all the same."""

    name: str
    input: Mapping[str, Any] = field(factory=dict)
    id: str | None = None
    unchecked: bool = False


Content = Text | Thinking | RedactedThinking | ToolUse


@frozen
class Fault:
    """What goes wrong. `attempts`: 1-based; empty means every one. `after_events`: events sent before it happens.

    status       an error response: `status`, `type`, `message`, `headers` (retry-after, retry-after-ms, ...)
    drop         the connection is closed; with `after_events` 0 before any byte of the answer
    no_stop      the stream ends in order, but without message_delta and message_stop
    error_event  an `error` event of `type` in the stream, then its end
    ping         `ping` events without end, every `every_ms`
    hang         nothing more, until the client goes
    malformed    an event whose data is not JSON, then the rest
    """

    kind: FaultKind
    attempts: tuple[int, ...] = ()
    after_events: int = 0
    status: int = 529
    type: str = "overloaded_error"
    message: str = "Overloaded"
    headers: Mapping[str, str] = field(factory=dict)
    every_ms: float = 1000


@frozen
class Turn:
    """`chunk`: characters per delta. `gate`: the answer waits until that name is released. `usage` replaces computed
    numbers. `prefix_changed`: the reason why this request need not extend the one before it."""

    content: tuple[Content, ...] = ()
    stop_reason: str | None = None
    usage: Mapping[str, Any] = field(factory=dict)
    chunk: int = 40
    first_byte_ms: float = 0
    per_delta_ms: float = 0
    fault: Fault | None = None
    gate: str | None = None
    when: str | None = None
    prefix_changed: str | None = None

    def fault_at(self, attempt: int) -> Fault | None:
        """The fault of the attempt (1-based)."""
        fault = self.fault
        return fault if fault and (not fault.attempts or attempt in fault.attempts) else None


@frozen
class Match:
    """Substrings, each optional. `user`: of any user text, tool results included; `last_user`: of the last message;
    `not_user`: of no user text."""

    first_user: str | None = None
    system: str | None = None
    model: str | None = None
    user: str | None = None
    last_user: str | None = None
    not_user: str | None = None


@frozen
class Conversation:
    """`offset`: assistant messages that were there before the first turn (a fork's). `repeat_last`: the last turn
    answers every further request."""

    turns: tuple[tuple[Turn, ...], ...]
    name: str = "conversation"
    match: Match = Match()
    offset: int = 0
    repeat_last: bool = False


@frozen
class Script:
    """`check_prefix`: each request must extend the one before it in its conversation. `strict_roles`: refuse two
    messages of one role in a row. `models`: patterns of known names. `min_cache_tokens` replaces the minimum per model;
    `context_tokens` is the size of prompt that is refused. `unique_ids`: ids differ between requests of one turn."""

    conversations: tuple[Conversation, ...]
    check_prefix: bool = True
    strict_roles: bool = False
    invalid_keys: tuple[str, ...] = ()
    models: tuple[str, ...] = MODELS
    min_cache_tokens: int | None = None
    context_tokens: int | None = None
    unique_ids: bool = False


def say(*content: Content | str, **options: Any) -> tuple[Turn, ...]:
    """A turn without alternatives; plain strings become text. `options` are fields of Turn."""
    return (Turn(tuple(Text(c) if isinstance(c, str) else c for c in content), **options),)


def use(name: str, /, **input: Any) -> ToolUse:
    return ToolUse(name, input)


def conversation(*turns: tuple[Turn, ...], name: str = "conversation", **options: Any) -> Conversation:
    """`options`: `offset`, `repeat_last` and the fields of Match."""
    own = {key: options.pop(key) for key in ("offset", "repeat_last") if key in options}
    return Conversation(turns, name=name, match=Match(**options), **own)

"""A script from its JSON form and back. Unknown keys are refused with their place, so that no typo goes unnoticed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import attrs

from lsp_server.demo.script import (
    Content,
    Conversation,
    Fault,
    Match,
    RedactedThinking,
    Script,
    Text,
    Thinking,
    ToolUse,
    Turn,
)

T = TypeVar("T")
BLOCKS: dict[str, type[Content]] = {
    "text": Text,
    "thinking": Thinking,
    "redacted_thinking": RedactedThinking,
    "tool_use": ToolUse,
}


class ScriptError(ValueError):
    """The script is not usable; the message names the place and the mistake."""


def load_script(data: object) -> Script:
    """ScriptError when `data` (parsed JSON) is no script."""
    return _object(Script, data, "script", conversations=_tuple(_conversation))


def dump_script(script: Script) -> dict[str, Any]:
    """The JSON form: `load_script(dump_script(s)) == s`."""
    return attrs.asdict(script, value_serializer=_tagged)


def _tagged(_: object, attribute: attrs.Attribute[Any] | None, value: Any) -> Any:
    if attribute is not None and attribute.name == "content":
        kinds = {cls: kind for kind, cls in BLOCKS.items()}
        return [{"type": kinds[type(block)], **attrs.asdict(block)} for block in value]
    return value


def _conversation(data: object, where: str) -> Conversation:
    return _object(Conversation, data, where, match=_match, turns=_tuple(_alternatives))


def _match(data: object, where: str) -> Match:
    return _object(Match, data, where)


def _alternatives(data: object, where: str) -> tuple[Turn, ...]:
    return _tuple(_turn)(data, where) if isinstance(data, list) else (_turn(data, where),)


def _turn(data: object, where: str) -> Turn:
    return _object(Turn, data, where, content=_tuple(_block), fault=_fault)


def _fault(data: object, where: str) -> Fault | None:
    return None if data is None else _object(Fault, data, where, attempts=_tuple(_same))


def _block(data: object, where: str) -> Content:
    if isinstance(data, str):
        return Text(data)
    if not isinstance(data, Mapping) or data.get("type") not in BLOCKS:
        raise ScriptError(f"{where}: expected a string or an object whose type is one of {', '.join(BLOCKS)}")
    cls: Callable[..., Content] = BLOCKS[data["type"]]
    return _object(cls, {key: value for key, value in data.items() if key != "type"}, where)


def _same(data: Any, where: str) -> Any:
    return tuple(data) if isinstance(data, list) else data


def _tuple(item: Callable[[object, str], T]) -> Callable[[object, str], tuple[T, ...]]:
    def convert(data: object, where: str) -> tuple[T, ...]:
        if not isinstance(data, list):
            raise ScriptError(f"{where}: expected a list")
        return tuple(item(value, f"{where}.{index}") for index, value in enumerate(data))

    return convert


def _object(cls: Callable[..., T], data: object, where: str, **convert: Callable[[Any, str], object]) -> T:
    if not isinstance(data, Mapping):
        raise ScriptError(f"{where}: expected an object")
    known = [a.name for a in attrs.fields(cast(Any, cls))]
    if unknown := [key for key in data if key not in known]:
        raise ScriptError(f"{where}: unknown key {unknown[0]!r}; known are {', '.join(known)}")
    plain: Callable[[Any, str], object] = _same
    values = {key: convert.get(key, plain)(value, f"{where}.{key}") for key, value in data.items()}
    try:
        return cls(**values)
    except TypeError as error:
        raise ScriptError(f"{where}: {error}") from None

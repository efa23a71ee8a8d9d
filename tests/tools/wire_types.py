"""The wire types of `lsp_server.protocol` as TypeScript: the blocks of protocol.md, and clients' own types later."""

from __future__ import annotations

import types
import typing
from typing import Any, Literal, get_args, get_origin

import attrs

from lsp_server import protocol
from lsp_server.wire import camel

_NAMES = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null", Any: "unknown"}


def interfaces() -> dict[str, str]:
    """Every wire class by name, in the order in which they are written."""
    found = (value for value in vars(protocol).values() if isinstance(value, type) and attrs.has(value))
    return {kind.__name__: interface(kind) for kind in found}


def interface(kind: type) -> str:
    hints = typing.get_type_hints(kind)
    lines = [_field(field, hints[field.name]) for field in attrs.fields(kind)]
    return "\n".join([f"interface {kind.__name__} {{", *lines, "}"])


def _field(field: Any, hint: Any) -> str:
    optional = field.default is None
    if optional:
        members = [each for each in get_args(hint) if each is not type(None)]
        hint = members[0] if len(members) == 1 else typing.Union[tuple(members)]  # noqa: UP007
    return f"  {camel(field.name)}{'?' if optional else ''}: {_type(hint)};"


def _type(hint: Any) -> str:
    origin = get_origin(hint)
    if hint in _NAMES:
        return _NAMES[hint]
    if origin is Literal:
        return " | ".join(f'"{value}"' for value in get_args(hint))
    if origin is list:
        inner = _type(get_args(hint)[0])
        return f"({inner})[]" if "|" in inner else f"{inner}[]"
    if origin is dict:
        return "Record<string, unknown>"
    if origin in (typing.Union, types.UnionType):
        return " | ".join(_type(each) for each in get_args(hint))
    return str(hint.__name__)

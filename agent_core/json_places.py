"""Where each value of a JSON text stands: for telling the line of a fault, and for adding to a file without writing
anything else of it anew. Pure; the text is known to be valid."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from attrs import define, frozen

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)

Where = tuple[str | int, ...]
"""Keys and indices from the root, which is ()."""


@frozen
class Span:
    """Offsets: `start` of the value, `lead` of the member or element that it belongs to (its key, or itself)."""

    lead: int
    start: int
    end: int


@define
class _Open:
    where: Where
    is_object: bool
    lead: int
    start: int
    key: str | int | None
    key_at: int = 0


def spans(text: str) -> Mapping[Where, Span]:
    """Of every value; with a key twice in one object the last one counts, as it does for the parser."""
    found: dict[Where, Span] = {}
    stack: list[_Open] = []
    for token in _TOKEN.finditer(text):
        kind, at = token[0], token.start()
        top = stack[-1] if stack else None
        if kind in ("}", "]"):
            closed = stack.pop()
            found[closed.where] = Span(closed.lead, closed.start, token.end())
        elif kind == ",":
            assert top is not None
            top.key = top.key + 1 if isinstance(top.key, int) else None
        elif kind != ":":
            if top is not None and top.is_object and top.key is None:
                top.key, top.key_at = json.loads(kind), at
                continue
            where = () if top is None else (*top.where, top.key if top.key is not None else 0)
            lead = top.key_at if top is not None and top.is_object else at
            if kind in ("{", "["):
                _forget(found, where)
                stack.append(_Open(where, kind == "{", lead, at, None if kind == "{" else 0))
            else:
                found[where] = Span(lead, at, token.end())
    return found


def line_of(text: str, offset: int) -> int:
    """From 0."""
    return text.count("\n", 0, offset)


def _forget(found: dict[Where, Span], where: Where) -> None:
    """An earlier value of the same key."""
    if where in found:
        for known in [each for each in found if each[: len(where)] == where]:
            del found[known]

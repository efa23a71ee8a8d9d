"""Pure: from a text and what it shall become to the smallest line-wise LSP edits, in any position encoding."""

from __future__ import annotations

from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from lsp_server.positions import length, split_lines

_MANY_LINES = 4_000
"""Above this a line diff costs more than it saves; the changed middle is then replaced as one piece."""


def text_edits(before: str, after: str, encoding: str) -> list[dict[str, Any]]:
    """In order, not overlapping; applied to `before` they give `after`."""
    old, new = split_lines(before), split_lines(after)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    old_middle, new_middle = old[head : len(old) - tail], new[head : len(new) - tail]
    return [
        {"range": _range(old, head + start, head + end, encoding), "newText": "".join(new_middle[low:high])}
        for start, end, low, high in _changes(old_middle, new_middle)
    ]


def document_edit(uri: str, version: int, before: str, after: str, encoding: str) -> dict[str, Any]:
    """A WorkspaceEdit for one open document; the version makes an editor refuse it when the text has moved on."""
    edits = text_edits(before, after, encoding)
    return {"documentChanges": [{"textDocument": {"uri": uri, "version": version}, "edits": edits}]}


def whole_file_edit(path: Path, before: str | None, after: str | None, encoding: str) -> dict[str, Any]:
    """What an ask would do to a file that may not be open: for drawing, never for applying."""
    uri = path.as_uri()
    if after is None:
        return {"documentChanges": [{"kind": "delete", "uri": uri}]}
    created = [] if before is not None else [{"kind": "create", "uri": uri, "options": {"overwrite": False}}]
    change = {"textDocument": {"uri": uri, "version": None}, "edits": text_edits(before or "", after, encoding)}
    return {"documentChanges": [*created, change]}


def _changes(old: list[str], new: list[str]) -> list[tuple[int, int, int, int]]:
    if not old and not new:
        return []
    if len(old) + len(new) > _MANY_LINES:
        return [(0, len(old), 0, len(new))]
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [(start, end, low, high) for tag, start, end, low, high in matcher.get_opcodes() if tag != "equal"]


def _range(lines: list[str], start: int, end: int, encoding: str) -> dict[str, Any]:
    return {"start": _position(lines, start, encoding), "end": _position(lines, end, encoding)}


def _position(lines: list[str], index: int, encoding: str) -> dict[str, int]:
    """The start of line `index`; behind the last line, the end of the text."""
    if index < len(lines):
        return {"line": index, "character": 0}
    return {"line": len(lines) - 1, "character": length(lines[-1], encoding)}


def _common(one: list[str], other: list[str]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count

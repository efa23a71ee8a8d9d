"""Unified diffs of texts with LF line ends. Pure."""

from __future__ import annotations

from difflib import SequenceMatcher

from agent_core.text_file import common_prefix

_CONTEXT = 3
_NO_NEWLINE = "\n\\ No newline at end of file\n"

Group = list[tuple[str, int, int, int, int]]


def unified(before: str | None, after: str | None, name: str) -> str:
    """None: the file does not exist on that side. Empty when both sides are the same text.

    `name` is a path with `/`; the output can be fed to `git apply`.
    """
    if before == after:
        return ""
    a, b = _lines(before), _lines(after)
    start, end = _changed_lines(a, b)
    matcher = SequenceMatcher(None, a[start : len(a) - end], b[start : len(b) - end])
    hunks = "".join(_hunk(group, a[start:], b[start:], start) for group in matcher.get_grouped_opcodes(_CONTEXT))
    return _header(before, "---", "a", name) + _header(after, "+++", "b", name) + hunks


def _header(side: str | None, mark: str, prefix: str, name: str) -> str:
    return f"{mark} /dev/null\n" if side is None else f"{mark} {prefix}/{name.lstrip('/')}\n"


def _lines(text: str | None) -> list[str]:
    """With their LF; not str.splitlines, for which a form feed ends a line too."""
    parts = (text or "").split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _changed_lines(a: list[str], b: list[str]) -> tuple[int, int]:
    """How many lines at the start and at the end can be left out: equal ones beyond the context.

    Keeps the cost of a small edit in a big file small.
    """
    start = common_prefix(a, b)
    end = common_prefix(a[start:][::-1], b[start:][::-1])
    return max(0, start - _CONTEXT), max(0, end - _CONTEXT)


def _hunk(group: Group, a: list[str], b: list[str], offset: int) -> str:
    _, a_start, _, b_start, _ = group[0]
    _, _, a_end, _, b_end = group[-1]
    header = f"@@ -{_range(a_start + offset, a_end - a_start)} +{_range(b_start + offset, b_end - b_start)} @@\n"
    return header + "".join(_part(opcode, a, b) for opcode in group)


def _range(start: int, length: int) -> str:
    """Counted from 1; an empty range names the line before it."""
    first = start + 1 if length else start
    return str(first) if length == 1 else f"{first},{length}"


def _part(opcode: tuple[str, int, int, int, int], a: list[str], b: list[str]) -> str:
    tag, a_start, a_end, b_start, b_end = opcode
    if tag == "equal":
        return _marked(" ", a[a_start:a_end])
    return _marked("-", a[a_start:a_end]) + _marked("+", b[b_start:b_end])


def _marked(mark: str, lines: list[str]) -> str:
    return "".join(mark + (line if line.endswith("\n") else line + _NO_NEWLINE) for line in lines)

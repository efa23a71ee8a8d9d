"""LSP positions and text offsets. Lines end at LF, CRLF or CR only, as in every editor; `str.splitlines` knows more."""

from __future__ import annotations

import re

_EOL = re.compile(r"\r\n|\n|\r")
_UNIT = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def split_lines(text: str) -> list[str]:
    """With their line ends; the last has none and may be empty, so that joining gives the text back."""
    lines, start = [], 0
    for end in _EOL.finditer(text):
        lines.append(text[start : end.end()])
        start = end.end()
    return [*lines, text[start:]]


def offset_at(text: str, line: int, character: int, encoding: str) -> int:
    """Past the end of a line or of the text means its end, as LSP says."""
    start = _line_start(text, line)
    if start is None:
        return len(text)
    end = _EOL.search(text, start)
    content = text[start : end.start() if end else len(text)]
    return start + _index(content, character, encoding)


def length(text: str, encoding: str) -> int:
    """In units of the encoding."""
    name, size = _UNIT[encoding]
    return len(text) if text.isascii() else len(text.encode(name, "surrogatepass")) // size


def _line_start(text: str, line: int) -> int | None:
    if line <= 0:
        return 0
    for count, end in enumerate(_EOL.finditer(text), start=1):
        if count == line:
            return end.end()
    return None


def _index(content: str, character: int, encoding: str) -> int:
    if content.isascii():
        return max(0, min(character, len(content)))
    name, size = _UNIT[encoding]
    data = content.encode(name, "surrogatepass")[: max(0, character) * size]
    return len(data.decode(name, "ignore"))

"""Bytes of a file in the form in which the user has it: as an open buffer, or with other line ends. Pure.

A conversion keeps the number of lines and what stands in them, so a line number means the same in both forms.
"""

from __future__ import annotations

import codecs
import re
from typing import AnyStr

from agent_core.line_diff import split_lines

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"), (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip
_ONE_BYTE = ("cp1252", "latin-1")
_ANY_END = ("\n", "\r")
_NAMES = {"\r\n": "CRLF", "\n": "LF", "\r": "CR"}


class NotConvertible(ValueError):
    """The message tells the user why and what to do."""


def is_binary(data: bytes) -> bool:
    return b"\0" in data


def encoding_of(data: bytes) -> tuple[bytes, str] | None:
    """(byte-order mark, codec); None when the bytes are neither marked nor UTF-8."""
    for mark, codec in _MARKS:
        if data.startswith(mark) and _decodes(data[len(mark) :], codec):
            return mark, codec
    return (b"", "utf-8") if _decodes(data, "utf-8") else None


def _decodes(data: bytes, codec: str) -> bool:
    try:
        data.decode(codec)
    except UnicodeDecodeError:
        return False
    return True


def to_buffer_form(base: bytes, agent: bytes, buffer: str) -> tuple[str, str]:
    """`base` and `agent` as the editor that holds `buffer` would show them: decoded, without a BOM that the buffer does
    not have, with its line ends. NotConvertible when that is not possible without a guess."""
    texts = _decoded(base, agent, buffer)
    mark = "\ufeff" if buffer.startswith("\ufeff") else ""
    return like(mark + texts[0], mark + texts[1], buffer)


def _decoded(base: bytes, agent: bytes, buffer: str) -> tuple[str, str]:
    of_base, of_agent = encoding_of(base), encoding_of(agent)
    if of_base is not None and of_agent is not None:
        return _text(base, *of_base), _text(agent, *of_agent)
    # the editor knows the encoding and we do not: accept what explains every line that is not plain ASCII
    fitting = [codec for codec in _ONE_BYTE if _explains(base, codec, buffer)]
    texts = {agent.decode(codec) for codec in fitting if _decodes(agent, codec)}
    if of_base is None and of_agent is None and len(texts) == 1:
        return base.decode(fitting[0]), texts.pop()
    raise NotConvertible(
        "the file is not UTF-8 and is open in the editor; close it there to apply the bytes as they are"
    )


def _text(data: bytes, mark: bytes, codec: str) -> str:
    return data[len(mark) :].decode(codec)


def _explains(base: bytes, codec: str, buffer: str) -> bool:
    if not _decodes(base, codec):
        return False
    held = {line.rstrip("\r\n") for line in split_lines(buffer)}
    lines = (line.rstrip("\r\n") for line in split_lines(base.decode(codec)))
    return all(line in held for line in lines if not line.isascii())


def like(base: AnyStr, agent: AnyStr, current: AnyStr) -> tuple[AnyStr, AnyStr]:
    """Both with the line ends of `current`, when `base` has another kind throughout. Otherwise as they are: then the
    user's own line ends cannot be told from an edit."""
    theirs, ours = line_ends(base), line_ends(current)
    if len(theirs) != 1 or len(ours) != 1 or theirs == ours:
        return base, agent
    old, new = theirs.pop(), ours.pop()
    converted = _swapped(base, old, new), _swapped(agent, old, new)
    kept = all(len(split_lines(x)) == len(split_lines(y)) for x, y in zip((base, agent), converted, strict=True))
    return converted if kept else (base, agent)


def _swapped(text: AnyStr, old: str, new: str) -> AnyStr:
    pattern = {"\r\n": "\r\n", "\n": "(?<!\r)\n", "\r": "\r(?!\n)"}[old]
    if isinstance(text, bytes):
        return re.sub(pattern.encode(), new.encode(), text)
    return re.sub(pattern, new, text)


def line_ends(text: bytes | str) -> set[str]:
    """The kinds of line ends in it."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    lone = data.replace(b"\r\n", b"")
    found = {"\r\n"} if len(lone) != len(data) else set()
    return found | {end for end in ("\n", "\r") if end.encode() in lone}


def text_notes(base: bytes, agent: bytes, *, in_buffer: bool) -> list[str]:
    """What changed and no diff view shows, in words."""
    if not base or not agent:
        return []
    suffix = "; an open buffer cannot show this, so it stays as it is there" if in_buffer else ""
    (old_mark, old_codec, old), (new_mark, new_codec, new) = _seen(base), _seen(agent)
    notes = []
    if _ends(old) != _ends(new):
        notes.append(f"line endings: {_ends(old)} became {_ends(new)}{suffix}")
    if old_mark != new_mark:
        notes.append(f"byte-order mark {'added' if new_mark else 'removed'}{suffix}")
    if old_codec != new_codec:
        notes.append(f"encoding: {old_codec} became {new_codec}{suffix}")
    if (ended := old.endswith(_ANY_END)) != new.endswith(_ANY_END):
        notes.append(f"newline at the end of the file {'removed' if ended else 'added'}")
    return notes


def _ends(text: str) -> str:
    kinds = line_ends(text)
    return " and ".join(name for end, name in _NAMES.items() if end in kinds) or "none"


def _seen(data: bytes) -> tuple[bool, str, str]:
    """(marked, name of the encoding, text)"""
    found = encoding_of(data)
    if found is None:
        return False, "an encoding other than UTF-8", data.decode("latin-1")
    return bool(found[0]), found[1].upper(), _text(data, *found)

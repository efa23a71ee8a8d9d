"""Bytes of a text file to text and back, without loss.

`decode` accepts any bytes. An edit is stated against `text` (LF line ends, no BOM) and made in the original, so every
byte outside it stays, mixed line ends included. Pure; codecs are the ones where encode(decode(x)) == x.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property

from attrs import define

from agent_core.errors import ToolError

_BOMS = (  # UTF-32 first: its little-endian mark starts with the one of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BOM_CHARACTER = "\ufeff"
_LINE_END = re.compile("\r+\n")  # CR CR LF is one line end: what a careless conversion made of CR LF
_BINARY_WINDOW = 8192  # characters; git looks at about as many

Span = tuple[int, int]
"""[start, end) in characters of `TextFile.text`."""


@define(slots=False, frozen=True)
class TextFile:
    """`raw` is the file without its BOM, line ends as they are; `encoding` is a Python codec, `latin-1` when the bytes
    are in no encoding we can tell (then each character stands for one byte); `eol` is the most frequent line end.
    """

    raw: str
    encoding: str
    bom: bytes
    eol: str

    @cached_property
    def text(self) -> str:
        """What agents read and match: line ends are LF. Never contains CR LF."""
        if self.eol == "\r":
            return self.raw.replace("\r", "\n")
        return _LINE_END.sub("\n", self.raw) if "\r\r\n" in self.raw else self.raw.replace("\r\n", "\n")

    @property
    def binary(self) -> bool:
        return "\0" in self.raw[:_BINARY_WINDOW]

    def encode(self) -> bytes:
        return self.bom + self.raw.encode(self.encoding)

    def replace(self, spans: Sequence[Span], new: str) -> bytes:
        """The file's bytes with each span (ascending, disjoint) replaced by `new`.

        Line ends of `new` become those of the replaced part, else the file's. What the start and the end of a span
        have in common with `new` counts as outside. ToolError when the encoding cannot hold `new`.
        """
        new = self.comparable(new)
        check_encodable(new, self.encoding)
        pieces, done = [], 0
        for start, end in spans:
            new_here = new.removeprefix(_BOM_CHARACTER) if start == 0 and self.bom else new
            eol = self._eol_of(start, end)
            start, end, new_here = _changed_part(self.text, start, end, new_here)
            pieces += [self.raw[done : self._raw_offset(start)], new_here.replace("\n", eol)]
            done = self._raw_offset(end)
        pieces.append(self.raw[done:])
        return self.bom + "".join(pieces).encode(self.encoding)

    def replace_all(self, new: str) -> bytes:
        return self.replace([(0, len(self.text))], new)

    def comparable(self, text: str) -> str:
        """Text from a model in the form of `text`: it may have copied CRLF from elsewhere."""
        return text.replace("\r\n", "\n")

    @cached_property
    def _long_ends(self) -> tuple[list[int], list[int]]:
        """The line ends that are longer in `raw`: where they are in `text`, and by how much `raw` is ahead after
        the first n of them."""
        offsets: list[int] = []
        ahead = [0]
        if self.eol != "\r" and "\r\n" in self.raw:
            for match in _LINE_END.finditer(self.raw):
                offsets.append(match.start() - ahead[-1])
                ahead.append(ahead[-1] + len(match[0]) - 1)
        return offsets, ahead

    def _raw_offset(self, offset: int) -> int:
        offsets, ahead = self._long_ends
        return offset + ahead[bisect_left(offsets, offset)]

    def _eol_of(self, start: int, end: int) -> str:
        if self.eol == "\r":
            return "\r"
        part = self.raw[self._raw_offset(start) : self._raw_offset(end)]
        return _dominant_eol(part) if "\n" in part else self.eol


def decode(data: bytes) -> TextFile:
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            try:
                return _text_file(data[len(bom) :].decode(encoding), encoding, bom)
            except UnicodeDecodeError:
                continue  # the mark was chance
    try:
        return _text_file(data.decode("utf-8"), "utf-8", b"")
    except UnicodeDecodeError:
        return _text_file(data.decode("latin-1"), "latin-1", b"")


def encode_new(text: str) -> bytes:
    """The bytes of a file that did not exist: UTF-8, line ends as given."""
    check_encodable(text, "utf-8")
    return text.encode()


def check_encodable(text: str, encoding: str) -> None:
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        character = text[error.start]
        name = unicodedata.name(character, "a lone surrogate" if "\ud800" <= character <= "\udfff" else "unnamed")
        shown = "" if "\ud800" <= character <= "\udfff" else f"{character!r} "
        raise ToolError(
            f"The new text contains {shown}(U+{ord(character):04X}, {name}), which {_described(encoding)} cannot hold. "
            "Nothing was written. Use other characters, or convert the file to UTF-8 first."
        ) from None


def _described(encoding: str) -> str:
    if encoding == "latin-1":
        return "the file's encoding (not UTF-8; handled byte for byte as latin-1)"
    return f"the encoding {encoding}"


def _text_file(raw: str, encoding: str, bom: bytes) -> TextFile:
    return TextFile(raw, encoding, bom, _dominant_eol(raw))


def _dominant_eol(raw: str) -> str:
    """CR only in files without any LF (classic Mac); elsewhere a lone CR is an ordinary character."""
    if "\r" not in raw:
        return "\n"
    if "\n" not in raw:
        return "\r"
    crlf = raw.count("\r\n")
    return "\r\n" if crlf > raw.count("\n") - crlf else "\n"


def _changed_part(text: str, start: int, end: int, new: str) -> tuple[int, int, str]:
    """Leave out what both sides share: first at the start, then at the end."""
    old = text[start:end]
    shared = common_prefix(old, new)
    old, new = old[shared:], new[shared:]
    tail = common_prefix(old[::-1], new[::-1])
    return start + shared, end - tail, new[: len(new) - tail]


def common_prefix(a: Sequence[str], b: Sequence[str]) -> int:
    """Length; by bisection, because comparing slices is much faster than comparing items."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low

"""For every encoding and mix of line ends: nothing is lost, and an edit changes only what it replaces."""

from __future__ import annotations

import codecs
import re

from hypothesis import given
from hypothesis import strategies as st

from agent_core.text_file import decode

ENCODINGS = [
    (b"", "utf-8"), (codecs.BOM_UTF8, "utf-8"), (b"", "latin-1"), (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"), (codecs.BOM_UTF32_LE, "utf-32-le"),
]  # fmt: skip
PIECES = st.sampled_from(["a", "b", "é", "\r\n", "\n", "\r", "\r\n", "\n", " ", "\t", "ab\u0085c", "\x0c"])
RAW = st.lists(PIECES, max_size=30).map("".join)
NEW = st.text(st.sampled_from("abé\n \t"), max_size=8)


@given(st.binary(max_size=200))
def test_any_bytes_come_back(data: bytes) -> None:
    assert decode(data).encode() == data


@given(st.sampled_from(ENCODINGS), st.binary(max_size=100))
def test_any_bytes_after_a_mark_come_back(encoding: tuple[bytes, str], data: bytes) -> None:
    assert decode(encoding[0] + data).encode() == encoding[0] + data


@given(st.sampled_from(ENCODINGS), RAW, NEW, st.data())
def test_an_edit_leaves_every_byte_outside_alone(
    encoding: tuple[bytes, str], raw: str, new: str, data: st.DataObject
) -> None:
    bom, codec = encoding
    before = bom + raw.encode(codec)
    file = decode(before)
    start = data.draw(st.integers(0, len(file.text)))
    end = data.draw(st.integers(start, len(file.text)))
    after = file.replace([(start, end)], new)
    head, tail = raw_parts(file.raw, file.eol, start, end)
    assert after.startswith(file.bom + head.encode(file.encoding))
    assert after.endswith(tail.encode(file.encoding))
    middle = after[len(file.bom + head.encode(file.encoding)) : len(after) - len(tail.encode(file.encoding))]
    assert lf(middle.decode(file.encoding), file.eol) == new


@given(st.sampled_from(ENCODINGS), RAW, NEW)
def test_replacing_the_whole_text_says_the_new_text(encoding: tuple[bytes, str], raw: str, new: str) -> None:
    bom, codec = encoding
    file = decode(bom + raw.encode(codec))
    after = file.replace_all(new)
    assert after.startswith(file.bom)
    assert lf(after[len(file.bom) :].decode(file.encoding), file.eol) == new


@given(RAW)
def test_replacing_the_text_by_itself_changes_no_byte(raw: str) -> None:
    file = decode(raw.encode())
    assert file.replace_all(file.text) == raw.encode()


def raw_parts(raw: str, eol: str, start: int, end: int) -> tuple[str, str]:
    """By brute force: the raw characters before and after the span, walking both texts side by side."""
    characters = list(raw) if eol == "\r" else re.findall("\r*\n|.", raw, re.DOTALL)
    offsets = [0]
    for character in characters:
        offsets.append(offsets[-1] + len(character))
    return raw[: offsets[start]], raw[offsets[end] :]


def lf(text: str, eol: str) -> str:
    return text.replace("\r", "\n") if eol == "\r" else re.sub("\r+\n", "\n", text)

from __future__ import annotations

import codecs

import pytest

from agent_core.errors import ToolError
from agent_core.text_file import TextFile, decode, encode_new

B8, B16L, B16B, B32L = codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE


@pytest.mark.parametrize(
    ("data", "expected", "text"),
    [
        (b"", TextFile("", "utf-8", b"", "\n"), ""),
        (b"a\nb", TextFile("a\nb", "utf-8", b"", "\n"), "a\nb"),
        ("é\r\n".encode(), TextFile("é\r\n", "utf-8", b"", "\r\n"), "é\n"),
        (b"a\rb\r", TextFile("a\rb\r", "utf-8", b"", "\r"), "a\nb\n"),
        (b"a\rb\n", TextFile("a\rb\n", "utf-8", b"", "\n"), "a\rb\n"),
        (b"a\r\nb\r\nc\n", TextFile("a\r\nb\r\nc\n", "utf-8", b"", "\r\n"), "a\nb\nc\n"),
        (b"a\r\nb\n", TextFile("a\r\nb\n", "utf-8", b"", "\n"), "a\nb\n"),
        (b"a\r\r\nb\r\n", TextFile("a\r\r\nb\r\n", "utf-8", b"", "\r\n"), "a\nb\n"),
        (B8 + b"a", TextFile("a", "utf-8", B8, "\n"), "a"),
        (B8 + B8 + b"a", TextFile("\ufeffa", "utf-8", B8, "\n"), "\ufeffa"),
        (B16L + "é\r\n".encode("utf-16-le"), TextFile("é\r\n", "utf-16-le", B16L, "\r\n"), "é\n"),
        (B16B + "a".encode("utf-16-be"), TextFile("a", "utf-16-be", B16B, "\n"), "a"),
        (B32L + "a".encode("utf-32-le"), TextFile("a", "utf-32-le", B32L, "\n"), "a"),
        (b"caf\xe9\x80", TextFile("café\x80", "latin-1", b"", "\n"), "café\x80"),
        (B16L + b"a", TextFile("ÿþa", "latin-1", b"", "\n"), "ÿþa"),  # half a character: not UTF-16
        (B8 + b"\xff", TextFile("ï»¿ÿ", "latin-1", b"", "\n"), "ï»¿ÿ"),
    ],
)
def test_decode(data: bytes, expected: TextFile, text: str) -> None:
    file = decode(data)
    assert (file, file.text, file.encode()) == (expected, text, data)


def test_binary() -> None:
    cases = {b"a\0b": True, b"": False, b"\xff\xfe\xfd": False, B16L + "ab".encode("utf-16-le"): False, b"\xff\0": True}
    assert {data: decode(data).binary for data in cases} == cases


def edit(data: bytes, old: str, new: str) -> bytes:
    file = decode(data)
    start = file.text.index(old)
    return file.replace([(start, start + len(old))], new)


def test_d8_lf_text_matches_crlf_and_stays_crlf() -> None:
    """D8, D12: several lines, and no doubled CR."""
    assert edit(b"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n") == b"x\r\ny\r\nz\r\nc\r\n"
    assert edit(b"a\r\nb\r\n", "a\n", "x\r\ny\r\n") == b"x\r\ny\r\nb\r\n"


def test_d9_one_bom_whatever_the_new_text_says() -> None:
    assert decode(B8 + b"old").replace_all("\ufeffnew") == B8 + b"new"
    assert decode(B8 + b"old").replace_all("new") == B8 + b"new"
    assert decode(B16L + "old".encode("utf-16-le")).replace_all("new") == B16L + "new".encode("utf-16-le")
    assert decode(b"old").replace_all("\ufeffnew") == B8 + b"new"


def test_d12_bytes_outside_stay() -> None:
    """D12: mixed line ends, hard breaks (two spaces) and a missing final newline are none of the edit's business."""
    assert edit(b"a  \nb\r\nc\rd\r\ne", "b", "B") == b"a  \nB\r\nc\rd\r\ne"
    assert edit(b"a  \r\nb  \r\nc", "b  ", "b2  ") == b"a  \r\nb2  \r\nc"


def test_d12_shared_lines_of_the_edit_stay_too() -> None:
    assert edit(b"a\nb\r\nc\r\nd\n", "a\nb\nc\nd", "a\nb\nX\nd") == b"a\nb\r\nX\r\nd\n"
    assert edit(b"a\r\nb\r\nc\n", "a\nb\nc\n", "X\nb\nc\n") == b"X\r\nb\r\nc\n"


def test_new_lines_follow_the_part_they_replace() -> None:
    assert edit(b"1\r\n2\r\n3\r\na\nb\n", "a\nb\n", "a\nx\ny\nb\n") == b"1\r\n2\r\n3\r\na\nx\ny\nb\n"


def test_several_places() -> None:
    file = decode(b"x\r\nx\nx")
    assert file.replace([(0, 1), (2, 3), (4, 5)], "y\n") == b"y\n\r\ny\n\ny\n"
    assert decode(b"x\r\nx\r\nx").replace([(0, 1), (4, 5)], "y") == b"y\r\nx\r\ny"


def test_classic_mac_line_ends() -> None:
    assert edit(b"a\rb\rc", "b\n", "x\ny\n") == b"a\rx\ry\rc"


def test_d22_latin_1_bytes_survive_and_new_ones_fit() -> None:
    assert edit(b"na\xefve\nascii\n", "ascii", "é") == b"na\xefve\n\xe9\n"


@pytest.mark.parametrize(
    ("data", "new", "message"),
    [
        (b"caf\xe9", "→", r"'→' \(U\+2192, RIGHTWARDS ARROW\), which the file's encoding .*latin-1"),
        (b"abc", "\ud83d", r"\(U\+D83D, a lone surrogate\), which the encoding utf-8 cannot hold"),
        (B16L, "\udc00", r"utf-16-le cannot hold"),
    ],
)
def test_d22_what_the_encoding_cannot_hold_is_refused(data: bytes, new: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        decode(data).replace_all(new)


def test_new_files_are_utf_8_with_line_ends_as_given() -> None:
    assert encode_new("é\r\n→\n") == "é\r\n→\n".encode()
    with pytest.raises(ToolError, match="surrogate"):
        encode_new("\ud800")

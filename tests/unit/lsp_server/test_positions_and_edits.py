"""Positions as editors count them, and edits that give exactly the text that was meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.edits import document_edit, text_edits, whole_file_edit
from lsp_server.positions import length, offset_at, split_lines

ENCODINGS = ("utf-8", "utf-16", "utf-32")
TEXT = "a😀é\r\nx\ry\n\u2028z\x0cw"


def test_lines_end_where_editors_end_them() -> None:
    assert split_lines(TEXT) == ["a😀é\r\n", "x\r", "y\n", "\u2028z\x0cw"]
    assert [split_lines(text) for text in ("", "\n", "a")] == [[""], ["\n", ""], ["a"]]


@pytest.mark.parametrize(
    ("line", "units", "offset"),
    [
        (0, (0, 0, 0), 0),
        (0, (5, 3, 2), 2),
        (0, (7, 4, 3), 3),
        (0, (99, 99, 99), 3),
        (1, (1, 1, 1), 6),
        (9, (0, 0, 0), 13),
    ],
)
def test_offsets_in_every_encoding(line: int, units: tuple[int, int, int], offset: int) -> None:
    found = [offset_at(TEXT, line, character, encoding) for encoding, character in zip(ENCODINGS, units, strict=True)]
    assert found == [offset] * 3


def test_lengths() -> None:
    assert [length("a😀é", encoding) for encoding in ENCODINGS] == [7, 4, 3]


def apply(text: str, edits: list[dict[str, Any]], encoding: str) -> str:
    """As an editor does: all positions are those of the text before."""
    for edit in reversed(edits):
        start, end = (
            offset_at(text, edit["range"][side]["line"], edit["range"][side]["character"], encoding)
            for side in ("start", "end")
        )
        text = text[:start] + edit["newText"] + text[end:]
    return text


def test_only_what_changed_is_edited() -> None:
    edits = text_edits("a\nb\nc\nd\n", "a\nB\nc\nd\ne", "utf-16")
    assert edits == [
        {"range": {"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 0}}, "newText": "B\n"},
        {"range": {"start": {"line": 4, "character": 0}, "end": {"line": 4, "character": 0}}, "newText": "e"},
    ]
    assert text_edits("same", "same", "utf-8") == []


def test_a_document_edit_is_versioned() -> None:
    edit = document_edit("file:///a", 7, "a", "b", "utf-16")
    assert edit["documentChanges"][0]["textDocument"] == {"uri": "file:///a", "version": 7}


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [("a", "b", [None]), (None, "b", ["create", None]), ("a", None, ["delete"])],
)
def test_what_an_ask_draws(before: str | None, after: str | None, kinds: list[str | None]) -> None:
    changes = whole_file_edit(Path("/w/a"), before, after, "utf-16")["documentChanges"]
    assert [change.get("kind") for change in changes] == kinds


pieces = st.lists(st.sampled_from(["a", "b", "😀", "é", "\n", "\r\n", "\r", "\u2028", "\x0c"]), max_size=30).map(
    "".join
)


@given(pieces, pieces, st.sampled_from(ENCODINGS))
def test_edits_give_the_text_in_every_encoding(before: str, after: str, encoding: str) -> None:
    assert apply(before, text_edits(before, after, encoding), encoding) == after


@given(pieces)
def test_lines_join_to_the_text(text: str) -> None:
    assert "".join(split_lines(text)) == text


@given(pieces, pieces, pieces, st.sampled_from(ENCODINGS))
def test_incremental_changes_keep_the_buffer_right(head: str, old: str, tail: str, encoding: str) -> None:
    """What an editor sends as a range is what is replaced."""
    from lsp_server.documents import OpenDocuments

    text, documents = head + old + tail, OpenDocuments(encoding)
    start, end = (position_of(text, offset, encoding) for offset in (len(head), len(head + old)))
    if offset_at(text, *start, encoding) != len(head) or offset_at(text, *end, encoding) != len(head + old):
        return  # between CR and LF there is no position
    uri = "file:///w/a"
    documents.opened({"textDocument": {"uri": uri, "languageId": "x", "version": 1, "text": text}})
    range_ = {
        "start": dict(zip(("line", "character"), start, strict=True)),
        "end": dict(zip(("line", "character"), end, strict=True)),
    }
    change = {"range": range_, "text": "NEW"}
    documents.changed({"textDocument": {"uri": uri, "version": 2}, "contentChanges": [change]})
    document = documents.by_uri(uri)
    assert document is not None
    assert (document.text, document.version) == (head + "NEW" + tail, 2)


def position_of(text: str, offset: int, encoding: str) -> tuple[int, int]:
    lines = split_lines(text[:offset])
    return len(lines) - 1, length(lines[-1], encoding)

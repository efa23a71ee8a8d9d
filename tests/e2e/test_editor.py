"""The e2e client's text documents: edits land where the protocol says, in each position encoding."""

from __future__ import annotations

import pytest
from attrs import define, field

from tests.e2e.editor import Editor, apply_text_edits


@define
class Recorder:
    """Stands in for the client: keeps what would be sent."""

    sent: list[tuple[str, dict]] = field(factory=list)

    def notify(self, method, params):
        self.sent.append((method, params))


@pytest.fixture
def editor():
    return Editor(Recorder())


def at(line, start, end, text):
    return {
        "range": {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}},
        "newText": text,
    }


def change(path, version, *edits):
    return {"textDocument": {"uri": path.as_uri(), "version": version}, "edits": list(edits)}


@pytest.mark.parametrize(("encoding", "start", "end"), [("utf-8", 7, 8), ("utf-16", 4, 5), ("utf-32", 3, 4)])
def test_positions_count_in_the_units_of_the_encoding(encoding, start, end):
    assert apply_text_edits("x\r\na😀éb\rlast", [at(1, start, end, "B")], encoding) == "x\r\na😀éB\rlast"


def test_edits_refer_to_the_text_before_and_inserts_keep_their_order():
    edits = [at(0, 3, 3, "1"), at(0, 0, 1, "A"), at(0, 3, 3, "2"), at(1, 0, 0, "end")]
    assert apply_text_edits("abc\n", edits, "utf-16") == "Abc12\nend"


WRONG = [
    ([at(0, 0, 9, "")], "column 9 of line 0, which has 3 units"),
    ([at(7, 0, 0, "")], "line 7 of 2"),
    ([at(0, 1, 0, "")], "a range that ends before it begins"),
    ([at(0, 0, 2, "x"), at(0, 1, 3, "y")], "overlapping edits"),
]


@pytest.mark.parametrize(("edits", "message"), WRONG, ids=[message[:12] for _, message in WRONG])
def test_an_edit_that_no_editor_could_apply_is_an_error(edits, message):
    with pytest.raises(ValueError, match=message):
        apply_text_edits("abc\n", edits, "utf-16")


def test_half_a_character_is_an_error():
    with pytest.raises(ValueError, match="column 1 of line 0 is inside a character"):
        apply_text_edits("😀", [at(0, 1, 1, "x")], "utf-16")


def test_an_open_document_changes_in_the_editor_only_and_its_version_counts(editor, tmp_path):
    path = tmp_path / "a b.txt"
    path.write_text("one\n")
    doc = editor.open(path)
    editor.change_range(path, at(0, 0, 3, "two"))
    assert editor.apply({"edit": {"documentChanges": [change(path, 2, at(0, 3, 3, "!"))]}}) == {"applied": True}
    assert (doc.text, doc.version, path.read_text()) == ("two!\n", 3, "one\n")
    uri = path.as_uri()
    assert editor.client.sent[1:] == [
        (
            "textDocument/didChange",
            {
                "textDocument": {"uri": uri, "version": 2},
                "contentChanges": [{"range": at(0, 0, 3, "")["range"], "text": "two"}],
            },
        ),
        (
            "textDocument/didChange",
            {"textDocument": {"uri": uri, "version": 3}, "contentChanges": [{"text": "two!\n"}]},
        ),
    ]


def test_a_stale_version_is_refused_and_nothing_changes(editor, tmp_path):
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_text("one\n")
    doc = editor.open(old)
    edit = {"documentChanges": [{"kind": "create", "uri": new.as_uri()}, change(old, 5, at(0, 0, 0, "x"))]}
    reason = f"{old.as_uri()} has version 1, the edit is for version 5"
    assert editor.apply({"edit": edit}) == {"applied": False, "failureReason": reason}
    assert (doc.text, new.exists()) == ("one\n", False)


def test_files_are_created_renamed_and_deleted(editor, tmp_path):
    editor.auto_open = False
    gone, old, new, made = (tmp_path / name for name in ("gone", "old", "sub/new", "made"))
    gone.write_text("x")
    old.write_text("old\n")
    editor.open(old)
    operations = [
        {"kind": "create", "uri": made.as_uri()},
        change(made, None, at(0, 0, 0, "text")),
        {"kind": "rename", "oldUri": old.as_uri(), "newUri": new.as_uri()},
        {"kind": "delete", "uri": gone.as_uri()},
    ]
    assert editor.apply({"edit": {"documentChanges": operations}}) == {"applied": True}
    assert (made.read_text(), new.read_text(), old.exists(), gone.exists()) == ("text", "old\n", False, False)
    assert list(editor.documents) == [new.as_uri()]
    again = editor.apply({"edit": {"documentChanges": [{"kind": "create", "uri": made.as_uri()}]}})
    assert again == {"applied": False, "failureReason": f"{made} exists"}


def test_a_file_that_is_not_open_is_opened_and_left_unsaved(editor, tmp_path):
    path = tmp_path / "a"
    path.write_text("one")
    assert editor.apply({"edit": {"changes": {path.as_uri(): [at(0, 0, 3, "two")]}}}) == {"applied": True}
    assert (editor.documents[path.as_uri()].text, path.read_text()) == ("two", "one")


def test_confirmation_decides_and_annotations_must_exist(editor, tmp_path):
    path = tmp_path / "a"
    path.write_text("one")
    edit = {"documentChanges": [change(path, None, {**at(0, 0, 3, "two"), "annotationId": "big"})]}
    with pytest.raises(ValueError, match="names the annotation 'big'"):
        editor.apply({"edit": edit})
    edit["changeAnnotations"] = {"big": {"label": "Big", "needsConfirmation": True}}
    editor.confirm = lambda annotation: annotation["label"] != "Big"
    assert editor.apply({"edit": edit}) == {"applied": False, "failureReason": "not confirmed: Big"}

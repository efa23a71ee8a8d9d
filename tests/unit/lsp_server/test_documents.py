"""Buffers over the disk: what agents read, and where writes go."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from attrs import define, field

from agent_core.errors import ReviewConflict, ToolError
from agent_core.ports import FileState
from lsp_server.documents import (
    Buffers,
    EditorFiles,
    EditorTarget,
    OpenDocument,
    OpenDocuments,
    path_to_uri,
    uri_to_path,
)

pytestmark = pytest.mark.anyio


@define
class Editor:
    """Applies what it is sent, unless it refuses or only pretends."""

    documents: OpenDocuments = field(factory=OpenDocuments)
    refuses: str | None = None
    pretends: bool = False
    edits: list[str] = field(factory=list)

    def open(self, path: Path, text: str) -> None:
        item = {"uri": path_to_uri(path), "languageId": "x", "version": 1, "text": text}
        self.documents.send_edit = self.edit
        self.documents.opened({"textDocument": item})

    async def edit(self, document: OpenDocument, text: str) -> str | None:
        self.edits.append(text)
        if self.refuses is None and not self.pretends:
            document.update(text, document.version + 1)
        return self.refuses

    @property
    def files(self) -> EditorFiles:
        return EditorFiles(Buffers([self.documents]))

    @property
    def target(self) -> EditorTarget:
        return EditorTarget(Buffers([self.documents]))


@pytest.mark.parametrize(
    ("disk", "buffer", "seen", "unsaved"),
    [
        (b"a\n", None, b"a\n", False),
        (b"a\n", "a\n", b"a\n", False),
        (b"a\r\n", "a\n", b"a\r\n", False),
        (b"\xef\xbb\xbfa\n", "a\n", b"\xef\xbb\xbfa\n", False),
        (b"\xe9\n", "é\n", b"\xe9\n", False),
        (b"a\n", "b\n", b"b\n", True),
        (b"\xe9\n", "é!\n", "é!\n".encode(), True),
        (None, "new\n", b"new\n", True),
    ],
    ids=["closed", "clean", "clean CRLF", "clean BOM", "clean Latin-1", "dirty", "dirty Latin-1", "not on disk"],
)
async def test_agents_read_the_unsaved_buffer(
    tmp_path: Path, disk: bytes | None, buffer: str | None, seen: bytes, unsaved: bool
) -> None:
    path, editor = tmp_path / "a", Editor()
    if disk is not None:
        path.write_bytes(disk)
    if buffer is not None:
        editor.open(path, buffer)
    assert await editor.files.read(path) == FileState(seen, unsaved)


async def test_a_write_to_a_clean_buffer_goes_to_the_disk(tmp_path: Path) -> None:
    path, editor = tmp_path / "a", Editor()
    path.write_bytes(b"a\n")
    editor.open(path, "a\n")
    assert await editor.files.write(path, b"b\n", expected=b"a\n") is True
    assert (path.read_bytes(), editor.edits) == (b"b\n", [])


async def test_a_write_to_a_dirty_buffer_goes_to_the_editor_and_is_not_saved(tmp_path: Path) -> None:
    path, editor = tmp_path / "a", Editor()
    path.write_bytes(b"a\n")
    editor.open(path, "mine\n")
    assert await editor.files.write(path, b"mine and theirs\n", expected=b"mine\n") is False
    assert (path.read_bytes(), editor.edits) == (b"a\n", ["mine and theirs\n"])


async def test_a_buffer_that_has_moved_on_is_not_overwritten(tmp_path: Path) -> None:
    path, editor = tmp_path / "a", Editor()
    path.write_bytes(b"a\n")
    editor.open(path, "typed meanwhile\n")
    with pytest.raises(ToolError, match="changed in the editor meanwhile"):
        await editor.files.write(path, b"b\n", expected=b"mine\n")
    assert (path.read_bytes(), editor.edits) == (b"a\n", [])


@pytest.mark.parametrize(
    ("editor", "reason"),
    [(Editor(refuses="read-only"), "refused the edit: read-only"), (Editor(pretends=True), "not what was written")],
)
async def test_an_editor_that_does_not_change_its_text_is_not_believed(
    tmp_path: Path, editor: Editor, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lsp_server.documents._SETTLE_SECONDS", 0.05)
    path = tmp_path / "a"
    path.write_bytes(b"a\n")
    editor.open(path, "mine\n")
    with pytest.raises(ToolError, match=reason):
        await editor.files.write(path, b"theirs\n", expected=b"mine\n")


async def test_a_buffer_is_found_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "a").write_bytes(b"a\n")
    editor = Editor()
    editor.open(tmp_path / "link" / "a", "b\n")
    assert (await editor.files.read(tmp_path / "real" / "a")).data == b"b\n"


async def test_reviewed_changes_go_to_any_open_buffer(tmp_path: Path) -> None:
    path, editor = tmp_path / "a", Editor()
    path.write_bytes(b"a\n")
    assert await editor.target.read_all([path]) == [b"a\n"]
    editor.open(path, "a\n")
    assert await editor.target.read_all([path]) == ["a\n"]
    await editor.target.write(path, "a\n", "b\n")
    assert (path.read_bytes(), editor.edits) == (b"a\n", ["b\n"])


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("x\n", "b\n", "changed in the editor"),
        ("a\n", None, "open in the editor"),
        (b"a\n", "b\n", "changed in the editor"),
    ],
)
async def test_a_conflict_with_a_buffer_changes_nothing(
    tmp_path: Path, before: bytes | str, after: str | None, reason: str
) -> None:
    path, editor = tmp_path / "a", Editor()
    path.write_bytes(b"a\n")
    editor.open(path, "a\n")
    with pytest.raises(ReviewConflict, match=reason):
        await editor.target.write(path, before, after)
    assert (path.read_bytes(), editor.edits) == (b"a\n", [])


async def test_a_buffer_that_was_closed_is_a_conflict(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a\n")
    with pytest.raises(ReviewConflict, match="closed in the editor"):
        await Editor().target.write(tmp_path / "a", "a\n", "b\n")


async def test_the_text_may_come_after_the_answer(tmp_path: Path) -> None:
    """Editors answer applyEdit before or after they send didChange."""
    document = OpenDocument("file:///a", Path("/a"), "x", 1, "a")

    async def later() -> None:
        await anyio.sleep(0.02)
        document.update("half", 2)
        await anyio.sleep(0.02)
        document.update("b", 3)

    async with anyio.create_task_group() as group:
        group.start_soon(later)
        assert await document.becomes("b")


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///w/a%20b/%C3%BC", Path("/w/a b/ü")),
        ("file://localhost/w", Path("/w")),
        ("file://host/w", None),
        ("untitled:Untitled-1", None),
        ("agent-base:/x/y", None),
        ("", None),
    ],
)
def test_uris(uri: str, path: Path | None) -> None:
    assert uri_to_path(uri) == path

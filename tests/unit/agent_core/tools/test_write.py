from __future__ import annotations

import codecs
from pathlib import Path

import pytest
from attrs import evolve, frozen

from agent_core.errors import ToolError
from agent_core.permissions.types import PermissionFacts
from agent_core.ports import FileState
from agent_core.tool import ToolContext, ToolResult
from agent_core.tools.read import Read
from agent_core.tools.write import Write

pytestmark = pytest.mark.anyio


async def write(ctx: ToolContext, content: str, name: str = "a.txt") -> ToolResult:
    return await Write().run({"file_path": name, "content": content}, ctx)


async def read(ctx: ToolContext, name: str = "a.txt") -> None:
    await Read().run({"file_path": name}, ctx)


async def test_creates_a_file_and_its_folders(ctx: ToolContext, tmp_path: Path) -> None:
    path = tmp_path / "new/sub/a.txt"
    assert await write(ctx, "one\ntwo\n", "new/sub/a.txt") == ToolResult.ok(
        f"Created {path} (2 lines).",
        diff="--- /dev/null\n+++ b/new/sub/a.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n",
        changed=((path, "added"),),
    )
    assert path.read_bytes() == b"one\ntwo\n"


async def test_replaces_a_file_that_was_read(ctx: ToolContext, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old\n")
    await read(ctx)
    assert await write(ctx, "new") == ToolResult.ok(
        f"Updated {path} (1 line).",
        diff="--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n\\ No newline at end of file\n",
        changed=((path, "modified"),),
    )
    assert path.read_bytes() == b"new"
    assert (await write(ctx, "again")).text == f"Updated {path} (1 line)."  # it knows what it wrote


async def test_nothing_to_write(ctx: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"x\r\n")
    await read(ctx)
    assert await write(ctx, "x\n") == ToolResult.ok(f"{tmp_path}/a.txt already has this content; nothing was written.")


async def test_unread_and_changed_files_are_refused(ctx: ToolContext, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ToolError, match="exists and you have not read it"):
        await write(ctx, "new")
    await read(ctx)
    path.write_text("theirs")
    with pytest.raises(ToolError, match="has changed since you read it"):
        await write(ctx, "new")
    assert path.read_text() == "theirs"


@pytest.mark.parametrize(
    ("name", "before", "content", "after"),
    [
        ("test_d12_crlf", b"a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n"),
        ("test_d12_crlf_doubled", b"a\r\n", "b\r\nc\r\n", b"b\r\nc\r\n"),
        ("test_d12_lf", b"a\n", "b\r\nc\n", b"b\nc\n"),
        ("test_d12_mixed_where_equal", b"a\nb\r\nc\r\n", "a\nb\nd\n", b"a\nb\r\nd\r\n"),
        ("test_d9_bom", codecs.BOM_UTF8 + b"a", "\ufeffb", codecs.BOM_UTF8 + b"b"),
        ("test_d22_latin_1", b"\xe9\n", "è\n", b"\xe8\n"),
        ("test_d22_utf_16", "\ufeffa\r\n".encode("utf-16-le"), "é\n", "\ufeffé\r\n".encode("utf-16-le")),
        ("empty", b"", "a\r\nb\n", b"a\nb\n"),
    ],
)
async def test_d9_d12_d22_form_of_the_file_is_kept(
    ctx: ToolContext, tmp_path: Path, name: str, before: bytes, content: str, after: bytes
) -> None:
    (tmp_path / "a.txt").write_bytes(before)
    await read(ctx)
    await write(ctx, content)
    assert (tmp_path / "a.txt").read_bytes() == after


async def test_d12_new_files_beside_crlf_files_are_written_as_given(ctx: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_bytes(b"x\r\n")
    await write(ctx, "a\n")
    await write(ctx, "a\r\n", "c.txt")
    assert [(tmp_path / name).read_bytes() for name in ("a.txt", "c.txt")] == [b"a\n", b"a\r\n"]


async def test_d22_unencodable_text_changes_nothing(ctx: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9")
    await read(ctx)
    with pytest.raises(ToolError, match="RIGHTWARDS ARROW"):
        await write(ctx, "café →")
    assert (tmp_path / "a.txt").read_bytes() == b"caf\xe9"


async def test_facts_show_what_run_does(ctx: ToolContext, tmp_path: Path) -> None:
    """D8: preview and execution come from the same code, in the file's own line ends."""
    path = tmp_path / "a.txt"
    path.write_bytes(codecs.BOM_UTF8 + b"a\r\nb")
    await read(ctx)
    input = {"file_path": "a.txt", "content": "a\nc"}
    facts = await Write().facts(input, ctx)
    diff = (
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n"
        "\\ No newline at end of file\n"
    )
    assert facts == PermissionFacts(writes=(path,), diff=diff, edit=(path, "a\r\nb", "a\r\nc"))
    assert path.read_bytes() == codecs.BOM_UTF8 + b"a\r\nb"
    result = await Write().run(input, ctx)
    assert result.diff == facts.diff
    assert path.read_bytes() == codecs.BOM_UTF8 + b"a\r\nc"


async def test_facts_of_a_new_file(ctx: ToolContext, tmp_path: Path) -> None:
    assert (await Write().facts({"file_path": "n", "content": "x"}, ctx)).edit == (tmp_path / "n", None, "x")
    assert not (tmp_path / "n").exists()
    assert Write().title({"file_path": "src/n.py", "content": ""}) == "Write src/n.py"


async def test_an_unsaved_buffer_is_named(ctx: ToolContext) -> None:
    @frozen
    class Buffers:
        async def read(self, path: Path) -> FileState:
            return FileState(b"buffer", unsaved=True)

        async def write(self, path: Path, data: bytes, *, expected: bytes | None) -> bool:
            assert (data, expected) == (b"new", b"buffer")
            return False

    ctx = evolve(ctx, files=Buffers())
    await read(ctx)
    assert "is not on disk yet" in (await write(ctx, "new")).text


async def test_a_folder_is_not_a_file(ctx: ToolContext, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="is a directory"):
        await write(ctx, "x", ".")
    (tmp_path / "file").touch()
    with pytest.raises(ToolError, match="is a file, not a directory"):
        await write(ctx, "x", "file/a")

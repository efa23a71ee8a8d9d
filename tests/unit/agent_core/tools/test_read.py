from __future__ import annotations

import base64
import codecs
import os
from pathlib import Path

import pytest
from attrs import evolve, frozen

from agent_core.errors import ToolError
from agent_core.messages import ImageBlock
from agent_core.permissions.types import PermissionFacts
from agent_core.ports import FileState
from agent_core.tool import ToolContext, ToolResult
from agent_core.tools.files import digest
from agent_core.tools.read import Read

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 10


async def read(ctx: ToolContext, **input: object) -> str:
    return (await Read().run({"file_path": "a.txt", **input}, ctx)).text


async def error(ctx: ToolContext, **input: object) -> str:
    with pytest.raises(ToolError) as caught:
        await read(ctx, **input)
    return str(caught.value)


async def test_numbers_the_lines_as_cat_does(ctx: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\n\ttwo\n\nfour")
    result = await Read().run({"file_path": "a.txt"}, ctx)
    assert result == ToolResult.ok("     1\tone\n     2\t\ttwo\n     3\t\n     4\tfour")
    assert ctx.read_files.digest(tmp_path / "a.txt") == digest(b"one\r\n\ttwo\n\nfour")


async def test_a_part(ctx: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"l{n}\n" for n in range(1, 8)))
    assert await read(ctx, offset=3, limit=2) == "     3\tl3\n     4\tl4\n[lines 3-4 of 7; read on with offset 5]"
    assert await read(ctx, offset=7) == "     7\tl7\n[lines 7-7 of 7]"
    assert await error(ctx, offset=8) == f"{tmp_path}/a.txt has 7 lines; offset 8 is past its end."


async def test_long_files_lines_and_results_are_cut(ctx: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n" * 2001)
    lines = (await read(ctx)).split("\n")
    assert (len(lines), lines[-1]) == (2001, "[lines 1-2000 of 2001; read on with offset 2001]")
    (tmp_path / "a.txt").write_text("y" * 2005)
    assert await read(ctx) == f"     1\t{'y' * 2000}[... 5 more characters in this line]"
    (tmp_path / "a.txt").write_text(("z" * 1999 + "\n") * 100)
    text = await read(ctx)
    assert text.endswith("\n[lines 1-49 of 100; read on with offset 50]")
    assert len(text) < 100_100


async def test_only_line_feeds_end_a_line(ctx: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\x0cb\u2028c\n")
    assert await read(ctx) == "     1\ta\x0cb\u2028c"


async def test_empty(ctx: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"")
    assert await read(ctx) == "[the file exists and is empty]"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"caf\xe9\n", "     1\tcafé\n[the file is not UTF-8; each byte is shown as its latin-1 character]"),
        (codecs.BOM_UTF8 + b"a\n", "     1\ta"),
        ("\ufeffé\r\n".encode("utf-16-le"), "     1\té\n[the file's encoding is utf-16-le]"),
    ],
)
async def test_d22_other_encodings(ctx: ToolContext, tmp_path: Path, data: bytes, text: str) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    assert await read(ctx) == text


async def test_errors_in_plain_words(ctx: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("b")
    (tmp_path / "data.bin").write_bytes(b"a\0b")
    (tmp_path / "x.pdf").write_bytes(b"%PDF-1.7 " + b"x" * 2039)
    os.mkfifo(tmp_path / "pipe")
    here = str(tmp_path)
    assert [await error(ctx, file_path=name) for name in (
        "a.txt", "no/such/a", ".", "b.txt/c", "data.bin", "x.pdf", "pipe", " ", "a\0",
    )] == [
        f"{here}/a.txt does not exist. Did you mean {here}/b.txt?",
        f"{here}/no/such/a does not exist. The nearest folder that exists is {here}.",
        f"{here} is a directory. List it with Glob (path: {here}, pattern: *) or with ls.",
        f"{here}/b.txt/c does not exist: a part of the path before the last is a file, not a directory.",
        f"{here}/data.bin is binary data (3 bytes), not text. Use Bash to look inside.",
        f"{here}/x.pdf is a PDF document (2.0 KiB), not text. Use Bash to look inside.",
        f"{here}/pipe is not a regular file (a device, pipe or socket), so it is not opened.",
        f"' ' is not a path. Give an absolute path, or one relative to {here}.",
        f"'a\\x00' is not a path. Give an absolute path, or one relative to {here}.",
    ]  # fmt: skip
    assert ctx.read_files.digest(tmp_path / "data.bin") is None


async def test_unreadable(ctx: ToolContext, tmp_path: Path) -> None:
    @frozen
    class Locked:
        async def read(self, path: Path) -> FileState:
            raise PermissionError(13, "Permission denied", str(path))

        async def write(self, path: Path, data: bytes, *, expected: bytes | None) -> bool:
            raise AssertionError("reading must not write")

    assert await error(evolve(ctx, files=Locked())) == f"{tmp_path}/a.txt: Permission denied. Nothing was changed."


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
async def test_images(ctx: ToolContext, tmp_path: Path, data: bytes, kind: str) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    assert await Read().run({"file_path": "a.txt"}, ctx) == ToolResult(
        (ImageBlock(kind, base64.b64encode(data).decode()),)
    )


async def test_big_images(ctx: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(PNG + b"\0" * 4_000_000)
    assert "is an image of 3.8 MiB; images can be shown up to 3.8 MiB" in await error(ctx)


async def test_unsaved_buffers(ctx: ToolContext, tmp_path: Path) -> None:
    @frozen
    class Buffers:
        async def read(self, path: Path) -> FileState:
            return FileState(b"buffer\n", unsaved=True)

        async def write(self, path: Path, data: bytes, *, expected: bytes | None) -> bool:
            raise AssertionError("reading must not write")

    assert await read(evolve(ctx, files=Buffers())) == (
        "     1\tbuffer\n[this is the unsaved text in the user's editor; the file on disk differs]"
    )
    assert ctx.read_files.digest(tmp_path / "a.txt") == digest(b"buffer\n")


async def test_facts_and_title(ctx: ToolContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/x")
    paths = ["sub/../a.txt", "~/a.txt", "/b"]
    assert [await Read().facts({"file_path": path}, ctx) for path in paths] == [
        PermissionFacts(reads=(tmp_path / "a.txt",)),
        PermissionFacts(reads=(Path("/home/x/a.txt"),)),
        PermissionFacts(reads=(Path("/b"),)),
    ]
    assert Read().title({"file_path": "src/a\nb.py"}) == "Read src/a b.py"

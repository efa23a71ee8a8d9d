from __future__ import annotations

import codecs
from pathlib import Path

import pytest
from attrs import evolve, frozen

from agent_core.errors import ToolError
from agent_core.permissions.types import PermissionFacts
from agent_core.ports import FileState
from agent_core.tool import ToolContext, ToolResult
from agent_core.tools.edit import Edit
from agent_core.tools.read import Read

pytestmark = pytest.mark.anyio


async def edit(ctx: ToolContext, old: str, new: str, **more: object) -> ToolResult:
    return await Edit().run({"file_path": "a.txt", "old_string": old, "new_string": new, **more}, ctx)


async def error(ctx: ToolContext, old: str, new: str, **more: object) -> str:
    with pytest.raises(ToolError) as caught:
        await edit(ctx, old, new, **more)
    return str(caught.value)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.txt"


async def have(ctx: ToolContext, path: Path, data: bytes) -> None:
    path.write_bytes(data)
    await Read().run({"file_path": str(path)}, ctx)


async def test_replaces_one_place(ctx: ToolContext, path: Path) -> None:
    await have(ctx, path, b"".join(b"%d\n" % n for n in range(1, 10)))
    assert await edit(ctx, "5\n", "five\n") == ToolResult.ok(
        f"Edited {path} (1 place).",
        diff="--- a/a.txt\n+++ b/a.txt\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n",
        changed=((path, "modified"),),
    )
    assert path.read_bytes() == b"1\n2\n3\n4\nfive\n6\n7\n8\n9\n"
    assert (await edit(ctx, "five", "5")).text == f"Edited {path} (1 place)."


async def test_several_matches(ctx: ToolContext, path: Path) -> None:
    await have(ctx, path, b"x = 1\ny\nx = 1\n")
    assert await error(ctx, "x = 1", "x = 2") == (
        f"old_string occurs 2 times in {path}, on lines 1, 3. "
        "Add surrounding lines to make it unique, or set replace_all."
    )
    assert (await edit(ctx, "x = 1", "x = 2", replace_all=True)).text == f"Edited {path} (2 places)."
    assert path.read_bytes() == b"x = 2\ny\nx = 2\n"


async def test_overlapping_matches_are_ambiguous(ctx: ToolContext, path: Path) -> None:
    await have(ctx, path, b"aaa")
    assert "occurs 2 times" in await error(ctx, "aa", "b")
    await edit(ctx, "aa", "b", replace_all=True)
    assert path.read_bytes() == b"ba"


async def test_many_matches_are_counted_not_all_listed(ctx: ToolContext, path: Path) -> None:
    await have(ctx, path, b"x\n" * 30)
    listed = ", ".join(map(str, range(1, 21)))
    assert f"occurs 30 times in {path}, on lines {listed} and more. " in await error(ctx, "x", "y")


async def test_no_match_shows_the_nearest_line(ctx: ToolContext, path: Path) -> None:
    await have(ctx, path, b"import os\n    return total\n")
    start = f"old_string does not occur in {path}."
    assert [await error(ctx, old, "") for old in ("\n  return  total\nfoo", "zzzzzz", "     2\treturn total")] == [
        f"{start} The nearest line is 2: '    return total'",
        f"{start} Nothing in the file is like it: read the file again.",
        f"{start} It seems to start with a line number of Read: leave those out.",
    ]
    assert path.read_bytes() == b"import os\n    return total\n"


async def test_nothing_to_edit(ctx: ToolContext, path: Path) -> None:
    await have(ctx, path, b"a\nb")
    same = "old_string and new_string are the same, so there is nothing to edit."
    assert [await error(ctx, "a", "a"), await error(ctx, "a\nb", "a\r\nb"), await error(ctx, "", "")] == [same] * 3


async def test_needs_a_read(ctx: ToolContext, path: Path) -> None:
    path.write_text("a")
    assert await error(ctx, "a", "b") == f"You have not read {path}. Read it first, then edit it."
    assert path.read_text() == "a"


async def test_a_file_changed_since_the_read(ctx: ToolContext, path: Path) -> None:
    """Features section 18: allowed while the match is exact and unique."""
    await have(ctx, path, b"one\n")
    path.write_bytes(b"zero\none\ntwo two\n")
    await edit(ctx, "one", "1")
    assert path.read_bytes() == b"zero\n1\ntwo two\n"
    path.write_bytes(b"two two\n")
    assert "has changed since you read it" in await error(ctx, "two", "2", replace_all=True)
    assert path.read_bytes() == b"two two\n"


async def test_empty_old_string_creates(ctx: ToolContext, path: Path) -> None:
    assert await edit(ctx, "", "a\r\nb") == ToolResult.ok(
        f"Created {path}.",
        diff="--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n",
        changed=((path, "added"),),
    )
    assert path.read_bytes() == b"a\r\nb"
    assert "exists and is not empty" in await error(ctx, "", "c")
    path.write_bytes(codecs.BOM_UTF8)
    await edit(ctx, "", "c")
    assert path.read_bytes() == codecs.BOM_UTF8 + b"c"


async def test_a_missing_file(ctx: ToolContext, path: Path) -> None:
    (path.parent / "b.txt").touch()
    assert await error(ctx, "a", "b") == f"{path} does not exist. Did you mean {path.parent}/b.txt?"


@pytest.mark.parametrize(
    ("name", "before", "old", "new", "after"),
    [
        ("test_d8", b"a\r\nb\r\nc\r\n", "a\nb", "x\ny", b"x\r\ny\r\nc\r\n"),
        ("test_d9", codecs.BOM_UTF8 + b"a\nb", "a\n", "\ufeffz\n", codecs.BOM_UTF8 + b"z\nb"),
        ("test_d9_old_with_bom", codecs.BOM_UTF8 + b"a\nb", "\ufeffa\n", "z\n", codecs.BOM_UTF8 + b"z\nb"),
        ("test_d12_hard_breaks", b"a  \r\nb  \r\nc\n", "b", "B", b"a  \r\nB  \r\nc\n"),
        ("test_d12_no_final_newline", b"a\nb", "a", "A", b"A\nb"),
        ("test_d22_latin_1", b"caf\xe9 na\xefve\nx\n", "x", "y", b"caf\xe9 na\xefve\ny\n"),
        ("test_d22_utf_16", "\ufeffé\r\nx".encode("utf-16-be"), "x", "→", "\ufeffé\r\n→".encode("utf-16-be")),
    ],
)
async def test_d8_d9_d12_d22_bytes_outside_stay(
    ctx: ToolContext, path: Path, name: str, before: bytes, old: str, new: str, after: bytes
) -> None:
    await have(ctx, path, before)
    await edit(ctx, old, new)
    assert path.read_bytes() == after


async def test_d22_unencodable_text_is_refused_before_anyone_is_asked(ctx: ToolContext, path: Path) -> None:
    await have(ctx, path, b"caf\xe9\n")
    input = {"file_path": "a.txt", "old_string": "caf", "new_string": "→"}
    for method in (Edit().facts, Edit().run):
        with pytest.raises(ToolError, match="RIGHTWARDS ARROW"):
            await method(input, ctx)
    assert path.read_bytes() == b"caf\xe9\n"


async def test_binary_files_are_refused(ctx: ToolContext, path: Path) -> None:
    path.write_bytes(b"a\0b")
    ctx.read_files.remember(path, "any")
    assert await error(ctx, "a", "c") == f"{path} is binary data (3 bytes), not text; Edit cannot change it."


async def test_facts_show_what_run_does(ctx: ToolContext, path: Path) -> None:
    await have(ctx, path, b"a\r\nb\r\n")
    input = {"file_path": str(path), "old_string": "a\nb", "new_string": "c"}
    facts = await Edit().facts(input, ctx)
    diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1 @@\n-a\n-b\n+c\n"
    assert facts == PermissionFacts(writes=(path,), diff=diff, edit=(path, "a\r\nb\r\n", "c\r\n"))
    assert path.read_bytes() == b"a\r\nb\r\n"
    assert (await Edit().run(input, ctx)).diff == diff
    assert path.read_bytes() == b"c\r\n"
    assert Edit().title(input) == f"Edit {path}"


async def test_a_change_between_plan_and_write_is_caught(ctx: ToolContext, path: Path) -> None:
    await have(ctx, path, b"a")
    inner = ctx.files

    @frozen
    class Racing:
        async def read(self, path: Path) -> FileState:
            return await inner.read(path)

        async def write(self, path: Path, data: bytes, *, expected: bytes | None) -> bool:
            path.write_bytes(b"theirs")
            return await inner.write(path, data, expected=expected)

    with pytest.raises(ToolError, match="changed while this call was working on it"):
        await edit(evolve(ctx, files=Racing()), "a", "b")
    assert path.read_bytes() == b"theirs"


async def test_big_files_off_the_loop(ctx: ToolContext, path: Path) -> None:
    await have(ctx, path, b"line\r\n" * 50_000 + b"end")
    result = await edit(ctx, "end", "END")
    assert path.read_bytes() == b"line\r\n" * 50_000 + b"END"
    assert result.diff is not None and result.diff.startswith(
        "--- a/a.txt\n+++ b/a.txt\n@@ -49998,4 +49998,4 @@\n line\n"
    )

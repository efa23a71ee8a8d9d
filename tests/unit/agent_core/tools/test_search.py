"""Glob and Grep, each test with ripgrep and with the stand-in: the same tree must give the same answer."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import psutil
import pytest

from agent_core.errors import ToolError
from agent_core.permissions.types import PermissionFacts
from agent_core.tool import ToolContext
from agent_core.tools.glob import Glob
from agent_core.tools.grep import Grep

HAS_RG = shutil.which("rg") is not None
FILES = {
    "a.py": "import os\nprint('needle')\n# end\nneedle again\n",
    "b.ts": "const Needle = 1\r\nneedle\r\n",
    ".github/ci.yml": "needle: 1\n",
    ".gitignore": "*.log\n/build/\n!keep.log\nsub/only.txt\n",
    "x.log": "needle\n",
    "keep.log": "needle\n",
    "build/out.py": "needle\n",
    "sub/c.py": "needle\nneedle needle\n",
    "sub/only.txt": "needle\n",
    "sub/build/d.py": "two\nlines\n",
    "sub/.gitignore": "deep/*\n!deep/e.py\n",
    "sub/deep/e.py": "needle\n",
    "sub/deep/f.py": "needle\n",
    "excluded.py": "needle\n",
    ".git/info/exclude": "excluded.py\n",
    ".git/needle.py": "needle\n",
    "empty.py": "",
}


@pytest.fixture(params=["rg", "walk"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    assert request.param != "rg" or HAS_RG, "ripgrep is not installed; make system installs it"
    if request.param == "walk":
        monkeypatch.setattr(shutil, "which", lambda name: None)
    return str(request.param)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for age, (name, text) in enumerate(FILES.items()):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
    (tmp_path / "bin.py").write_bytes(b"needle\0\n")
    (tmp_path / "wide.txt").write_bytes("\ufeffneedle é\n".encode("utf-16-le"))
    (tmp_path / "link.py").symlink_to("a.py")
    (tmp_path / "folder").symlink_to("sub")
    for name, when in (("bin.py", 10), ("wide.txt", 9)):
        os.utime(tmp_path / name, (when, when))
    return tmp_path


LeftBehind = Callable[[], list[psutil.Process]]

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("engine", "tree")]


async def glob(ctx: ToolContext, pattern: str, **more: object) -> list[str]:
    return (await Glob().run({"pattern": pattern, **more}, ctx)).text.split("\n")


async def grep(ctx: ToolContext, pattern: str, **more: object) -> list[str]:
    return (await Grep().run({"pattern": pattern, **more}, ctx)).text.split("\n")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("**/*", ["a.py", "b.ts", ".github/ci.yml", ".gitignore", "keep.log", "sub/c.py", "sub/build/d.py",
                  "sub/.gitignore", "sub/deep/e.py", "empty.py", "bin.py", "wide.txt"]),
        ("*.py", ["a.py", "sub/c.py", "sub/build/d.py", "sub/deep/e.py", "empty.py", "bin.py"]),
        ("sub/*.py", ["sub/c.py"]),
        ("sub/**/*.{py,txt}", ["sub/c.py", "sub/build/d.py", "sub/deep/e.py"]),
        ("build/**", ["build/out.py"]),  # ignored, but asked for by name
        ("a.py", ["a.py"]),
        ("[ab].*", ["a.py", "b.ts"]),
        ("*.nothing", ["No files found."]),
    ],
)  # fmt: skip
async def test_glob(ctx: ToolContext, pattern: str, expected: list[str]) -> None:
    assert await glob(ctx, pattern) == expected


async def test_glob_in_a_folder(ctx: ToolContext, tree: Path) -> None:
    assert await glob(ctx, "*.py", path="sub") == ["sub/c.py", "sub/build/d.py", "sub/deep/e.py"]
    assert await glob(ctx, "*/d.py", path=str(tree / "sub")) == ["sub/build/d.py"]
    assert await glob(ctx, f"{tree}/sub/*.py") == ["sub/c.py"]
    assert await glob(ctx, "*.py", path="folder") == ["folder/c.py", "folder/build/d.py", "folder/deep/e.py"]
    with pytest.raises(ToolError, match="There is no folder"):
        await glob(ctx, "*.py", path="nowhere")


async def test_glob_outside_the_working_directory(ctx: ToolContext, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "z.py").touch()
    assert await glob(ctx, "*.py", path=str(other)) == [f"{other}/z.py"]


async def test_ignore_rules_need_no_repository_and_the_nearest_wins(ctx: ToolContext, tree: Path) -> None:
    shutil.rmtree(tree / ".git")
    (tree / "sub/.gitignore").write_text("!y.log\nkeep.log\n[\n")
    for name in ("sub/x.log", "sub/y.log", "sub/keep.log"):
        (tree / name).touch()
    assert await glob(ctx, "*.log") == ["sub/y.log", "keep.log"]
    assert await glob(ctx, "sub/*.log") == ["sub/y.log"]


async def test_glob_limit(ctx: ToolContext, tree: Path) -> None:
    for number in range(101):
        (tree / f"n{number:03}.many").touch()
        os.utime(tree / f"n{number:03}.many", (number, number))
    assert await glob(ctx, "*.many") == [
        *(f"n{number:03}.many" for number in range(100, 0, -1)),
        "[the 100 newest of 101 files; use a narrower pattern or path to see others]",
    ]


@pytest.mark.parametrize(
    ("input", "expected"),
    [
        ({}, ["a.py", "b.ts", ".github/ci.yml", "keep.log", "sub/c.py", "sub/deep/e.py", "wide.txt"]),
        ({"glob": "*.py"}, ["a.py", "sub/c.py", "sub/deep/e.py"]),
        ({"glob": "*.{py,ts}"}, ["a.py", "b.ts", "sub/c.py", "sub/deep/e.py"]),
        ({"glob": "!*.py"}, ["b.ts", ".github/ci.yml", "keep.log", "wide.txt"]),
        ({"glob": "sub/**/e.py"}, ["sub/deep/e.py"]),
        ({"glob": "sub/*.py", "path": "sub"}, ["sub/c.py"]),
        ({"glob": "deep/*.py", "path": "sub"}, ["sub/deep/e.py"]),
        ({"type": "py"}, ["a.py", "sub/c.py", "sub/deep/e.py"]),
        ({"type": "py", "glob": "a.*"}, ["a.py"]),
        ({"path": "build"}, ["build/out.py"]),
        ({"path": "a.py"}, ["a.py"]),
        ({"head_limit": 2}, ["a.py", "b.ts", "[2 of 7 files shown; narrow the search or raise head_limit]"]),
        ({"output_mode": "count"},
         [".github/ci.yml:1", "a.py:2", "b.ts:1", "keep.log:1", "sub/c.py:2", "sub/deep/e.py:1", "wide.txt:1",
          "[9 in 7 files]"]),
        ({"output_mode": "count", "path": "a.py"}, ["a.py:2", "[2 in 1 file]"]),
        ({"output_mode": "content", "type": "py"},
         ["a.py:2:print('needle')", "a.py:4:needle again", "sub/c.py:1:needle", "sub/c.py:2:needle needle",
          "sub/deep/e.py:1:needle"]),
        ({"output_mode": "content", "path": "sub", "-n": False}, ["sub/c.py:needle", "sub/c.py:needle needle",
                                                                  "sub/deep/e.py:needle"]),
        ({"output_mode": "content", "glob": "b.ts", "-i": True}, ["b.ts:1:const Needle = 1", "b.ts:2:needle"]),
        ({"output_mode": "content", "glob": "a.py", "-B": 1},
         ["a.py-1-import os", "a.py:2:print('needle')", "a.py-3-# end", "a.py:4:needle again"]),
        ({"output_mode": "content", "type": "py", "path": ".", "-A": 0, "-C": 1, "head_limit": 6},
         ["a.py-1-import os", "a.py:2:print('needle')", "a.py-3-# end", "a.py:4:needle again", "--",
          "sub/c.py:1:needle",
          "[6 of 9 lines shown; narrow the search or raise head_limit]"]),
        ({"pattern": "^needle$", "output_mode": "content"},
         ["b.ts:2:needle", "keep.log:1:needle", "sub/c.py:1:needle", "sub/deep/e.py:1:needle"]),
        ({"pattern": "é"}, ["wide.txt"]),
        ({"pattern": "os.*end", "multiline": True, "output_mode": "content"},
         ["a.py:1:import os", "a.py:2:print('needle')", "a.py:3:# end"]),
        ({"pattern": "os.*end"}, ["No matches found."]),
        ({"pattern": "-x"}, ["No matches found."]),
    ],
)  # fmt: skip
async def test_grep(ctx: ToolContext, input: dict[str, object], expected: list[str]) -> None:
    assert await grep(ctx, **{"pattern": "needle", **input}) == expected  # type: ignore[arg-type]


async def test_grep_separates_blocks(ctx: ToolContext, tree: Path) -> None:
    (tree / "far.md").write_text("x\n1\n2\n3\nx\n")
    assert await grep(ctx, "x", type="md", output_mode="content", **{"-A": 1}) == [
        "far.md:1:x",
        "far.md-2-1",
        "--",
        "far.md:5:x",
    ]


async def test_grep_is_bounded(ctx: ToolContext, tree: Path) -> None:
    (tree / "long.md").write_text("x" * 600 + "\n" + ("y" * 400 + "x\n") * 100)
    lines = await grep(ctx, "x", type="md", output_mode="content", head_limit=0)
    assert lines[0] == f"long.md:1:{'x' * 500}[... 100 more]"
    assert lines[-1] == "[72 of 101 lines shown; narrow the search or raise head_limit]"
    assert len("\n".join(lines)) < 30_200


async def test_bad_input_is_explained(ctx: ToolContext) -> None:
    with pytest.raises(ToolError, match=r"pattern 'a\(' is not a valid regular expression"):
        await grep(ctx, "a(")
    with pytest.raises(ToolError, match=r"type 'nope' is unknown\. Use glob, or one of: c, cpp"):
        await grep(ctx, "a", type="nope")
    with pytest.raises(ToolError, match=r"nowhere does not exist\."):
        await grep(ctx, "a", path="nowhere")


async def test_e4_a_cancelled_search_leaves_no_process(
    ctx: ToolContext, tree: Path, engine: str, left_behind: LeftBehind
) -> None:
    (tree / "evil.md").write_text("a" * 40)
    started = time.monotonic()
    with anyio.move_on_after(0.5):
        await grep(ctx, "(a+)+$b", type="md")
    assert time.monotonic() - started < 4
    assert left_behind() == []


async def test_facts_and_titles(ctx: ToolContext, tree: Path) -> None:
    assert await Glob().facts({"pattern": "sub/deep/*.py"}, ctx) == PermissionFacts(reads=(tree / "sub/deep",))
    assert await Glob().facts({"pattern": "*.py", "path": "sub"}, ctx) == PermissionFacts(reads=(tree / "sub",))
    assert await Grep().facts({"pattern": "x"}, ctx) == PermissionFacts(reads=(tree,))
    assert await Grep().facts({"pattern": "x", "path": "/etc"}, ctx) == PermissionFacts(reads=(Path("/etc"),))
    assert [Glob().title({"pattern": "*.py"}), Grep().title({"pattern": "a b", "path": "src"})] == [
        "Glob *.py",
        "Grep a b in src",
    ]

"""WT-2: an isolated agent writes in its worktree, and nowhere in the main checkout or its git directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from agent_core.errors import ToolError
from agent_core.tool import Place, ToolContext
from agent_core.tools.builtin import builtin_tools
from agent_core.tools.edit import Edit
from agent_core.tools.paths import check_place, check_write, one_line, shown
from agent_core.tools.read import Read
from agent_core.tools.write import Write

pytestmark = [pytest.mark.anyio, pytest.mark.spec("WT-2")]

INPUTS = {
    "Bash": {"command": "touch ran"},
    "Edit": {"file_path": "src/a.txt", "old_string": "", "new_string": "x"},
    "Glob": {"pattern": "*"},
    "Grep": {"pattern": "x"},
    "Read": {"file_path": "src/a.txt"},
    "Write": {"file_path": "src/new.txt", "content": "x"},
}


def link_folder(worktree: Path, main: Path) -> str:
    (worktree / "link").symlink_to(main / "src")
    return "link/a.txt"


def link_parent(worktree: Path, main: Path) -> str:
    (worktree / "deep").symlink_to(main)
    return "deep/src/new/folder/a.txt"


def link_file(worktree: Path, main: Path) -> str:
    (worktree / "l.txt").symlink_to("../main/src/a.txt")
    return "l.txt"


def dangling_link(worktree: Path, main: Path) -> str:
    (worktree / "l.txt").symlink_to(main / "later.txt")
    return "l.txt"


def link_in_main(worktree: Path, main: Path) -> str:
    (main / "l.txt").symlink_to(worktree / "src/a.txt")
    return str(main / "l.txt")


@pytest.mark.parametrize(
    "spell",
    [
        lambda worktree, main: str(main / "src/a.txt"),
        lambda worktree, main: "../main/src/a.txt",
        lambda worktree, main: "src/../../main/new.txt",
        lambda worktree, main: str(main / ".git/config"),
        lambda worktree, main: str(main),
        link_folder,
        link_parent,
        link_file,
        dangling_link,
        link_in_main,
    ],
)
async def test_writes_into_the_main_checkout_are_errors(
    isolated: ToolContext, tmp_path: Path, spell: Callable[[Path, Path], str]
) -> None:
    worktree, main = tmp_path / "worktree", tmp_path / "main"
    name = spell(worktree, main)
    before = {path: path.read_bytes() for path in main.rglob("*") if path.is_file()}
    message = f"which this agent must not change: it works in its own worktree {worktree}. Write to the same file under"
    for tool in (Write(), Edit()):
        input = {"file_path": name, "content": "x", "old_string": "main", "new_string": "x"}
        for method in (tool.run, tool.facts):
            with pytest.raises(ToolError, match=message):
                await method(input, isolated)
    assert {path: path.read_bytes() for path in main.rglob("*") if path.is_file()} == before


async def test_the_worktree_and_other_places_are_free(isolated: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "worktree/out").symlink_to(tmp_path / "elsewhere")
    for name in ("src/b.txt", "out/c.txt", str(tmp_path / "main2.txt")):
        await Write().run({"file_path": name, "content": "x"}, isolated)
    written = [
        path.read_text()
        for path in (tmp_path / "worktree/src/b.txt", tmp_path / "elsewhere/c.txt", tmp_path / "main2.txt")
    ]
    assert written == ["x"] * 3
    assert "main" in (await Read().run({"file_path": str(tmp_path / "main/src/a.txt")}, isolated)).text


def test_worktree_inside_the_main_checkout_and_the_reverse(tmp_path: Path) -> None:
    worktree = tmp_path / "main/.agents/wt"
    (worktree / "vendored").mkdir(parents=True)
    place = Place(worktree, worktree, (tmp_path / "main", worktree / "vendored"))
    check_write(worktree / "a", place)
    for path in (tmp_path / "main/a", tmp_path / "main/.agents/a", worktree / "vendored/a"):
        with pytest.raises(ToolError):
            check_write(path, place)


def test_another_spelling_of_a_forbidden_folder(tmp_path: Path) -> None:
    """As with a bind mount or a file system without upper case: the same folder under another name."""
    (tmp_path / "main").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "main")
    with pytest.raises(ToolError, match="must not change"):
        check_write(tmp_path / "main/a", Place(tmp_path, None, (tmp_path / "alias",)))


@pytest.mark.parametrize("tool", builtin_tools(), ids=lambda tool: tool.name)
async def test_a_lost_worktree_stops_every_tool(isolated: ToolContext, tmp_path: Path, tool: object) -> None:
    """Never a fall back: not when the folder is gone, not when something else is in its place."""
    run = tool.run  # type: ignore[attr-defined]
    input = INPUTS[tool.name]  # type: ignore[attr-defined]
    (tmp_path / "worktree").rename(tmp_path / "away")
    with pytest.raises(ToolError, match="no longer exists"):
        await run(input, isolated)
    (tmp_path / "worktree").symlink_to(tmp_path / "main")
    with pytest.raises(ToolError, match="no longer inside this agent's worktree"):
        await run(input, isolated)
    assert sorted(path.name for path in (tmp_path / "main").rglob("*")) == [".git", "a.txt", "src"]


def test_the_working_directory_may_be_a_folder_of_the_worktree(isolated: ToolContext, tmp_path: Path) -> None:
    check_place(evolve(isolated.place, cwd=tmp_path / "worktree/src"))
    with pytest.raises(ToolError, match="no longer inside"):
        check_place(evolve(isolated.place, cwd=tmp_path / "main/src"))


def test_shown() -> None:
    place = Place(Path("/project"))
    assert [shown(Path(path), place) for path in ("/project/a/b", "/project", "/other")] == ["a/b", ".", "/other"]
    assert [one_line("a\n  b"), one_line("abcdef", 4)] == ["a b", "abc…"]

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent_core.applying import Applied, AppliedFile, Conflict, Selection, apply, review
from agent_core.disk_target import DiskTarget
from agent_core.errors import GitFailed, ReviewConflict
from agent_core.git_objects import TreeEntry, commit_tree, store, tree_of
from agent_core.repository import GitCommand, find_repository
from agent_core.restoring import restore
from agent_core.review import Review, Stats
from agent_core.review_targets import blocked
from agent_core.snapshot import Snapshot, take
from agent_core.worktree import Worktree, create
from tests.git_helpers import AGENT, Repo, clean_git, repo

__all__ = ["clean_git", "repo"]
pytestmark = [pytest.mark.anyio, pytest.mark.spec("ED-3")]

git = GitCommand()
TEXT = "".join(f"line {number}\n" for number in range(1, 21))


class Editor:
    """ReviewTarget with open buffers over the disk."""

    def __init__(self, **buffers: str) -> None:
        self.buffers: dict[str, str] = {name.replace("_", "."): text for name, text in buffers.items()}
        self.disk = DiskTarget()
        self.refuses: set[str] = set()
        self.refuses_after: dict[str, int] = {}
        self.distorts: set[str] = set()

    async def read_all(self, paths: Sequence[Path]) -> list[bytes | str | OSError | None]:
        on_disk = await self.disk.read_all(paths)
        return [self.buffers.get(path.name, data) for path, data in zip(paths, on_disk, strict=True)]

    def keeps(self, path: Path) -> str | None:
        return None

    async def write(self, path: Path, before: Any, after: Any, executable: bool | None = None) -> None:
        if path.name in self.refuses or self.refuses_after.get(path.name) == 0:
            raise ReviewConflict("the editor refused")
        self.refuses_after = {name: left - (name == path.name) for name, left in self.refuses_after.items()}
        if path.name in self.distorts:
            after = b"formatted on save"
        if path.name not in self.buffers:
            await self.disk.write(path, before, after, executable)
        elif self.buffers[path.name] != before:
            raise ReviewConflict("changed")
        elif after is None:
            del self.buffers[path.name]
            path.unlink()
        else:
            self.buffers[path.name] = after


class Case:
    """A repository, a worktree and what the agent did in it."""

    def __init__(self, repo: Repo, worktree: Worktree) -> None:
        self.repo, self.worktree = repo, worktree
        self.agent = Repo(worktree.path)
        self.editor = Editor()
        self.snapshot: Snapshot | None = None

    async def take(self) -> Snapshot:
        self.snapshot = await take(git, self.worktree, AGENT)
        return self.snapshot

    async def review(self) -> Review:
        return await review(git, self.worktree, self.snapshot or await self.take(), self.editor, AGENT)

    async def apply(self, *selection: Selection, dry_run: bool = False) -> Applied:
        snapshot = self.snapshot or await self.take()
        return await apply(git, self.worktree, snapshot, self.editor, AGENT, selection or None, dry_run=dry_run)

    async def ids(self) -> dict[str, tuple[str, ...]]:
        return {file.path: tuple(hunk.id for hunk in file.hunks) for file in (await self.review()).files}

    def files(self, repo: Repo | None = None) -> dict[str, Any]:
        """Path -> bytes, or what a link points to; with the x bit as a suffix of the path."""
        root, found = (repo or self.repo).path, {}
        for path in sorted(root.rglob("*")):
            name = str(path.relative_to(root))
            if name.split("/")[0] == ".git" or (path.is_dir() and not path.is_symlink()):
                continue
            executable = not path.is_symlink() and os.access(path, os.X_OK)
            found[name + ("*" if path.stat().st_mode & 0o100 and executable else "")] = (
                f"-> {path.readlink()}" if path.is_symlink() else path.read_bytes()
            )
        return found


@pytest.fixture
async def case(repo: Repo, tmp_path: Path) -> Case:
    repo.commit({"text": TEXT, "gone": "gone\n", "old": TEXT * 2, "run": "#!\n", "data.bin": b"\0one", "type": "x\n"})
    return Case(repo, await create(git, await find_repository(git, repo.path), AGENT, tmp_path / "wt"))


def everything(case: Case) -> None:
    """One change of every kind."""
    inside = case.agent.path
    (inside / "gone").unlink()
    (inside / "old").rename(inside / "new name")
    (inside / "new name").write_bytes((TEXT * 2).replace("line 5\n", "LINE 5\n").encode())
    (inside / "run").chmod(0o755)
    (inside / "type").unlink()
    (inside / "type").symlink_to("a.txt")
    case.agent.write(
        {"text": TEXT.replace("line 3\n", "LINE 3\n"), "data.bin": b"\0two", "dir/ä/new": "n\r\n", "e": ""}
    )
    (inside / "dir/ä/new").chmod(0o755)


async def test_everything_gives_exactly_the_agents_files(case: Case) -> None:
    everything(case)
    head = case.repo.git("rev-parse", "HEAD")
    applied = await case.apply()
    assert case.files() == case.files(case.agent)
    assert (applied.conflicts, applied.failure, applied.remaining) == ((), None, 0)
    assert {file.path for file in applied.applied} == {
        "text", "gone", "new name", "run", "type", "data.bin", "dir/ä/new", "e"
    }  # fmt: skip
    assert case.repo.git("rev-parse", "HEAD") == head
    assert case.repo.git("diff", "--cached", "--name-only") == ""  # the user's index is the user's


async def test_the_review_value(case: Case) -> None:
    case.agent.write({"text": TEXT.replace("line 3\n", "LINE 3\n"), "new": "a\nb\n"})
    found = await case.review()
    assert case.snapshot is not None
    assert evolve(found, files=()) == Review(
        agent_id=AGENT,
        base_commit=case.worktree.base_commit,
        branch="agent-01234567",
        worktree=case.worktree.path,
        head=case.snapshot.commit,
        files=(),
    )
    assert [(file.path, file.status, len(file.hunks)) for file in found.files] == [
        ("new", "added", 1),
        ("text", "modified", 1),
    ]
    assert (found.stats, found.remaining) == (Stats(2, 3, 1), 2)


async def test_hunks_one_by_one_then_the_rest(case: Case) -> None:
    case.agent.write({"text": TEXT.replace("line 3\n", "LINE 3\n").replace("line 9\n", "").replace("line 18\n", "L\n")})
    first, second, third = (await case.ids())["text"]
    one = await case.apply(Selection("text", (second,)))
    assert one == Applied((AppliedFile("text", (second,)),), (), None, 2, f"refs/agent-ls/recover/{AGENT}/1")
    assert case.files()["text"] == TEXT.replace("line 9\n", "").encode()
    assert (await case.ids())["text"] == (first, second, third)
    rest = await case.apply()
    assert rest == Applied(
        (AppliedFile("text", (first, second, third)),), (), None, 0, f"refs/agent-ls/recover/{AGENT}/2"
    )
    assert case.files()["text"] == case.files(case.agent)["text"]


async def test_applying_again_changes_nothing_and_needs_no_ref(case: Case) -> None:
    case.agent.write({"text": "new\n"})
    await case.apply()
    ids = (await case.ids())["text"]
    assert await case.apply() == Applied((AppliedFile("text", ids),), (), None, 0, None)


async def test_what_is_applied_is_what_was_reviewed(case: Case) -> None:
    case.agent.write({"text": TEXT.replace("line 3\n", "LINE 3\n")})
    await case.review()
    case.agent.write({"text": "the agent went on\n", "more": "more"})
    await case.apply()
    assert case.files()["text"] == TEXT.replace("line 3\n", "LINE 3\n").encode()
    assert "more" not in case.files()


async def test_unsaved_buffer_gets_the_edit_and_the_disk_stays(case: Case) -> None:
    case.repo.write({"t.txt": TEXT})
    case.repo.commit()
    case.worktree = await create(git, await find_repository(git, case.repo.path), "b" * 16, case.worktree.path.parent)
    Repo(case.worktree.path).write({"t.txt": TEXT.replace("line 18\n", "LINE 18\n")})
    case.editor = Editor(t_txt="typed\n" + TEXT)
    found = await case.review()
    assert [hunk.old_start for hunk in found.files[0].hunks] == [19]
    await case.apply()
    assert case.editor.buffers == {"t.txt": "typed\n" + TEXT.replace("line 18\n", "LINE 18\n")}
    assert case.files()["t.txt"] == TEXT.encode()


@pytest.mark.spec("WT-4")
async def test_uncommitted_work_elsewhere_in_the_file_is_kept(case: Case) -> None:
    case.agent.write({"text": TEXT.replace("line 3\n", "LINE 3\n")})
    case.repo.write({"text": TEXT.replace("line 15\n", "mine\n"), "untracked": "mine"})
    await case.apply()
    assert case.files()["text"] == TEXT.replace("line 15\n", "mine\n").replace("line 3\n", "LINE 3\n").encode()
    assert case.files()["untracked"] == b"mine"


async def test_conflicts_are_rows_and_the_rest_is_applied(case: Case) -> None:
    case.agent.write(
        {"text": TEXT.replace("line 3\n", "LINE 3\n").replace("line 18\n", "LINE 18\n"), "data.bin": b"\0two"}
    )
    case.repo.write({"text": TEXT.replace("line 3\n", "mine\n"), "data.bin": b"\0mine"})
    ids = await case.ids()
    applied = await case.apply()
    assert applied.applied == (AppliedFile("text", (ids["text"][1],)),)
    assert applied.conflicts == (
        Conflict(
            "data.bin", ids["data.bin"][0], "your file differs from both sides, and this change cannot be divided"
        ),
        Conflict("text", ids["text"][0], "your text differs from both sides here"),
    )
    assert applied.remaining == 2
    assert case.files()["text"] == TEXT.replace("line 3\n", "mine\n").replace("line 18\n", "LINE 18\n").encode()
    assert case.files()["data.bin"] == b"\0mine"


async def test_unknown_files_and_hunks_are_rows(case: Case) -> None:
    case.agent.write({"text": "new\n"})
    applied = await case.apply(Selection("nothing"), Selection("text", ("x",)))
    assert applied.applied == ()
    assert applied.conflicts == (
        Conflict("nothing", None, "this file is not part of the review; review again"),
        Conflict("text", "x", "this hunk is no longer part of the review; review again"),
    )
    assert case.files()["text"] == TEXT.encode()


async def test_a_file_that_fails_takes_the_others_back(case: Case) -> None:
    everything(case)
    case.agent.write({"z": "new\n"})
    case.editor.refuses = {"z"}
    before, modes = case.files(), modes_of(case.repo.path)
    ids = await case.ids()
    applied = await case.apply()
    assert (applied.applied, applied.failure) == ((), "nothing was applied: z: the editor refused")
    assert applied.conflicts == (Conflict("z", ids["z"][0], "the editor refused"),)
    assert (case.files(), modes_of(case.repo.path), applied.recover_ref) == (before, modes, None)
    case.editor.refuses = set()
    again = await case.apply()
    assert (again.conflicts, again.failure, again.remaining) == ((), None, 0)
    assert case.files() == case.files(case.agent)


def modes_of(top: Path) -> dict[str, bool]:
    return {path.name: os.access(path, os.X_OK) for path in top.iterdir() if path.is_file() and not path.is_symlink()}


async def test_what_something_else_changes_meanwhile_is_told_and_stays_readable(case: Case) -> None:
    case.agent.write({"a.txt": "new\n", "text": "new\n"})
    case.editor.distorts = {"text"}
    applied = await case.apply()
    assert applied.recover_ref is not None
    assert applied.failure == (
        "nothing was applied: text: text does not hold what was applied; something else changes it; text was changed "
        f"by something else; the text before is under {applied.recover_ref}"
    )
    assert (applied.applied, case.files()["a.txt"]) == ((), b"one\ntwo\nthree\n")
    assert case.repo.git("show", f"{applied.recover_ref}:text") == TEXT.strip()


async def test_what_cannot_be_put_back_is_told_and_can_be_undone_later(case: Case) -> None:
    case.agent.write({"a.txt": "new\n", "text": "new\n"})
    case.editor.refuses, case.editor.refuses_after = {"text"}, {"a.txt": 1}
    applied = await case.apply()
    assert applied.recover_ref is not None and applied.failure is not None
    assert [file.path for file in applied.applied] == ["a.txt"]
    assert "not everything was applied: text: the editor refused; a.txt could not be put back" in applied.failure
    case.editor.refuses, case.editor.refuses_after = set(), {}
    restored = await restore(git, case.worktree, case.editor, AGENT, applied.recover_ref, None)
    assert (restored.paths, restored.conflicts) == (("a.txt",), ())


async def test_dry_run_writes_nothing(case: Case) -> None:
    everything(case)
    before = case.files(), case.repo.git("for-each-ref", "refs/agent-ls/recover")
    dry = await case.apply(dry_run=True)
    assert (case.files(), case.repo.git("for-each-ref", "refs/agent-ls/recover")) == before
    assert (dry.applied, dry.conflicts, dry.recover_ref, dry.remaining) == ((), (), None, 10)
    planned = {outcome.path: outcome.after for outcome in dry.planned}
    assert planned["text"] == TEXT.replace("line 3\n", "LINE 3\n").encode()
    assert planned["gone"] is None


@pytest.mark.spec("WT-4")
async def test_what_is_replaced_can_be_read_back(case: Case) -> None:
    everything(case)
    case.repo.write({"text": TEXT.replace("line 15\n", "mine\n")})
    (case.repo.path / "gone").chmod(0o755)
    before = case.files()
    applied = await case.apply()
    ref = applied.recover_ref
    assert ref == f"refs/agent-ls/recover/{AGENT}/1"
    kept = {line.split("\t")[1]: line.split()[0] for line in case.repo.git("ls-tree", "-r", ref).splitlines()}
    assert kept == {
        "data.bin": "100644", "gone": "100755", "old": "100644", "run": "100644", "text": "100644", "type": "100644"
    }  # fmt: skip
    shown = case.repo.git("cat-file", "blob", f"{ref}:text") + "\n"
    assert shown.encode() == before["text"]
    record = json.loads(case.repo.git("log", "-1", "--format=%B", ref).split("\n\n")[1])
    assert sorted(record["absent"]) == ["dir/ä/new", "e", "new name"]
    assert record["after"]["gone"] is None
    assert record["after"]["text"] == hashlib.sha256(case.files()["text"]).hexdigest()
    case.repo.git("gc", "-q", "--prune=now")
    assert case.repo.git("cat-file", "-t", f"{ref}:old") == "blob"


@pytest.mark.spec("WT-4")
async def test_unsaved_text_is_kept_too(case: Case) -> None:
    case.agent.write({"a.txt": "one\ntwo\nTHREE\n"})
    case.editor = Editor(a_txt="typed é\none\ntwo\nthree\n")
    applied = await case.apply()
    assert case.repo.git("cat-file", "blob", f"{applied.recover_ref}:a.txt") == "typed é\none\ntwo\nthree"
    assert json.loads(case.repo.git("log", "-1", "--format=%b", str(applied.recover_ref)))["buffers"] == ["a.txt"]


@pytest.mark.spec("WT-4")
async def test_nothing_is_written_when_it_cannot_be_kept(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.agent.write({"text": "new\n"})
    await case.take()

    async def fails(*args: Any) -> str:
        raise GitFailed("disk full", 128)

    monkeypatch.setattr("agent_core.applying.save", fails)
    applied = await case.apply()
    assert applied == Applied((), (), "nothing was applied: disk full", 1, None)
    assert case.files()["text"] == TEXT.encode()


async def test_deletion_of_an_open_file_is_left_to_the_editor(case: Case) -> None:
    (case.agent.path / "gone").unlink()
    case.editor.buffers["gone"] = "gone\n"
    await case.apply()
    assert (case.editor.buffers, "gone" in case.files()) == ({}, False)


async def test_rename_that_cannot_remove_the_old_file_changes_nothing(case: Case) -> None:
    (case.agent.path / "old").rename(case.agent.path / "new name")
    case.editor.refuses = {"old"}
    before = case.files()
    applied = await case.apply()
    assert [conflict.reason for conflict in applied.conflicts] == ["the editor refused"]
    assert case.files() == before


async def test_file_and_folder_change_places(case: Case) -> None:
    (case.agent.path / "a.txt").unlink()
    shutil.rmtree(case.agent.path / "src")
    case.agent.write({"a.txt/inner": "inner", "src": "file"})
    alone = await case.apply(Selection("src"))
    assert [conflict.path for conflict in alone.conflicts] == ["src"]  # its folder is not empty yet
    everything = await case.apply()
    assert (everything.conflicts, everything.remaining) == ((), 0)
    assert case.files() == case.files(case.agent)


async def test_link_is_replaced_and_its_target_stays(case: Case, tmp_path: Path) -> None:
    case.repo.git("rm", "-q", "type")
    (case.repo.path / "type").symlink_to("a.txt")
    case.repo.commit()
    case.worktree = await create(git, await find_repository(git, case.repo.path), "b" * 16, tmp_path / "wt")
    (case.worktree.path / "type").unlink()
    Repo(case.worktree.path).write({"type": "a file now\n"})
    applied = await case.apply()
    assert applied.conflicts == ()
    assert (case.files()["type"], case.files()["a.txt"]) == (b"a file now\n", b"one\ntwo\nthree\n")


async def test_edit_never_goes_through_a_link_of_the_user(case: Case) -> None:
    case.agent.write({"text": "new\n"})
    (case.repo.path / "text").rename(case.repo.path / "elsewhere")
    (case.repo.path / "text").symlink_to("elsewhere")
    applied = await case.apply()
    assert [conflict.reason for conflict in applied.conflicts] == ["there is no ordinary file at this path now"]
    assert case.files()["elsewhere"] == TEXT.encode()


async def test_d8_crlf_checkout_is_applied_byte_for_byte(repo: Repo, tmp_path: Path) -> None:
    for how in ("autocrlf", "attribute"):
        if how == "autocrlf":
            repo.git("config", "core.autocrlf", "true")
        else:
            repo.git("config", "--unset", "core.autocrlf")
            repo.commit({".gitattributes": "* text=auto eol=crlf\n"})
        (repo.path / "a.txt").unlink()
        repo.git("checkout", "--", "a.txt")
        assert (repo.path / "a.txt").read_bytes() == b"one\r\ntwo\r\nthree\r\n"
        case = Case(repo, await create(git, await find_repository(git, repo.path), how[:8] * 2, tmp_path / "wt"))
        case.agent.write({"a.txt": b"one\r\nTWO\r\nthree\r\n", "lf": "kept\nas it is\n"})
        await case.apply(Selection("a.txt"), Selection("lf"))
        assert (repo.path / "a.txt").read_bytes() == b"one\r\nTWO\r\nthree\r\n"
        assert (repo.path / "lf").read_bytes() == b"kept\nas it is\n"
        (repo.path / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
        (repo.path / "lf").unlink()


async def test_d8_lf_file_of_the_user_in_a_crlf_repository_stays_lf(repo: Repo, tmp_path: Path) -> None:
    repo.git("config", "core.autocrlf", "true")
    case = Case(repo, await create(git, await find_repository(git, repo.path), AGENT, tmp_path / "wt"))
    case.agent.write({"a.txt": b"one\r\nTWO\r\nthree\r\n"})
    applied = await case.apply()
    assert applied.conflicts == ()
    assert (repo.path / "a.txt").read_bytes() == b"one\nTWO\nthree\n"


async def test_d22_latin1_and_bom_files_keep_their_bytes(repo: Repo, tmp_path: Path) -> None:
    files = {"latin": "é\nb\nü\n".encode("latin-1"), "bom": b"\xef\xbb\xbfa\r\nb\r\n", "end": b"a\nb"}
    repo.commit(files)
    case = Case(repo, await create(git, await find_repository(git, repo.path), AGENT, tmp_path / "wt"))
    case.agent.write({name: data.replace(b"b", b"B") for name, data in files.items()})
    await case.apply()
    assert {name: (repo.path / name).read_bytes() for name in files} == {
        name: data.replace(b"b", b"B") for name, data in files.items()
    }


async def hostile(case: Case, paths: dict[str, bytes]) -> Snapshot:
    """A snapshot whose tree holds `paths`; git itself refuses to check most of them out."""
    oids = await store(git, case.repo.path, list(paths.values()))
    entries = [TreeEntry(path, "100644", oid) for path, oid in zip(paths, oids, strict=True)]
    tree = await tree_of(git, case.repo.path, entries)
    base = await tree_of(git, case.repo.path, [])
    commit = await commit_tree(git, case.repo.path, tree, [], "hostile")
    return Snapshot(base, tree, commit, case.worktree.base_commit)


async def test_path_over_a_link_out_of_the_repository_is_refused(case: Case, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (case.repo.path / "link").symlink_to(outside)
    (case.repo.path / "inward").symlink_to("src")
    case.snapshot = await hostile(case, {"link/x": b"x", "inward/x": b"x", "fine": b"fine"})
    applied = await case.apply()
    assert [(conflict.path, conflict.reason) for conflict in applied.conflicts] == [
        ("inward/x", "inward/x leads over the symbolic link inward"),
        ("link/x", "link/x leads over the symbolic link link"),
    ]
    assert list(outside.iterdir()) == []
    assert case.files()["fine"] == b"fine"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("../x", "../x does not stay inside the repository"),
        ("a/../../x", "a/../../x does not stay inside the repository"),
        ("/etc/x", "/etc/x does not stay inside the repository"),
        ("a//b", "a//b does not stay inside the repository"),
        ("a\\..\\b", None),  # two letters more, here
        (".git/hooks/x", ".git/hooks/x is inside a git folder"),
        ("sub/.GIT/config", "sub/.GIT/config is inside a git folder"),
        (".git. /config", ".git. /config is inside a git folder"),
        ("GIT~1/config", "GIT~1/config is inside a git folder"),
        ("src/b.py", None),
        (".gitignore", None),
    ],
)
async def test_paths_that_leave_the_repository_are_refused(case: Case, path: str, reason: str | None) -> None:
    assert blocked(case.worktree, path) == reason


async def test_bare_folder_inside_the_checkout_is_a_git_folder(case: Case) -> None:
    worktree = evolve(case.worktree, common_dir=case.repo.path / ".bare")
    assert blocked(worktree, ".bare/config") == ".bare/config is inside a git folder"


async def test_disk_target_checks_before_and_verifies_after(tmp_path: Path) -> None:
    target, path = DiskTarget(), tmp_path / "new/f"
    assert await target.read_all([path]) == [None]
    await target.write(path, None, b"one", executable=True)
    assert (*await target.read_all([path]), path.stat().st_mode & 0o111 != 0) == (b"one", True)
    with pytest.raises(ReviewConflict, match="was changed meanwhile"):
        await target.write(path, b"other", b"two")
    with pytest.raises(ReviewConflict, match="was changed meanwhile"):
        await target.write(path, None, b"two")
    with pytest.raises(ReviewConflict, match="not open in an editor"):
        await target.write(path, "one", "two")
    assert path.read_bytes() == b"one"
    await target.write(path, b"one", b"two", executable=False)
    assert (path.read_bytes(), path.stat().st_mode & 0o111) == (b"two", 0)
    await target.write(path, b"two", None)
    assert list(tmp_path.rglob("*")) == [tmp_path / "new"]


async def test_disk_target_keeps_the_mode_and_refuses_links(tmp_path: Path) -> None:
    target, path = DiskTarget(), tmp_path / "f"
    path.write_bytes(b"one")
    path.chmod(0o640)
    await target.write(path, b"one", b"two")
    assert path.stat().st_mode & 0o777 == 0o640
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(ReviewConflict, match="is a symbolic link now"):
        await target.write(tmp_path / "link", b"two", b"three")
    assert path.read_bytes() == b"two"

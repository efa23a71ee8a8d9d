from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from agent_core.errors import WorktreeFailed
from agent_core.git_objects import read_blobs, store
from agent_core.repository import GitCommand, find_repository
from agent_core.snapshot import Snapshot, TreeChange, blob, blobs, changes, review_ref, take
from agent_core.worktree import Worktree, create
from tests.git_helpers import AGENT, Repo, clean_git, init, repo

__all__ = ["clean_git", "repo"]
pytestmark = [pytest.mark.anyio, pytest.mark.spec("ED-3")]

git = GitCommand()


async def made(repo: Repo, tmp_path: Path) -> Worktree:
    return await create(git, await find_repository(git, repo.path), AGENT, tmp_path / "wt")


async def rows(worktree: Worktree, snapshot: Snapshot) -> dict[str, tuple[str, bytes | None, bytes | None]]:
    """path -> (status, base bytes, agent bytes)"""
    found = await changes(git, worktree, snapshot)
    data = await blobs(git, worktree, found)
    return {
        change.path: (
            change.status,
            data.get(change.old_blob) if change.old_blob else None,
            data.get(change.new_blob) if change.new_blob else None,
        )
        for change in found
    }


async def test_every_kind_of_change(repo: Repo, tmp_path: Path) -> None:
    text = "".join(f"line {n}\n" for n in range(30))
    repo.commit({"gone": "gone\n", "old name": text, "mode": "#!\n", "type": "x\n", ".gitignore": "*.log\n", "z": "z"})
    worktree = await made(repo, tmp_path)
    inside = worktree.path
    (inside / "gone").unlink()
    (inside / "old name").rename(inside / "new\nname")
    (inside / "mode").chmod(0o755)
    (inside / "type").unlink()
    (inside / "type").symlink_to("a.txt")
    Repo(inside).write({"a.txt": "one\nTWO\nthree\n", "new/é.bin": b"\0\xff", "x.log": "ignored", "empty": ""})
    assert await rows(worktree, await take(git, worktree, AGENT)) == {
        "a.txt": ("modified", b"one\ntwo\nthree\n", b"one\nTWO\nthree\n"),
        "empty": ("added", None, b""),
        "gone": ("deleted", b"gone\n", None),
        "mode": ("mode", b"#!\n", b"#!\n"),
        "new/é.bin": ("added", None, b"\0\xff"),
        "new\nname": ("renamed", text.encode(), text.encode()),
        "type": ("typechange", b"x\n", b"a.txt"),
    }


async def test_the_wire_values_of_one_change(repo: Repo, tmp_path: Path) -> None:
    worktree = await made(repo, tmp_path)
    (worktree.path / "a.txt").write_bytes(b"new\n")
    snapshot = await take(git, worktree, AGENT)
    oid = repo.git("rev-parse", "HEAD:a.txt")
    new = repo.git("rev-parse", f"{snapshot.tree}:a.txt")
    assert await changes(git, worktree, snapshot) == (
        TreeChange("a.txt", None, "modified", "100644", "100644", oid, new),
    )
    assert await blob(git, worktree, new) == b"new\n"


async def test_unchanged_worktree_has_an_empty_review_of_the_base_tree(repo: Repo, tmp_path: Path) -> None:
    worktree = await made(repo, tmp_path)
    snapshot = await take(git, worktree, AGENT)
    tree = repo.git("rev-parse", "HEAD^{tree}")
    assert (snapshot.base, snapshot.tree, snapshot.skipped) == (tree, tree, ())
    assert await changes(git, worktree, snapshot) == ()


async def test_committed_staged_and_removed_from_the_index_all_count(repo: Repo, tmp_path: Path) -> None:
    worktree = await made(repo, tmp_path)
    inside = Repo(worktree.path)
    inside.commit({"committed": "c"})
    inside.write({"staged": "s", "intended": "i"})
    inside.git("add", "staged")
    inside.git("add", "-N", "intended")
    inside.git("rm", "-q", "--cached", "a.txt")
    (inside.path / "src/b.py").unlink()
    assert await rows(worktree, await take(git, worktree, AGENT)) == {
        "committed": ("added", None, b"c"),
        "intended": ("added", None, b"i"),
        "src/b.py": ("deleted", b"b = 1\n", None),
        "staged": ("added", None, b"s"),
    }


async def test_unfinished_merge_shows_the_files_as_they_are(repo: Repo, tmp_path: Path) -> None:
    worktree = await made(repo, tmp_path)
    other = repo.commit({"a.txt": "one\nuser\nthree\n"})
    inside = Repo(worktree.path)
    inside.commit({"a.txt": "one\nagent\nthree\n"})
    with pytest.raises(AssertionError, match="'merge'"):
        inside.git("merge", other)
    merged = (inside.path / "a.txt").read_bytes()
    assert b"<<<<<<<" in merged
    assert await rows(worktree, await take(git, worktree, AGENT)) == {
        "a.txt": ("modified", b"one\ntwo\nthree\n", merged)
    }


async def test_file_and_folder_change_places(repo: Repo, tmp_path: Path) -> None:
    worktree = await made(repo, tmp_path)
    (worktree.path / "a.txt").unlink()
    shutil.rmtree(worktree.path / "src")
    Repo(worktree.path).write({"a.txt/inner": "inner", "src": "file"})
    assert await rows(worktree, await take(git, worktree, AGENT)) == {
        "a.txt": ("deleted", b"one\ntwo\nthree\n", None),
        "a.txt/inner": ("added", None, b"inner"),
        "src": ("added", None, b"file"),
        "src/b.py": ("deleted", b"b = 1\n", None),
    }


async def test_folder_replaced_by_a_link_is_not_followed(repo: Repo, tmp_path: Path) -> None:
    worktree = await made(repo, tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b.py").write_text("secret")
    shutil.rmtree(worktree.path / "src")
    (worktree.path / "src").symlink_to(outside)
    assert await rows(worktree, await take(git, worktree, AGENT)) == {
        "src": ("added", None, str(outside).encode()),
        "src/b.py": ("deleted", b"b = 1\n", None),
    }
    secret = repo.git("hash-object", str(outside / "b.py"))
    with pytest.raises(WorktreeFailed, match="is not in the repository"):
        await blob(git, worktree, secret)


async def test_index_files_and_agents_branch_stay_untouched(repo: Repo, tmp_path: Path) -> None:
    worktree = await made(repo, tmp_path)
    Repo(worktree.path).write({"a.txt": "changed", "new": "new"})
    before = (worktree.git_dir / "index").read_bytes(), repo.state(), sorted(os.listdir(worktree.git_dir))
    await take(git, worktree, AGENT)
    repo.git("update-ref", "-d", review_ref(AGENT))
    assert ((worktree.git_dir / "index").read_bytes(), repo.state(), sorted(os.listdir(worktree.git_dir))) == before


async def test_same_size_same_moment_edit_is_seen(repo: Repo, tmp_path: Path) -> None:
    worktree = await made(repo, tmp_path)
    for count in range(5):
        (worktree.path / "a.txt").write_bytes(b"one\ntw%d\nthree\n" % count)
        Repo(worktree.path).git("add", "a.txt")
        (worktree.path / "a.txt").write_bytes(b"one\nTW%d\nthree\n" % count)
        found = await rows(worktree, await take(git, worktree, AGENT))
        assert found["a.txt"][2] == b"one\nTW%d\nthree\n" % count


async def test_survives_garbage_collection(repo: Repo, tmp_path: Path) -> None:
    worktree = await made(repo, tmp_path)
    Repo(worktree.path).write({"a.txt": "first"})
    first = await take(git, worktree, AGENT)
    Repo(worktree.path).write({"a.txt": "second"})
    second = await take(git, worktree, AGENT)
    repo.git("worktree", "unlock", str(worktree.path))
    repo.git("worktree", "remove", "--force", str(worktree.path))
    repo.git("branch", "-D", worktree.branch)
    repo.git("gc", "-q", "--prune=now")
    assert (await rows(worktree, first))["a.txt"][2] == b"first"
    assert (await rows(worktree, second))["a.txt"][2] == b"second"
    assert repo.git("rev-parse", review_ref(AGENT)) == second.commit


async def test_taking_the_same_state_again_gives_the_same_snapshot(repo: Repo, tmp_path: Path) -> None:
    worktree = await made(repo, tmp_path)
    Repo(worktree.path).write({"a.txt": "first"})
    assert await take(git, worktree, AGENT) == await take(git, worktree, AGENT)


EOL = {
    "autocrlf": ({}, {"core.autocrlf": "true"}),
    "attribute": ({".gitattributes": "* text=auto eol=crlf\n"}, {}),
    "encoding": ({".gitattributes": "*.txt text working-tree-encoding=UTF-16LE-BOM eol=crlf\n"}, {}),
    "ident": ({".gitattributes": "*.txt ident\n"}, {}),
}


@pytest.mark.parametrize("kind", list(EOL))
async def test_d8_trees_hold_the_bytes_of_the_checkout_not_gits(repo: Repo, tmp_path: Path, kind: str) -> None:
    attributes, config = EOL[kind]
    for name, value in config.items():
        repo.git("config", name, value)
    text = "".join(f"line {n} $Id$\n" for n in range(5))
    (repo.path / "t.txt").write_bytes(
        text.replace("\n", "\r\n").encode("utf-16") if kind == "encoding" else text.encode()
    )
    repo.commit(attributes)
    worktree = await made(repo, tmp_path)
    path = worktree.path / "t.txt"
    checked_out = path.read_bytes()
    assert checked_out != repo.git("cat-file", "blob", "HEAD:t.txt").encode() + b"\n"  # the conversion is on
    changed = checked_out.replace("line 2".encode("utf-16-le"), "LINE 2".encode("utf-16-le")).replace(
        b"line 2", b"LINE 2"
    )
    path.write_bytes(changed)
    Repo(worktree.path).write({"new.txt": "line\n"})
    assert await rows(worktree, await take(git, worktree, AGENT)) == {
        "new.txt": ("added", None, b"line\n"),
        "t.txt": ("modified", checked_out, changed),
    }


async def test_line_end_change_that_git_itself_hides(repo: Repo, tmp_path: Path) -> None:
    repo.git("config", "core.autocrlf", "true")
    worktree = await made(repo, tmp_path)
    (worktree.path / "a.txt").write_bytes(b"one\ntwo\nthree\n")
    assert Repo(worktree.path).git("diff", "--no-color") == ""
    assert await rows(worktree, await take(git, worktree, AGENT)) == {
        "a.txt": ("modified", b"one\r\ntwo\r\nthree\r\n", b"one\ntwo\nthree\n")
    }


async def test_agent_written_attributes_change_no_bytes(repo: Repo, tmp_path: Path) -> None:
    repo.git("config", "filter.spy.clean", f"touch {tmp_path}/cleaned; cat")
    repo.git("config", "filter.spy.smudge", f"touch {tmp_path}/smudged; cat")
    repo.git("config", "diff.spy.textconv", f"touch {tmp_path}/converted; cat")
    repo.git("config", "diff.spy.command", f"touch {tmp_path}/diffed")
    worktree = await made(repo, tmp_path)
    attributes = b"* filter=spy diff=spy eol=crlf\n"
    Repo(worktree.path).write({".gitattributes": attributes, "a.txt": "changed\r\n", "new": "new\r\n"})
    assert await rows(worktree, await take(git, worktree, AGENT)) == {
        ".gitattributes": ("added", None, attributes),
        "a.txt": ("modified", b"one\ntwo\nthree\n", b"changed\r\n"),
        "new": ("added", None, b"new\r\n"),
    }
    ran = {path.name for path in tmp_path.iterdir()}
    assert ran & {"smudged", "converted", "diffed"} == set()  # `cleaned` may be there, see the module's docstring


async def test_agent_written_git_folder_is_not_asked(repo: Repo, tmp_path: Path) -> None:
    worktree = await made(repo, tmp_path)
    (worktree.path / ".git").unlink()
    trap = init(tmp_path / "trap", {"a.txt": "x"})
    (trap.path / ".git").rename(worktree.path / ".git")
    (worktree.path / "a.txt").write_bytes(b"changed")
    assert await rows(worktree, await take(git, worktree, AGENT)) == {
        "a.txt": ("modified", b"one\ntwo\nthree\n", b"changed")
    }


async def test_repositories_inside_and_odd_files_are_named_not_read(repo: Repo, tmp_path: Path) -> None:
    worktree = await made(repo, tmp_path)
    init(worktree.path / "nested", {"n": "n"})
    init(worktree.path / "unborn")
    os.mkfifo(worktree.path / "pipe")
    snapshot = await take(git, worktree, AGENT)
    assert snapshot.skipped == ("nested/", "unborn/") or snapshot.skipped == ("nested/",)
    assert await rows(worktree, snapshot) == {}


async def test_submodule_moves_show_as_commits(repo: Repo, tmp_path: Path) -> None:
    inner = init(tmp_path / "inner", {"i": "i"})
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.path), "sub")
    repo.commit()
    worktree = await made(repo, tmp_path)
    assert await changes(git, worktree, await take(git, worktree, AGENT)) == ()
    inside = Repo(worktree.path)
    inside.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
    moved = Repo(worktree.path / "sub").commit({"more": "more"})
    old = repo.git("rev-parse", "HEAD:sub")
    assert await changes(git, worktree, await take(git, worktree, AGENT)) == (
        TreeChange("sub", None, "modified", "160000", "160000", old, moved),
    )


async def test_c16_files_left_out_by_sparse_checkout_are_not_deletions(repo: Repo, tmp_path: Path) -> None:
    worktree = await made(repo, tmp_path)
    Repo(worktree.path).git("sparse-checkout", "set", "--cone", "docs")
    assert not (worktree.path / "src").exists()
    Repo(worktree.path).write({"outside/cone": "new"})
    assert await rows(worktree, await take(git, worktree, AGENT)) == {"outside/cone": ("added", None, b"new")}


async def test_file_mode_off_keeps_the_bases_mode(repo: Repo, tmp_path: Path) -> None:
    repo.write({"run": "run\n"})
    (repo.path / "run").chmod(0o755)
    repo.commit()
    repo.git("config", "core.fileMode", "false")
    worktree = await made(repo, tmp_path)
    (worktree.path / "run").write_bytes(b"changed\n")
    (worktree.path / "run").chmod(0o644)
    (worktree.path / "a.txt").chmod(0o755)
    found = await changes(git, worktree, await take(git, worktree, AGENT))
    assert [(change.path, change.new_mode) for change in found] == [("run", "100755")]


async def test_gone_or_replaced_worktree_is_an_error(repo: Repo, tmp_path: Path) -> None:
    worktree = await made(repo, tmp_path)
    shutil.rmtree(worktree.path)
    with pytest.raises(WorktreeFailed, match="gone or was replaced"):
        await take(git, worktree, AGENT)
    worktree.path.symlink_to(repo.path)
    with pytest.raises(WorktreeFailed, match="gone or was replaced"):
        await take(git, worktree, AGENT)


async def test_sha256_repository(tmp_path: Path, clean_git: None) -> None:
    (tmp_path / "project").mkdir()
    repo = Repo(tmp_path / "project")
    repo.git("init", "-q", "-b", "main", "--object-format=sha256")
    repo.commit({"a": "a\n", "gone": "gone\n"})
    worktree = await made(repo, tmp_path)
    (worktree.path / "gone").unlink()
    (worktree.path / "new").write_text("new\n")
    assert await rows(worktree, await take(git, worktree, AGENT)) == {
        "gone": ("deleted", b"gone\n", None),
        "new": ("added", None, b"new\n"),
    }


async def test_blobs_round_trip_in_one_batch(repo: Repo) -> None:
    contents = [b"", b"\0\n\n", b"\r\n" * 3, b"x" * 100_000, b""]
    oids = await store(git, repo.path, contents)
    assert await read_blobs(git, repo.path, oids) == dict(zip(oids, contents, strict=True))
    with pytest.raises(WorktreeFailed, match=r"object 1{40} is not in the repository"):
        await read_blobs(git, repo.path, ["1" * 40])

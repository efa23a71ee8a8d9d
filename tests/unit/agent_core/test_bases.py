"""What an isolated agent starts from, over real git: HEAD, the checkout as it is, or the remote's default branch."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_core.bases import Base, choose
from agent_core.errors import GitFailed, WorktreeFailed
from agent_core.repository import GitCommand, find_repository
from lsp_server.demo.script import say, use
from tests.git_helpers import Repo, clean_git, init, repo
from tests.unit.agent_core.workshop import open_shop

__all__ = ["clean_git", "repo"]
pytestmark = [pytest.mark.anyio, pytest.mark.spec("WT-1", "WT-4")]

git = GitCommand()


async def snapshot(repo: Repo, unsaved: Mapping[Path, bytes] | None = None) -> Base:
    return await choose(git, await find_repository(git, repo.path), "snapshot", unsaved or {}, may_fetch=False)


def files_of(repo: Repo, commit: str) -> dict[str, bytes]:
    listed = repo.git("ls-tree", "-r", "-z", "--name-only", commit).split("\0")
    command = ("git", "-C", str(repo.path), "cat-file", "blob")
    return {
        name: subprocess.run([*command, f"{commit}:{name}"], capture_output=True, check=True).stdout
        for name in listed
        if name
    }


def untouched(repo: Repo) -> tuple[object, ...]:
    """What no snapshot may change: the index to the byte, refs, stash, and the files."""
    files = {path: path.read_bytes() for path in repo.path.rglob("*") if path.is_file() and ".git" not in path.parts}
    refs = repo.git("for-each-ref", "--format=%(refname) %(objectname)")
    return (repo.path / ".git/index").read_bytes(), refs, files, sorted(p.name for p in (repo.path / ".git").iterdir())


async def test_a_snapshot_holds_what_is_not_committed_and_touches_nothing(repo: Repo) -> None:
    repo.commit({"gone.txt": "g", "staged.txt": "s", "moved.txt": "long enough to be found\n", ".gitignore": "*.log\n"})
    repo.write({"stashed.txt": "x"})
    repo.git("stash", "--include-untracked")
    repo.write(
        {"a.txt": "mine\n", "staged.txt": "staged\n", "new/ü ñ.txt": "new\n", "run.sh": "#!/bin/sh\n", "x.log": ""}
    )
    (repo.path / "gone.txt").unlink()
    (repo.path / "run.sh").chmod(0o755)
    (repo.path / "link").symlink_to("a.txt")
    repo.git("add", "staged.txt")
    repo.write({"staged.txt": "staged, and changed after\n"})
    repo.git("mv", "moved.txt", "moved here.txt")
    before = untouched(repo)
    base = await snapshot(repo)
    assert base.commit is not None and base.note is None and untouched(repo) == before
    assert repo.git("rev-parse", f"{base.commit}^") == repo.git("rev-parse", "HEAD")
    found = files_of(repo, base.commit)
    assert found.pop(".gitignore") == b"*.log\n"
    assert found == {
        **{name: data for name, data in files_of(repo, "HEAD").items() if name in found},
        "a.txt": b"mine\n",
        "staged.txt": b"staged, and changed after\n",
        "moved here.txt": b"long enough to be found\n",
        "new/ü ñ.txt": b"new\n",
        "run.sh": b"#!/bin/sh\n",
        "link": b"a.txt",
    }
    assert {"gone.txt", "moved.txt", "stashed.txt", "x.log"}.isdisjoint(found)
    modes = {name: repo.git("ls-tree", "--format=%(objectmode)", base.commit, name) for name in ("run.sh", "link")}
    assert modes == {"run.sh": "100755", "link": "120000"}


async def test_without_anything_of_the_users_own_the_snapshot_is_head(repo: Repo) -> None:
    assert await snapshot(repo) == Base()


async def test_an_unsaved_text_counts_in_place_of_its_file_but_not_one_that_git_ignores(repo: Repo) -> None:
    repo.commit({".gitignore": "ignored\n", "run.sh": "old\n"})
    (repo.path / "run.sh").chmod(0o755)
    repo.commit()
    before = untouched(repo)
    names = {"run.sh": b"unsaved\n", "never saved.txt": b"new\n", "ignored": b"secret\n", ".git/config": b"no\n"}
    base = await snapshot(repo, {repo.path / name: data for name, data in names.items()} | {Path("/elsewhere"): b"no"})
    assert base.commit is not None and untouched(repo) == before
    found = files_of(repo, base.commit)
    assert (found["run.sh"], found["never saved.txt"], "ignored" in found) == (b"unsaved\n", b"new\n", False)
    assert repo.git("ls-tree", "--format=%(objectmode)", base.commit, "run.sh") == "100755"


async def test_contents_go_through_the_filters_of_git(repo: Repo) -> None:
    repo.commit({".gitattributes": "*.win text eol=crlf\n", "f.win": "one\n"})
    repo.write({"f.win": "one\r\ntwo\r\n"})
    base = await snapshot(repo, {repo.path / "new.win": b"a\r\n"})
    assert base.commit is not None
    assert (files_of(repo, base.commit)["f.win"], files_of(repo, base.commit)["new.win"]) == (b"one\ntwo\n", b"a\n")


async def test_what_the_index_hides_is_in_a_snapshot_and_stays_hidden(repo: Repo) -> None:
    repo.commit({"assumed": "1", "skipped": "1"})
    repo.git("update-index", "--assume-unchanged", "assumed")
    repo.git("update-index", "--skip-worktree", "skipped")
    repo.write({"assumed": "2", "skipped": "2"})
    base = await snapshot(repo)
    assert base.commit is not None and repo.git("status", "--porcelain") == ""
    assert (files_of(repo, base.commit)["assumed"], files_of(repo, base.commit)["skipped"]) == (b"2", b"2")


async def test_a_sparse_checkout_loses_nothing(repo: Repo) -> None:
    repo.commit({"in/a": "1", "out/b": "1", "out/c": "1"})
    repo.git("sparse-checkout", "set", "--cone", "in")
    repo.write({"in/a": "2", "out/new": "outside of the cone\n"})
    base = await snapshot(repo)
    assert base.commit is not None
    found = files_of(repo, base.commit)
    assert (found["in/a"], found["out/b"], found["out/c"], found["out/new"]) == (
        b"2",
        b"1",
        b"1",
        b"outside of the cone\n",
    )


async def test_repositories_inside_are_left_out_and_named(repo: Repo) -> None:
    repo.write({"a.txt": "changed"})
    for name, files in (("inner", {"x": "1"}), ("empty", None)):
        init(repo.path / name, files)
    base = await snapshot(repo)
    assert base.commit is not None and base.note is not None and "empty/, inner/" in base.note
    assert {"inner", "empty", "inner/x"}.isdisjoint(files_of(repo, base.commit))


async def test_in_the_middle_of_a_merge_the_texts_count_as_they_stand(repo: Repo) -> None:
    repo.git("switch", "-q", "-c", "other")
    repo.commit({"a.txt": "theirs\n"})
    repo.git("switch", "-q", "main")
    repo.commit({"a.txt": "ours\n"})
    subprocess.run(["git", "-C", str(repo.path), "merge", "-q", "other"], capture_output=True, check=False)
    before = untouched(repo)
    base = await snapshot(repo)
    assert base.commit is not None and untouched(repo) == before
    assert files_of(repo, base.commit)["a.txt"] == (repo.path / "a.txt").read_bytes()
    assert b"<<<<<<<" in files_of(repo, base.commit)["a.txt"]


async def test_what_git_cannot_add_is_an_error_that_names_it(repo: Repo) -> None:
    repo.git("config", "filter.broken.clean", "false")
    repo.git("config", "filter.broken.required", "true")
    repo.write({".gitattributes": "cannot filter=broken\n", "cannot": "x"})
    with pytest.raises(GitFailed, match="cannot"):
        await snapshot(repo)


async def fresh(repo: Repo, *, may_fetch: bool = True) -> Base:
    return await choose(git, await find_repository(git, repo.path), "fresh", {}, may_fetch=may_fetch)


@pytest.fixture
def cloned(tmp_path: Path, repo: Repo) -> Repo:
    subprocess.run(["git", "clone", "-q", str(repo.path), str(tmp_path / "clone")], check=True)
    return Repo(tmp_path / "clone")


async def test_c8_fresh_fetches_and_says_which_commits_of_the_session_are_not_in_it(repo: Repo, cloned: Repo) -> None:
    theirs = repo.commit({"theirs": "1"})
    mine = cloned.commit({"mine": "1"})
    base = await fresh(cloned)
    assert base == Base(theirs, f"the default branch of origin lacks 1 commits of HEAD ({mine[:12]})")


async def test_fresh_fetches_once_a_day_and_never_for_a_folder_that_is_not_trusted(repo: Repo, cloned: Repo) -> None:
    first = repo.git("rev-parse", "HEAD")
    theirs = repo.commit({"theirs": "1"})
    assert await fresh(cloned, may_fetch=False) == Base(first, "origin was not fetched: the folder is not trusted")
    assert await fresh(cloned) == Base(theirs)
    repo.commit({"theirs": "2"})
    assert await fresh(cloned) == Base(theirs)


async def test_fresh_without_a_remote_or_with_one_that_is_gone_says_so(repo: Repo, cloned: Repo) -> None:
    assert await fresh(repo) == Base(None, "there is no remote to start from, so it starts from HEAD")
    cloned.git("remote", "set-url", "origin", str(repo.path / "nowhere"))
    base = await fresh(cloned)
    assert base.commit == repo.git("rev-parse", "HEAD") and base.note is not None
    assert base.note.startswith("origin was not fetched: `git fetch")
    cloned.git("remote", "set-head", "origin", "--delete")
    assert await fresh(cloned) == Base(
        None,
        "the default branch of origin is not known, so it starts from HEAD; run `git remote set-head origin --auto`",
    )


@pytest.mark.spec("FK-7", "CTX-4")
async def test_an_agent_on_a_snapshot_reads_the_users_work_and_is_told_of_its_base(tmp_path: Path, repo: Repo) -> None:
    repo.write({"a.txt": "not committed\n"})
    async with open_shop(tmp_path, folder=repo.path, settings={"worktree": {"base": "snapshot"}}) as shop:
        shop.says(
            say(use("Read", file_path="a.txt")), say(use("Write", file_path="b.txt", content="new\n")), say("done")
        )
        info = await shop.run(isolation="worktree")
        assert info.worktree is not None and info.worktree.base == "snapshot"
        assert "with what is not committed and not saved" in shop.told(0)[0]
        assert "not committed" in shop.results(1)[0][2]
        review = await shop.runtime.review(info.id)
        assert [file.path for file in review.files] == ["b.txt"]


async def test_an_unborn_head_can_be_worked_on_by_its_snapshot_only(tmp_path: Path, clean_git: None) -> None:
    repo = init(tmp_path / "unborn")
    repo.write({"a.txt": "first\n"})
    async with open_shop(tmp_path, folder=repo.path) as shop:
        with pytest.raises(WorktreeFailed, match=r"set worktree\.base to `snapshot`"):
            await shop.spawn(isolation="worktree")
    async with open_shop(tmp_path, folder=repo.path, settings={"worktree": {"base": "snapshot"}}) as shop:
        shop.says(say(use("Write", file_path="b.txt", content="new\n")), say("done"))
        info = await shop.run(isolation="worktree")
        assert info.worktree is not None and (info.worktree.path / "a.txt").read_text() == "first\n"
        assert [file.path for file in (await shop.runtime.review(info.id)).files] == ["b.txt"]
        await shop.runtime.apply(info.id, None, False)
        assert (repo.path / "b.txt").read_text() == "new\n"
        assert repo.git("status", "--porcelain").splitlines() == ["?? a.txt", "?? b.txt"]


async def test_other_peoples_setting_baseref_is_read(tmp_path: Path, repo: Repo) -> None:
    async with open_shop(tmp_path, folder=repo.path, settings={"worktree": {"baseRef": "fresh"}}) as shop:
        shop.says(say("done"))
        info = await shop.run(isolation="worktree")
        started = [body.worktree for body in shop.bodies(info) if getattr(body, "worktree", None)]
        assert started[0].base == "fresh" and started[0].note.startswith("there is no remote")

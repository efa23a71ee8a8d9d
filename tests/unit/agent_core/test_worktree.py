from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core.errors import GitFailed, WorktreeFailed
from agent_core.repository import GitCommand, Repository, find_repository
from agent_core.worktree import Worktree, create, project_slug, release, reopen, worktrees_folder
from agent_core.worktree_settling import Settled, settle
from tests.git_helpers import AGENT, Repo, clean_git, init, repo

__all__ = ["clean_git", "repo"]
pytestmark = [pytest.mark.anyio, pytest.mark.spec("WT-1")]

git = GitCommand()


class Recorder(GitCommand):
    """Counts calls, and fails or stops at the command that holds `word`."""

    def __init__(self, word: str = "", then: Any = None) -> None:
        super().__init__()
        self.calls: list[tuple[str, ...]] = []
        self.word, self.then = word, then

    async def run(self, cwd: Path, *args: str, **options: Any) -> bytes:
        self.calls.append(args)
        if self.word and self.word in args:
            self.word = ""
            output = await super().run(cwd, *args, **options)
            self.then()
            await anyio.lowlevel.checkpoint()
            return output
        return await super().run(cwd, *args, **options)


async def made(repo: Repo, location: Path, agent_id: str = AGENT) -> Worktree:
    return await create(git, await find_repository(git, repo.path), agent_id, location)


async def test_a_linked_locked_worktree_on_its_own_branch(repo: Repo, tmp_path: Path) -> None:
    head = repo.git("rev-parse", "HEAD")
    worktree = await made(repo, tmp_path / "wt")
    path = tmp_path / "wt/agent-01234567"
    assert worktree == Worktree(
        path=path,
        branch="agent-01234567",
        base_commit=head,
        repository=repo.path,
        git_dir=repo.path / ".git/worktrees/agent-01234567",
        common_dir=repo.path / ".git",
        forbidden=(repo.path, repo.path / ".git"),
    )
    listed = repo.git("worktree", "list", "--porcelain").split("\n\n")[1]
    reason = f"agent-ls {os.getpid()}: agent is running"
    assert listed == f"worktree {path}\nHEAD {head}\nbranch refs/heads/agent-01234567\nlocked {reason}"
    assert (path / "a.txt").read_bytes() == b"one\ntwo\nthree\n"


async def test_c4_same_first_eight_characters_take_a_longer_name(repo: Repo, tmp_path: Path) -> None:
    first = await made(repo, tmp_path / "wt", "01234567aaaaaaaa")
    (first.path / "mine").write_text("first agent's work")
    second = await made(repo, tmp_path / "wt", "01234567bbbbbbbb")
    assert [first.path.name, second.path.name] == ["agent-01234567", "agent-01234567bbbb"]
    assert (first.path / "mine").read_text() == "first agent's work"


async def test_c4_clash_of_folder_branch_and_registration(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "wt/agent-01234567").mkdir(parents=True)
    repo.git("branch", "agent-0123456789ab")
    repo.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "wt/agent-0123456789abcdef"))
    shutil.rmtree(tmp_path / "wt/agent-0123456789abcdef")
    worktree = await made(repo, tmp_path / "wt")
    assert worktree.path == tmp_path / "wt/agent-0123456789abcdef-2"
    names = ["agent-01234567", "agent-0123456789abcdef-2", "agent-0123456789abcdef-2.json"]
    assert sorted(path.name for path in (tmp_path / "wt").iterdir()) == names


async def test_c4_the_same_id_many_times_at_once(repo: Repo, tmp_path: Path) -> None:
    found = await find_repository(git, repo.path)
    paths: list[Path] = []

    async def one() -> None:
        paths.append((await create(git, found, AGENT, tmp_path / "wt")).path)

    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(one)
    assert len(set(paths)) == 6
    assert all((path / "a.txt").exists() for path in paths)


async def test_c10_base_is_resolved_at_each_call(repo: Repo, tmp_path: Path) -> None:
    found = await find_repository(git, repo.path)
    first = await create(git, found, "a" * 16, tmp_path / "wt")
    head = repo.commit({"new": "new"})
    second = await create(git, found, "b" * 16, tmp_path / "wt")
    assert first.base_commit != head
    assert second.base_commit == head


async def test_c11_base_is_the_head_of_the_sessions_own_worktree(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", "-b", "feature", str(tmp_path / "linked"))
    linked = Repo(tmp_path / "linked")
    head = linked.commit({"feature": "feature"})
    worktree = await made(linked, tmp_path / "wt")
    assert (worktree.base_commit, worktree.repository) == (head, linked.path)
    assert worktree.forbidden == (linked.path, repo.path, repo.path / ".git", repo.path / ".git/worktrees/linked")


async def test_c15_location_inside_a_checkout_is_refused(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", "-b", "feature", str(tmp_path / "linked"))
    before = repo.state()
    for place in (repo.path, repo.path / ".claude/worktrees", repo.path / ".git/wt", tmp_path / "linked/wt"):
        with pytest.raises(WorktreeFailed, match="choose a folder outside the repository"):
            await made(repo, place)
    assert repo.state() == before


async def test_c15_status_and_add_never_see_the_worktree(repo: Repo, tmp_path: Path) -> None:
    before = repo.state()["status"]
    await made(repo, tmp_path / "wt")
    repo.git("add", "-A")
    assert repo.state()["status"] == before == ""


async def test_c22_empty_and_odd_names_never_reach_git(repo: Repo, tmp_path: Path) -> None:
    found = await find_repository(git, repo.path)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    recorder = Recorder()
    places = [Path(), Path("relative"), Path("/"), tmp_path / " ", tmp_path / "a/../b", tmp_path / "link/wt"]
    for place in places:
        with pytest.raises(WorktreeFailed, match=r"worktree\.location"):
            await create(recorder, found, AGENT, place)
    for name in ("", "  ", "../x", "-b", "a/b", "a\nb", "."):
        with pytest.raises(WorktreeFailed, match="agent id"):
            await create(recorder, found, name, tmp_path / "wt")
    assert recorder.calls == []
    assert (repo.path / "a.txt").exists()
    assert not (tmp_path / "wt").exists()


async def test_c24_detached_head(repo: Repo, tmp_path: Path) -> None:
    repo.git("checkout", "-q", "--detach")
    head = repo.git("rev-parse", "HEAD")
    worktree = await made(repo, tmp_path / "wt")
    assert (worktree.base_commit, worktree.branch) == (head, "agent-01234567")


async def test_unborn_head_and_bare_repository_are_plain_errors(tmp_path: Path, clean_git: None) -> None:
    empty = init(tmp_path / "empty")
    with pytest.raises(WorktreeFailed, match="has no commit HEAD; commit something, or use isolation `none`"):
        await made(empty, tmp_path / "wt")
    bare = Repository(None, tmp_path / "b.git", tmp_path / "b.git", True, None, "main")
    with pytest.raises(WorktreeFailed, match="bare repository; open one of its worktrees"):
        await create(git, bare, AGENT, tmp_path / "wt")
    assert not (tmp_path / "wt").exists()


async def test_another_base_and_a_wrong_one(repo: Repo, tmp_path: Path) -> None:
    first = repo.git("rev-parse", "HEAD")
    repo.commit({"new": "new"})
    found = await find_repository(git, repo.path)
    assert (await create(git, found, AGENT, tmp_path / "wt", base=first)).base_commit == first
    for base in ("", "-x", "no-such-ref"):
        with pytest.raises(WorktreeFailed, match="no commit"):
            await create(git, found, AGENT, tmp_path / "wt", base=base)


async def test_c25_worktree_of_a_bare_repository_with_peers(repo: Repo, tmp_path: Path) -> None:
    bare = tmp_path / "hub/.bare"
    repo.git("clone", "-q", "--bare", str(repo.path), str(bare))
    Repo(bare).git("worktree", "add", "-q", str(tmp_path / "hub/main"), "main")
    peer = Repo(tmp_path / "hub/main")
    worktree = await made(peer, tmp_path / "wt")
    assert worktree.forbidden == (peer.path, bare, bare / "worktrees/main")
    assert (await settle(git, worktree)).kept is False


async def test_submodule_as_repository(repo: Repo, tmp_path: Path) -> None:
    inner = init(tmp_path / "inner", {"i": "i"})
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.path), "sub")
    worktree = await made(Repo(repo.path / "sub"), tmp_path / "wt")
    assert (worktree.path / "i").read_text() == "i"
    assert (await settle(git, worktree)).kept is False


@pytest.mark.parametrize("word", ["update-ref", "add", "--symbolic-full-name", "reset"])
@pytest.mark.parametrize("how", ["failure", "cancellation"])
async def test_failure_or_cancellation_leaves_nothing(repo: Repo, tmp_path: Path, word: str, how: str) -> None:
    found = await find_repository(git, repo.path)
    before = repo.state()
    with anyio.CancelScope() as scope:

        def stop() -> None:
            if how == "cancellation":
                scope.cancel()
            else:
                raise RuntimeError("disk full")

        recorder = Recorder(word, stop)
        if how == "failure" and word != "update-ref":
            with pytest.raises(RuntimeError):
                await create(recorder, found, AGENT, tmp_path / "wt")
        elif how == "cancellation":
            await create(recorder, found, AGENT, tmp_path / "wt")
    if word != "update-ref" or how == "cancellation":
        assert recorder.word == ""
    assert repo.state() == before
    assert not list((tmp_path / "wt").glob("*"))


async def test_failing_checkout_leaves_nothing(repo: Repo, tmp_path: Path) -> None:
    repo.commit({".gitattributes": "a.txt filter=broken\n"})
    before = repo.state()
    repo.git("config", "filter.broken.smudge", "false")
    repo.git("config", "filter.broken.required", "true")
    with pytest.raises(GitFailed, match="reset --hard"):
        await made(repo, tmp_path / "wt")
    repo.git("config", "--remove-section", "filter.broken")
    assert repo.state() == before
    assert list((tmp_path / "wt").iterdir()) == []


@pytest.mark.parametrize("delay", [0.0, 0.005, 0.02, 0.04, 0.06, 0.1, 0.2])
async def test_cancelled_at_any_moment_leaves_nothing(repo: Repo, tmp_path: Path, delay: float) -> None:
    repo.commit({f"d{n % 20}/f{n}": f"{n}\n" * 50 for n in range(800)})
    before = repo.state()
    worktree = None
    with anyio.move_on_after(delay):
        worktree = await made(repo, tmp_path / "wt")
    if worktree is not None:
        await settle(git, worktree)
    assert repo.state() == before
    assert not list((tmp_path / "wt").glob("*"))


async def test_undo_never_deletes_what_somebody_else_put_there(repo: Repo, tmp_path: Path) -> None:
    found = await find_repository(git, repo.path)
    path = tmp_path / "wt/agent-01234567"

    def replace() -> None:
        repo.git("worktree", "remove", "-f", "-f", str(path))
        repo.git("branch", "-D", path.name)
        repo.git("worktree", "add", "-q", "-b", "theirs", str(path))
        (path / "precious").write_text("work")
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        await create(Recorder("add", replace), found, AGENT, tmp_path / "wt")
    assert (path / "precious").read_text() == "work"


@pytest.mark.spec("WT-3")
async def test_unchanged_is_removed_with_its_branch(repo: Repo, tmp_path: Path) -> None:
    before = repo.state()
    worktree = await made(repo, tmp_path / "wt")
    os.utime(worktree.path / "a.txt")  # touched is not changed
    assert await settle(git, worktree) == Settled(False, "nothing changed; worktree and branch were removed")
    assert repo.state() == before
    assert not worktree.path.exists()


@pytest.mark.spec("WT-3", "WT-4")
@pytest.mark.parametrize("command", ["remove", "-d"])
async def test_a_git_that_fails_after_its_work_leaves_nothing_to_name(repo: Repo, tmp_path: Path, command: str) -> None:
    def fail() -> None:
        raise GitFailed("killed", 137)

    before = repo.state()
    worktree = await made(repo, tmp_path / "wt")
    settled = await settle(Recorder(command, fail), worktree)
    assert settled == Settled(False, "nothing changed; worktree and branch were removed")
    assert repo.state() == before


def _commit(repo: Repo, worktree: Worktree) -> None:
    Repo(worktree.path).commit({"new": "new"})


def _detached_commit(repo: Repo, worktree: Worktree) -> None:
    inside = Repo(worktree.path)
    inside.git("checkout", "-q", "--detach")
    inside.commit({"new": "new"})
    inside.git("checkout", "-q", worktree.branch)


def _other_branch(repo: Repo, worktree: Worktree) -> None:
    Repo(worktree.path).git("checkout", "-q", "-b", "mine")


def _write(name: str, text: str) -> Any:
    return lambda repo, worktree: Repo(worktree.path).write({name: text})


def _index_only(repo: Repo, worktree: Worktree) -> None:
    Repo(worktree.path).write({"new": "new"})
    Repo(worktree.path).git("add", "-A")


def _ignored(repo: Repo, worktree: Worktree) -> None:
    (repo.path / ".git/info").mkdir(exist_ok=True)
    (repo.path / ".git/info/exclude").write_text("*.log\n")
    Repo(worktree.path).write({"out/x.log": "log"})


def _folder_gone(repo: Repo, worktree: Worktree) -> None:
    shutil.rmtree(worktree.path)


def _folder_replaced_by_link(repo: Repo, worktree: Worktree) -> None:
    shutil.rmtree(worktree.path)
    worktree.path.symlink_to(repo.path)


def _nested_repository(repo: Repo, worktree: Worktree) -> None:
    init(worktree.path / "nested", {"n": "n"})


@pytest.mark.spec("WT-3", "WT-4")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_commit, "it has commits: HEAD is "),
        (_detached_commit, "commits were made in it that may be on no branch"),
        (_other_branch, "it is not on its branch agent-01234567 any more, but on refs/heads/mine"),
        (_write("a.txt", "changed"), "it has 1 changed, untracked or ignored files: a.txt"),
        (_write("new", "untracked"), "it has 1 changed, untracked or ignored files: new"),
        (_index_only, "it has 1 changed, untracked or ignored files: new"),
        (_ignored, "it has 1 changed, untracked or ignored files: out/x.log"),
        (_nested_repository, "it has 1 changed, untracked or ignored files: nested/"),
        (_folder_gone, "kept, since git could not settle it: the worktree "),
        (_folder_replaced_by_link, "kept, since git could not settle it: the worktree "),
    ],
)
async def test_anything_that_happened_keeps_it(repo: Repo, tmp_path: Path, change: Any, reason: str) -> None:
    worktree = await made(repo, tmp_path / "wt")
    change(repo, worktree)
    settled = await settle(git, worktree)
    assert settled.kept
    assert settled.reason.startswith(reason)
    assert f"refs/heads/{worktree.branch} " in repo.state()["branches"]
    assert "locked" not in repo.state()["worktrees"]
    assert (repo.path / "a.txt").read_text() == "one\ntwo\nthree\n"


@pytest.mark.spec("WT-4")
async def test_git_failure_keeps_it(repo: Repo, tmp_path: Path) -> None:
    worktree = await made(repo, tmp_path / "wt")
    (worktree.git_dir / "index").write_bytes(b"broken")
    settled = await settle(git, worktree)
    assert settled.kept
    assert worktree.path.exists()
    assert "index file" in settled.reason


async def test_agent_written_git_folder_is_never_read(repo: Repo, tmp_path: Path) -> None:
    worktree = await made(repo, tmp_path / "wt")
    (worktree.path / ".git").unlink()
    trap = init(tmp_path / "trap", {"a.txt": "one\ntwo\nthree\n", "src/b.py": "b = 1\n"})
    trap.git("config", "filter.x.clean", f"touch {tmp_path}/ran; cat")
    (trap.path / ".git").rename(worktree.path / ".git")
    (worktree.path / ".gitattributes").write_text("* filter=x\n")
    settled = await settle(git, worktree)
    assert settled.reason == "it has 1 changed, untracked or ignored files: .gitattributes"
    assert not (tmp_path / "ran").exists()


async def test_release_unlocks_only(repo: Repo, tmp_path: Path) -> None:
    worktree = await made(repo, tmp_path / "wt")
    assert "locked agent-ls" in repo.state()["worktrees"]
    await release(git, worktree)
    await release(git, worktree)
    assert "locked" not in repo.state()["worktrees"]
    assert (worktree.path / "a.txt").exists()


async def test_reopened_from_the_record_is_the_same_value(repo: Repo, tmp_path: Path) -> None:
    worktree = await made(repo, tmp_path / "wt")
    found = await find_repository(git, repo.path)
    assert await reopen(git, found, worktree.path, worktree.branch, worktree.base_commit) == worktree
    await settle(git, worktree)
    with pytest.raises(WorktreeFailed, match="is no worktree of"):
        await reopen(git, found, worktree.path, worktree.branch, worktree.base_commit)


@pytest.mark.parametrize(
    ("cwd", "slug"),
    [
        ("/home/me/my project", "-home-me-my-project"),
        ("/tmp/Ünï", "-tmp--n-"),
        ("C:\\work\\x.y", "C--work-x-y"),
    ],
)
def test_project_slug(cwd: str, slug: str) -> None:
    assert project_slug(Path(cwd)) == slug


def test_long_project_slugs_are_cut_and_stay_different() -> None:
    one, two = project_slug(Path("/" + "a" * 300 + "1")), project_slug(Path("/" + "a" * 300 + "2"))
    assert (len(one), one[:200]) == (217, "-" + "a" * 199)
    assert one != two


def test_worktrees_folder_is_a_real_path_and_makes_nothing(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "state")
    assert worktrees_folder(tmp_path / "link", Path("/a/b")) == tmp_path / "state/worktrees/-a-b"
    assert list(tmp_path.iterdir()) == [tmp_path / "link"]

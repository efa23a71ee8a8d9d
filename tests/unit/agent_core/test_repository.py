from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import anyio
import psutil
import pytest
from attrs import evolve

from agent_core.errors import GitFailed, WorktreeFailed
from agent_core.repository import GitCommand, Repository, find_repository
from tests.git_helpers import Repo, clean_git, init, repo

__all__ = ["clean_git", "repo"]
pytestmark = pytest.mark.anyio

git = GitCommand()


async def test_importing_the_module_does_not_load_gitpython() -> None:
    code = "import sys, agent_core.repository; print('git' in sys.modules)"
    done = await anyio.run_process([sys.executable, "-c", code])
    assert done.stdout == b"False\n"


async def test_output_is_bytes_and_complete(repo: Repo) -> None:
    repo.commit({"bin": b"\0\xff\n\n"})
    assert await git.run(repo.path, "cat-file", "blob", "HEAD:bin") == b"\0\xff\n\n"


async def test_stdin_reaches_git(repo: Repo) -> None:
    assert (
        await git.run(repo.path, "hash-object", "--stdin", stdin=b"") == b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n"
    )


async def test_failure_names_command_code_and_gits_words(repo: Repo) -> None:
    with pytest.raises(GitFailed) as caught:
        await git.run(repo.path, "rev-parse", "--verify", "nonsense")
    assert caught.value.exit_code == 128
    said = (
        f"`git rev-parse --verify nonsense` in {repo.path} failed with exit code 128: fatal: Needed a single revision"
    )
    assert str(caught.value) == said


async def test_accepted_exit_code_is_no_failure(repo: Repo) -> None:
    assert await git.run(repo.path, "symbolic-ref", "-q", "refs/nothing", ok=(0, 1)) == b""


async def test_inherited_variables_do_not_redirect_git(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = repo.git("rev-parse", "HEAD")
    other = init(tmp_path / "other", {"x": "x"})
    for name, value in {"GIT_DIR": other.path / ".git", "GIT_WORK_TREE": other.path, "GIT_INDEX_FILE": "/x"}.items():
        monkeypatch.setenv(name, str(value))
    assert (await git.run(repo.path, "rev-parse", "HEAD")).decode().strip() == head
    own = {"GIT_DIR": str(other.path / ".git")}
    assert (await git.run(repo.path, "rev-parse", "HEAD", env=own)).decode().strip() != head


async def test_hooks_and_fsmonitor_do_not_run(repo: Repo, tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    hook = repo.path / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\necho hook >> {trace}\n")
    hook.chmod(0o755)
    monitor = tmp_path / "monitor"
    monitor.write_text(f"#!/bin/sh\necho monitor >> {trace}\nexit 1\n")
    monitor.chmod(0o755)
    repo.git("config", "core.fsmonitor", str(monitor))
    await git.run(repo.path, "checkout", "-q", "-b", "other")
    await git.run(repo.path, "status")
    assert not trace.exists()
    repo.git("checkout", "-q", "main")
    assert "hook" in trace.read_text()  # the trap works


async def test_missing_folder_is_an_error_and_not_our_own_folder(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repo.path)
    with pytest.raises(GitFailed, match="cannot change to"):
        await git.run(tmp_path / "gone", "status")


async def test_git_missing_is_said_plainly(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    await git.run(repo.path, "version")
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(WorktreeFailed, match="git cannot be started; install it and put it on PATH"):
        await git.run(repo.path, "version")
    with pytest.raises(WorktreeFailed, match="git cannot be started; install it and put it on PATH"):
        await GitCommand().run(repo.path, "version")


async def test_old_git_is_said_plainly(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "bin/git"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho git version 2.20.1\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}:{os.environ['PATH']}")
    with pytest.raises(WorktreeFailed, match=r"git 2\.20\.1 is too old; install 2\.33 or newer"):
        await GitCommand().run(repo.path, "status")


@pytest.mark.parametrize("stubborn", [False, True])
async def test_cancelling_ends_git_and_its_children(repo: Repo, tmp_path: Path, stubborn: bool) -> None:
    pids = tmp_path / "pids"
    trap = "trap '' TERM;" if stubborn else ""
    alias = f"alias.wait=!{trap} echo $$ > {pids}; sleep 60; sleep 60"

    async def cancel_when_started(scope: anyio.CancelScope) -> None:
        while not pids.exists() or not pids.read_text().strip():
            await anyio.sleep(0.01)
        scope.cancel()

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(cancel_when_started, group.cancel_scope)
            await git.run(repo.path, "-c", alias, "wait")
    with contextlib.suppress(psutil.NoSuchProcess):
        assert psutil.Process(int(pids.read_text())).status() == psutil.STATUS_ZOMBIE


async def test_cancelled_before_the_start_runs_nothing_for_long(repo: Repo) -> None:
    with anyio.fail_after(5), anyio.CancelScope() as scope:
        scope.cancel()
        await git.run(repo.path, "-c", "alias.wait=!sleep 60", "wait")
    assert scope.cancelled_caught


@pytest.mark.spec("WT-1")
async def test_main_checkout_from_a_folder_inside(repo: Repo) -> None:
    assert await find_repository(git, repo.path / "src") == Repository(
        toplevel=repo.path,
        git_dir=repo.path / ".git",
        common_dir=repo.path / ".git",
        is_bare=False,
        head=repo.git("rev-parse", "HEAD"),
        branch="main",
    )


async def test_c11_linked_worktree_has_its_own_head(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", "-b", "feature/x", str(tmp_path / "linked"))
    linked = Repo(tmp_path / "linked")
    head = linked.commit({"new": "new"})
    assert await find_repository(git, linked.path) == Repository(
        toplevel=linked.path,
        git_dir=repo.path / ".git/worktrees/linked",
        common_dir=repo.path / ".git",
        is_bare=False,
        head=head,
        branch="feature/x",
    )


async def test_c24_detached_head_has_no_branch(repo: Repo) -> None:
    before = await find_repository(git, repo.path)
    repo.git("checkout", "-q", "--detach")
    assert await find_repository(git, repo.path) == evolve(before, branch=None)


async def test_unborn_head_has_a_branch_and_no_commit(tmp_path: Path, clean_git: None) -> None:
    empty = init(tmp_path / "empty")
    found = await find_repository(git, empty.path)
    assert (found.head, found.branch, found.is_bare) == (None, "main", False)


async def test_c25_bare_repository_with_peers(repo: Repo, tmp_path: Path) -> None:
    bare = tmp_path / "hub/.bare"
    repo.git("clone", "-q", "--bare", str(repo.path), str(bare))
    Repo(bare).git("symbolic-ref", "HEAD", "refs/heads/no-such-branch")
    Repo(bare).git("worktree", "add", "-q", str(tmp_path / "hub/main"), "main")
    head = repo.git("rev-parse", "HEAD")
    assert await find_repository(git, bare) == Repository(None, bare, bare, True, None, "no-such-branch")
    peer = tmp_path / "hub/main"
    assert await find_repository(git, peer) == Repository(peer, bare / "worktrees/main", bare, False, head, "main")


async def test_submodule_is_its_own_repository(repo: Repo, tmp_path: Path) -> None:
    inner = init(tmp_path / "inner", {"i": "i"})
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.path), "sub")
    found = await find_repository(git, repo.path / "sub")
    assert found == Repository(
        toplevel=repo.path / "sub",
        git_dir=repo.path / ".git/modules/sub",
        common_dir=repo.path / ".git/modules/sub",
        is_bare=False,
        head=inner.git("rev-parse", "HEAD"),
        branch="main",
        superproject=repo.path,
    )


async def test_no_repository_inside_git_folder_and_no_folder_are_told_apart(repo: Repo, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    said = {}
    for place in (outside, repo.path / ".git", tmp_path / "gone"):
        with pytest.raises(WorktreeFailed) as caught:
            await find_repository(git, place)
        said[place] = str(caught.value)
    assert said == {
        outside: f"{outside} is in no git repository; run `git init` and commit, or use isolation `none`",
        repo.path / ".git": f"{repo.path}/.git is inside a git folder ({repo.path}/.git); use a folder of the checkout",
        tmp_path / "gone": f"{tmp_path}/gone is not a folder",
    }


def test_helper_reports_failures(repo: Repo) -> None:
    with pytest.raises(AssertionError):
        repo.git("no-such-command")
    assert subprocess.run(["git", "-C", str(repo.path), "fsck"], capture_output=True, check=False).returncode == 0

"""Worktrees made and removed side by side with failures in between, values that lead to the checkout (C1)."""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import define, evolve, field

from agent_core.errors import GitFailed, WorktreeFailed
from agent_core.repository import GitCommand, find_repository
from agent_core.worktree import Worktree, create
from agent_core.worktree_settling import settle
from tests.git_helpers import AGENT, Repo, clean_git, repo

__all__ = ["clean_git", "repo"]
pytestmark = [pytest.mark.anyio, pytest.mark.spec("WT-3", "WT-4")]

git = GitCommand()


@define(eq=False)
class FailingGit:
    """git, but one of a dozen commands does its work and then fails, or fails before it."""

    random: random.Random
    failed: list[str] = field(factory=list)

    async def run(self, cwd: Path, *args: str, **options: Any) -> bytes:
        chance = self.random.random()
        if chance < 0.04:
            self.failed.append(args[0])
            raise GitFailed(f"{args[0]}: injected before", 128)
        output = await git.run(cwd, *args, **options)
        if chance > 0.96:
            self.failed.append(args[0])
            raise GitFailed(f"{args[0]}: injected after", 128)
        return output


def contents(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if ".git" not in path.parts}


def users(repo: Repo) -> tuple[Any, ...]:
    """All that is the user's in a checkout."""
    own = tuple((repo.path / ".git" / name).read_bytes() for name in ("HEAD", "index", "config"))
    return contents(repo.path), own, repo.git("rev-parse", "main", "refs/stash")


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_c1_rounds_of_parallel_worktrees_with_failures_in_between(repo: Repo, tmp_path: Path, seed: int) -> None:
    repo.write({"a.txt": "stashed\n"})
    repo.git("stash")
    repo.write({"a.txt": "not committed\n", "new/mine.txt": "untracked\n", "b.txt": "staged\n"})
    repo.git("add", "b.txt")
    before, found = users(repo), await find_repository(git, repo.path)
    failing = FailingGit(random.Random(seed))
    written: dict[Path, str] = {}

    async def one(number: int) -> None:
        try:
            worktree = await create(failing, found, f"{seed}{number:02}".ljust(16, "a"), tmp_path / "wt")
        except WorktreeFailed:
            return
        if number % 2:
            written[worktree.path / "work.txt"] = f"{number}\n"
            (worktree.path / "work.txt").write_text(f"{number}\n")
        if number % 10 == 1:
            Repo(worktree.path).git("add", "work.txt")
        with anyio.move_on_after(0.03 if number % 3 == 0 else 30):
            await settle(failing, worktree)

    for rounds in range(2):
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(one, rounds * 8 + number)
    assert failing.failed != [] and written != {}
    assert users(repo) == before
    assert {path: path.read_text() for path in written} == written
    assert repo.git("fsck", "--full", "--strict", "--no-dangling") == ""


async def test_c1_a_value_that_leads_to_the_users_checkout_removes_nothing(repo: Repo, tmp_path: Path) -> None:
    """Clean and at its base, so that all that speaks against removing it is what it is."""
    repo.git("worktree", "add", "-q", "-b", "theirs", str(tmp_path / "theirs"))
    found = await find_repository(git, repo.path)
    made = await create(git, found, AGENT, tmp_path / "wt")
    repo.git("worktree", "unlock", str(made.path))
    before = repo.state(), contents(tmp_path)
    main = repo.git("symbolic-ref", "--short", "HEAD")
    for wrong in (
        evolve(made, path=repo.path, branch=main, git_dir=made.common_dir),
        evolve(made, path=repo.path, branch=main),
        evolve(made, path=repo.path / "src"),
        evolve(made, path=repo.path.parent),
        evolve(made, path=repo.path / ".git"),
        evolve(made, path=tmp_path / "theirs"),
        evolve(made, git_dir=made.common_dir, branch=main),
        evolve(made, path=tmp_path / "theirs", branch="theirs"),
    ):
        settled = await settle(git, wrong)
        assert settled.kept, wrong
        assert (repo.state(), contents(tmp_path)) == before, wrong


@pytest.mark.parametrize("place", ["", ".git", "src", ".."])
async def test_c1_what_is_is_in_or_holds_the_checkout_is_never_removed_even_where_nothing_else_speaks_against_it(
    repo: Repo, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await create(git, await find_repository(git, repo.path), AGENT, tmp_path / "wt")
    commands: list[tuple[str, ...]] = []

    class Watched(GitCommand):
        async def run(self, cwd: Path, *args: str, **options: Any) -> bytes:
            commands.append(args)
            return await super().run(cwd, *args, **options)

    async def nothing(git: Any, worktree: Worktree, head: str) -> None:
        return None

    monkeypatch.setattr("agent_core.worktree_settling._why_keep", nothing)
    settled = await settle(Watched(), evolve(made, path=(repo.path / place).resolve()))
    assert (settled.kept, "it is never removed" in settled.reason) == (True, True), settled
    assert [args[:2] for args in commands] == [("worktree", "unlock"), ("rev-parse", "--verify")]


async def test_c1_a_folder_with_the_git_folder_of_another_is_never_removed(repo: Repo, tmp_path: Path) -> None:
    made = await create(git, await find_repository(git, repo.path), AGENT, tmp_path / "wt")
    (made.path / ".git").write_text(f"gitdir: {repo.path / '.git'}\n")
    settled = await settle(git, made)
    assert (settled.kept, made.path.exists()) == (True, True)
    assert "does not have the git folder" in settled.reason


# A git that was killed while it registered a worktree


def half_made(repo: Repo, name: str, reason: str, age: float = 60) -> Path:
    """What `git worktree add` leaves when it is killed between opening `commondir` and writing to it."""
    path = repo.path.parent / name
    repo.git("worktree", "add", "-q", "--lock", "--reason", reason, "-b", name, str(path))
    entry = repo.path / ".git" / "worktrees" / name
    (entry / "commondir").write_bytes(b"")
    os.utime(entry / "commondir", (time.time() - age,) * 2)
    return entry


def gone_pid() -> int:
    """Of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


async def test_c1_a_git_that_is_killed_while_it_registers_leaves_a_repository_that_works(
    repo: Repo, tmp_path: Path
) -> None:
    class Killed(GitCommand):
        async def run(self, cwd: Path, *args: str, **options: Any) -> bytes:
            output = await super().run(cwd, *args, **options)
            if args[:2] == ("worktree", "add"):
                for entry in (repo.path / ".git" / "worktrees").iterdir():
                    (entry / "commondir").write_bytes(b"")
                raise GitFailed("git worktree add: killed", -9)
            return output

    before = repo.state()
    with pytest.raises(GitFailed, match="killed"):
        await create(Killed(), await find_repository(git, repo.path), AGENT, tmp_path / "wt")
    assert repo.state() == before
    assert list((tmp_path / "wt").iterdir()) == []
    assert repo.git("fsck", "--full") == ""


async def test_c1_what_a_dead_server_left_half_registered_is_taken_away(repo: Repo, tmp_path: Path) -> None:
    entry = half_made(repo, "agent-dead", f"agent-ls {gone_pid()}: agent is running")
    await create(git, await find_repository(git, repo.path), AGENT, tmp_path / "wt")
    assert (entry.exists(), (tmp_path / "agent-dead").exists()) == (False, True)
    assert "refs/heads/agent-dead" in repo.state()["branches"]


@pytest.mark.parametrize(
    ("name", "reason", "age"),
    [
        ("agent-live", "agent-ls {own}: agent is running", 60),
        ("agent-new", "agent-ls {gone}: agent is running", 0),
        ("agent-users", "on a stick", 60),
        ("other", "agent-ls {gone}: agent is running", 60),
    ],
)
async def test_c1_what_may_not_be_ours_or_not_dead_stays(
    repo: Repo, tmp_path: Path, name: str, reason: str, age: float
) -> None:
    entry = half_made(repo, name, reason.format(own=os.getpid(), gone=gone_pid()), age)
    with pytest.raises(GitFailed, match="commondir"):
        await create(git, await find_repository(git, repo.path), AGENT, tmp_path / "wt")
    assert (entry / "locked").exists()


async def test_c1_a_name_that_another_registration_has_is_not_taken(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", "-b", "theirs", str(tmp_path / "elsewhere" / "agent-01234567"))
    made = await create(git, await find_repository(git, repo.path), AGENT, tmp_path / "wt")
    assert (made.path.name, made.git_dir.name) == ("agent-0123456789ab", "agent-0123456789ab")

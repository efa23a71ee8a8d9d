"""What a process that was killed leaves of worktrees: the next start takes away what nobody can miss, and no more."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from agent_core.repository import GitCommand, find_repository
from agent_core.worktree import Worktree, create, release, reopen
from agent_core.worktree_journal import Entry, entries
from agent_core.worktree_leftovers import Leftover, settle_leftovers
from agent_core.worktree_settling import settle
from tests.git_helpers import AGENT, Repo, clean_git, repo

__all__ = ["clean_git", "repo"]
pytestmark = [pytest.mark.anyio, pytest.mark.spec("WT-3", "WT-4")]

git = GitCommand()
NOW = datetime(2026, 1, 31, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=30)

KILLED = """
import os, sys, anyio
from pathlib import Path
from agent_core.repository import GitCommand, find_repository
from agent_core.worktree import create

class Killed(GitCommand):
    count = 0

    async def run(self, cwd, *args, **options):
        self.count += 1
        dies = self.count == int(sys.argv[3])
        if dies and sys.argv[4] == "before":
            os._exit(9)
        output = await super().run(cwd, *args, **options)
        if dies and sys.argv[4] == "after":
            os._exit(9)
        return output

async def main():
    git = Killed()
    repository = await find_repository(GitCommand(), Path(sys.argv[1]))
    await create(git, repository, sys.argv[5], Path(sys.argv[2]))
    os._exit(0)

anyio.run(main)
"""


def killed_at(repo: Repo, location: Path, number: int, when: str) -> int:
    """The exit code of a process that makes a worktree and is killed around its `number`-th git command."""
    words = [str(repo.path), str(location), str(number), when, AGENT]
    return subprocess.run([sys.executable, "-c", KILLED, *words], check=False).returncode


async def settled(location: Path, known: Mapping[Path, datetime | None] | None = None) -> list[Leftover]:
    return await settle_leftovers(git, location, known or {}, LONG_AGO)


async def left_by_dead(repo: Repo, location: Path) -> Worktree:
    assert killed_at(repo, location, 99, "after") == 0
    [entry] = entries(location)
    repository = await find_repository(git, repo.path)
    return await reopen(git, repository, entry.path, entry.path.name, entry.commit)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_c1_wherever_the_making_of_a_worktree_is_killed_nothing_is_left_of_it(
    repo: Repo, tmp_path: Path, when: str
) -> None:
    before, location = repo.state(), tmp_path / "wt"
    codes = []
    for number in range(1, 12):
        codes.append(killed_at(repo, location, number, when))
        assert await settled(location) == []
        assert (repo.state(), list(location.iterdir()) if location.exists() else []) == (before, []), number
        if codes[-1] == 0:
            break
    assert codes[-1] == 0 and codes.count(9) >= 4  # from the first command to the last


async def test_what_an_agent_is_known_for_stays_for_it_and_is_no_longer_locked(repo: Repo, tmp_path: Path) -> None:
    worktree = await left_by_dead(repo, tmp_path / "wt")
    assert (worktree.git_dir / "locked").exists()
    assert await settled(tmp_path / "wt", {worktree.path: None}) == []
    assert (worktree.path / "a.txt").exists() and not (worktree.git_dir / "locked").exists()
    assert [entry.path for entry in entries(tmp_path / "wt")] == [worktree.path]


@pytest.mark.parametrize("where", ["new.txt", "a.txt"])
async def test_work_in_one_that_nobody_knows_of_is_kept_and_told(repo: Repo, tmp_path: Path, where: str) -> None:
    worktree = await left_by_dead(repo, tmp_path / "wt")
    (worktree.path / where).write_text("work")
    reason = f"it has 1 changed, untracked or ignored files: {where}"
    assert await settled(tmp_path / "wt") == [Leftover(worktree.path, reason)]
    assert (worktree.path / where).read_text() == "work"


async def test_work_in_one_that_git_had_not_finished_is_kept(repo: Repo, tmp_path: Path) -> None:
    worktree = await left_by_dead(repo, tmp_path / "wt")
    (worktree.git_dir / "agent-ls-unfinished").touch()
    (worktree.git_dir / "index").unlink()
    (worktree.path / "new.txt").write_text("work")
    [left] = await settled(tmp_path / "wt")
    assert left.path == worktree.path and (worktree.path / "new.txt").read_text() == "work"


async def test_files_in_a_folder_that_git_does_not_know_are_kept(repo: Repo, tmp_path: Path) -> None:
    worktree = await left_by_dead(repo, tmp_path / "wt")
    shutil.rmtree(worktree.git_dir)
    [left] = await settled(tmp_path / "wt")
    assert left.reason.startswith("kept, since there are files in it") and (worktree.path / "a.txt").exists()
    shutil.rmtree(worktree.path)
    assert await settled(tmp_path / "wt") == []
    assert entries(tmp_path / "wt") == [] and "agent-" not in repo.git("branch")


async def test_what_a_living_process_makes_is_left_alone(repo: Repo, tmp_path: Path) -> None:
    worktree = await create(git, await find_repository(git, repo.path), AGENT, tmp_path / "wt")
    assert await settled(tmp_path / "wt") == []
    assert (worktree.git_dir / "locked").exists()
    [entry] = entries(tmp_path / "wt")
    head = repo.git("rev-parse", "HEAD")
    assert entry == Entry(worktree.path, AGENT, repo.path, head, os.getpid(), made=True)


@pytest.mark.parametrize("theirs", [False, True])
async def test_c1_killed_before_the_folder_was_surely_ours_takes_away_nothing_but_an_empty_one(
    repo: Repo, tmp_path: Path, theirs: bool
) -> None:
    worktree = await left_by_dead(repo, tmp_path / "wt")
    other = tmp_path / "wt/agent-ffffffff"
    other.mkdir()
    [journal] = (tmp_path / "wt").glob("*.json")
    values = {**json.loads(journal.read_bytes()), "path": str(other), "made": False}
    other.with_suffix(".json").write_text(json.dumps(values))
    if theirs:
        (other / "x").write_text("theirs")
    assert await settled(tmp_path / "wt", {worktree.path: None}) == []
    assert (other.exists(), other.with_suffix(".json").exists()) == (theirs, False)


async def test_c2_the_lock_of_a_person_is_never_taken_away(repo: Repo, tmp_path: Path) -> None:
    worktree = await left_by_dead(repo, tmp_path / "wt")
    await release(git, worktree)
    repo.git("worktree", "lock", "--reason", "mine", str(worktree.path))
    [left] = await settled(tmp_path / "wt")
    assert "cannot remove a locked working tree, lock reason: mine" in left.reason
    assert (worktree.git_dir / "locked").read_text().strip() == "mine"


# Worktrees of agents that ended long ago


@pytest.fixture
async def old(repo: Repo, tmp_path: Path) -> Worktree:
    worktree = await left_by_dead(repo, tmp_path / "wt")
    await release(git, worktree)
    return worktree


async def swept(worktree: Worktree, ended: datetime = LONG_AGO - timedelta(seconds=1)) -> bool:
    """Whether it is gone, told to nobody."""
    assert await settled(worktree.path.parent, {worktree.path: ended}) == []
    return not worktree.path.exists()


async def test_c2_an_old_one_goes_when_its_commits_are_on_another_branch_too(repo: Repo, old: Worktree) -> None:
    tip = Repo(old.path).commit({"work.txt": "work"})
    assert not await swept(old)
    repo.git("merge", "-q", "--no-edit", old.branch)
    assert not await swept(old, LONG_AGO + timedelta(seconds=1))
    assert await swept(old)
    assert (repo.git("branch", "--list", "agent-*"), entries(old.path.parent)) == ("", [])
    assert repo.git("rev-parse", "HEAD") == tip


@pytest.mark.parametrize("name", ["untracked.txt", "a.txt", "ignored.log"])
async def test_c2_an_old_one_with_anything_of_its_own_stays(repo: Repo, old: Worktree, name: str) -> None:
    repo.write({".git/info/exclude": "*.log\n"})
    (old.path / name).write_text("work")
    assert not await swept(old)
    assert (old.path / name).read_text() == "work"


async def test_c2_a_commit_on_no_branch_gets_a_ref_that_outlives_the_worktree(repo: Repo, old: Worktree) -> None:
    own = Repo(old.path)
    own.git("checkout", "-q", "--detach")
    first = own.commit({"work.txt": "first"})
    own.git("reset", "-q", "--hard", "HEAD^")
    second = own.commit({"work.txt": "second"})
    assert not await swept(old)
    anchored = repo.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/agent-ls/rescue").splitlines()
    place = f"refs/agent-ls/rescue/{old.branch}"
    assert sorted(anchored) == sorted(f"{place}/{commit[:12]} {commit}" for commit in (first, second))
    repo.git("worktree", "remove", "--force", str(old.path))
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")
    assert repo.git("show", f"{first}:work.txt") == "first" and repo.git("show", f"{second}:work.txt") == "second"


async def test_c4_where_a_program_works_nothing_is_removed(repo: Repo, tmp_path: Path) -> None:
    worktree = await create(git, await find_repository(git, repo.path), AGENT, tmp_path / "wt")
    child = await anyio.open_process(["sleep", "60"], cwd=worktree.path)
    try:
        found = await settle(git, worktree)
        assert (found.kept, found.reason) == (
            True,
            f"kept, since git could not settle it: programs work in it: sleep ({child.pid})",
        )
    finally:
        child.kill()
        await child.wait()
    assert not (await settle(git, worktree)).kept

"""What processes that were killed have left of worktrees: taken away where nothing can be lost, else kept and told.

Every worktree of ours is in the journal. One that an agent is known for stays for its agent, unlocked, so that people
can deal with it. One that no agent knows of, since its process was killed in between, is settled as at the end of a
run. Worktrees of agents that ended long ago go as well, if there is nothing in them that is not elsewhere (`sweep`).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from anyio import to_thread
from attrs import frozen

from agent_core.errors import WorktreeFailed
from agent_core.ports import Git
from agent_core.repository import Repository, find_repository
from agent_core.worktree import Worktree, is_unfinished, is_untouched, release, reopen
from agent_core.worktree_claim import is_alive, locked_by, registration
from agent_core.worktree_journal import Entry, entries, strike
from agent_core.worktree_settling import remove_unfinished, settle, sweep


@frozen
class Leftover:
    """A worktree that no agent knows of. `reason` says why it was kept."""

    path: Path
    reason: str


async def settle_leftovers(
    git: Git, location: Path, known: Mapping[Path, datetime | None], before: datetime
) -> list[Leftover]:
    """`known` are worktrees of agents that are listed, with the end of the agent, None while it has none. Those that
    ended before `before` are looked through as well. What belongs to a living process is left alone, and there is
    nothing to do while another process does the same."""
    kept = []
    with _alone(location) as alone:
        for entry in await to_thread.run_sync(entries, location) if alone else ():
            if is_alive(entry.pid) and entry.path not in known:
                continue
            with suppress(OSError):  # it went away meanwhile
                reason = await _settle_one(git, entry, known, before)
                kept += [Leftover(entry.path, reason)] if reason else []
    return kept


@contextmanager
def _alone(location: Path) -> Iterator[bool]:
    """False when another process settles there, or there is nothing."""
    try:
        descriptor = os.open(location, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


async def _settle_one(git: Git, entry: Entry, known: Mapping[Path, datetime | None], before: datetime) -> str | None:
    """Why it was kept, when nobody knows of it."""
    if not entry.made:
        await _settle_claim(git, entry)
        return None
    try:
        repository = await find_repository(git, entry.repository)
        worktree = await reopen(git, repository, entry.path, entry.path.name, entry.commit)
    except WorktreeFailed as error:
        return await _settle_unregistered(git, entry, entry.path in known, str(error))
    maker = locked_by(worktree.git_dir)
    if maker is not None and is_alive(maker):
        return None
    ended = known.get(entry.path)
    if entry.path in known and (ended is None or ended > before):
        if maker is not None:
            await release(git, worktree)
        return None
    return await _settle_registered(git, repository, worktree, is_known=entry.path in known)


async def _settle_claim(git: Git, entry: Entry) -> None:
    """Nothing but an empty folder can be there, unless it is somebody else's."""
    with suppress(WorktreeFailed, OSError):
        repository = await find_repository(git, entry.repository)
        if not registration(repository.common_dir, entry.path.name).exists():
            entry.path.rmdir()
    strike(entry.path)


async def _settle_registered(git: Git, repository: Repository, worktree: Worktree, *, is_known: bool) -> str | None:
    if is_known:
        await sweep(git, worktree)
        return None
    try:
        if is_unfinished(worktree) and await is_untouched(git, worktree):
            await remove_unfinished(git, repository, worktree)
            return None
    except (WorktreeFailed, OSError) as error:
        return f"kept, since git could not settle it: {error}"
    settled = await settle(git, worktree)
    return settled.reason if settled.kept else None


async def _settle_unregistered(git: Git, entry: Entry, is_known: bool, why: str) -> str | None:
    """git knows of no worktree there: it was killed before it had made one, or somebody has removed it."""
    if entry.path.exists() and any(entry.path.iterdir()):
        return None if is_known else f"kept, since there are files in it: {why}"
    with suppress(FileNotFoundError):
        entry.path.rmdir()
    with suppress(WorktreeFailed):  # the branch stays when it has moved, or when the repository is gone
        branch = f"refs/heads/{entry.path.name}"
        await git.run(entry.repository, "update-ref", "-d", branch, entry.commit)
    strike(entry.path)
    return None

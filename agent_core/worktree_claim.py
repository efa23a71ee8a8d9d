"""Taking a folder and a branch that nobody has, and giving them back when creating a worktree fails."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from pathlib import Path

import anyio
from anyio import to_thread
from attrs import frozen

from agent_core.errors import GitFailed, WorktreeFailed
from agent_core.ports import Git
from agent_core.repository import Repository
from agent_core.worktree_journal import confirm, enter, strike
from agent_core.worktree_names import slugs

_REASON = re.compile(r"agent-ls (\d{1,9}): ")
_STILL_WRITING = 10.0
"""Seconds; a git may outlive the server that started it by a moment."""


async def claim_place(
    git: Git, repository: Repository, agent_id: str, location: Path, commit: str, listed: tuple[Path, ...]
) -> Claim:
    """Take a folder and a branch that nobody has, with a name that no registration has. Folder and branch are made
    exclusively, so what is undone later is ours."""
    assert repository.toplevel is not None
    await to_thread.run_sync(lambda: location.mkdir(parents=True, exist_ok=True))
    for slug in slugs(agent_id):
        if location / slug in listed or registration(repository.common_dir, slug).exists():
            continue
        if (entry := enter(location / slug, agent_id, repository.toplevel, commit)) is None:
            continue
        if (claim := Claim.make(location / slug)) is None:
            strike(location / slug)
            continue
        confirm(entry)
        with anyio.CancelScope(shield=True):  # else a cancellation would leave open whose branch it is
            if await _make_branch(git, repository.toplevel, slug, commit):
                return claim
        claim.path.rmdir()
        strike(claim.path)
        claim.close()
    raise WorktreeFailed(f"no free name for a worktree of agent {agent_id} in {location}; remove old worktrees there")


@frozen
class Claim:
    """A folder that this process made. While it is held open its inode cannot be given to another folder, so `is_ours`
    stays true of this very folder only."""

    path: Path
    descriptor: int

    @classmethod
    def make(cls, path: Path) -> Claim | None:
        try:
            path.mkdir()
        except FileExistsError:
            return None
        return cls(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))

    def is_ours(self) -> bool:
        try:
            return os.path.samestat(self.path.lstat(), os.fstat(self.descriptor))
        except OSError:
            return False

    def close(self) -> None:
        os.close(self.descriptor)


async def _make_branch(git: Git, toplevel: Path, slug: str, commit: str) -> bool:
    """With the null id as the old value `update-ref` creates or fails; `worktree add -b` would leave its branch behind
    when it fails later."""
    try:
        await git.run(toplevel, "update-ref", f"refs/heads/{slug}", commit, "0" * len(commit))
    except GitFailed:
        return False
    return True


async def undo(git: Git, repository: Repository, claim: Claim, commit: str) -> None:
    """Forced, but only for a folder that this call made moments ago and no agent has seen."""
    toplevel = repository.toplevel
    assert toplevel is not None
    remove = ("worktree", "remove", "--force", "--force", "--", str(claim.path))
    if claim.is_ours():
        await git.run(toplevel, *remove, ok=range(256))
    if claim.is_ours():
        await to_thread.run_sync(lambda: shutil.rmtree(claim.path, ignore_errors=True))
    if not claim.path.exists():  # what git still has registered there
        await git.run(toplevel, *remove, ok=range(256))
        await to_thread.run_sync(_forget, registration(repository.common_dir, claim.path.name), claim.path)
        await git.run(toplevel, "update-ref", "-d", f"refs/heads/{claim.path.name}", commit, ok=range(256))
        strike(claim.path)


# What a git that was killed leaves. While `commondir` of one registration is empty, git 2.39 refuses `worktree`,
# `branch`, `gc` and `fsck` in the whole repository, and its own `worktree prune` passes over a locked one. The files
# are described in gitrepository-layout(5).


def lock_reason() -> str:
    """By which a registration is known for ours, and whether the process that made it is still there."""
    return f"agent-ls {os.getpid()}: agent is running"


def registration(common_dir: Path, slug: str) -> Path:
    """Where git keeps what it knows of the worktree that it calls so."""
    return common_dir / "worktrees" / slug


def _forget(entry: Path, path: Path) -> None:
    """Remove the registration of a worktree at `path`, however far git had come with it."""
    named = _text(entry / "gitdir")
    if not named or Path(named) == path / ".git":
        shutil.rmtree(entry, ignore_errors=True)


def drop_unreadable(common_dir: Path) -> list[Path]:
    """Remove registrations of ours that a killed git left empty, if their process is gone; the removed ones. Anything
    else stays, so that no work can be lost by it."""
    found = [entry for entry in (common_dir / "worktrees").glob("agent-*") if _is_abandoned(entry)]
    for entry in found:
        shutil.rmtree(entry, ignore_errors=True)
    return found


def _is_abandoned(entry: Path) -> bool:
    try:
        empty = (entry / "commondir").stat()
    except OSError:
        return False
    maker = locked_by(entry)
    old = empty.st_size == 0 and time.time() - empty.st_mtime > _STILL_WRITING
    return old and maker is not None and not is_alive(maker)


def locked_by(entry: Path) -> int | None:
    """The process of ours that locked this registration, None when nobody or somebody else has."""
    maker = _REASON.match(_text(entry / "locked"))
    return int(maker[1]) if maker else None


def _text(path: Path) -> str:
    try:
        return os.fsdecode(path.read_bytes()).strip()
    except OSError:
        return ""


def is_alive(pid: int) -> bool:
    if sys.platform == "win32":  # there, signal 0 is a real one
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True

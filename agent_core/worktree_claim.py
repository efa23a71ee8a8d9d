"""Taking a folder and a branch that nobody has, and giving them back when creating a worktree fails."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import anyio
from anyio import to_thread
from attrs import frozen

from agent_core.errors import GitFailed, WorktreeFailed
from agent_core.ports import Git
from agent_core.worktree_names import slugs


async def claim_place(
    git: Git, toplevel: Path, agent_id: str, location: Path, commit: str, listed: tuple[Path, ...]
) -> Claim:
    """Take a folder and a branch that nobody has. Both are made exclusively, so what is undone later is ours."""
    await to_thread.run_sync(lambda: location.mkdir(parents=True, exist_ok=True))
    for slug in slugs(agent_id):
        if location / slug in listed or (claim := Claim.make(location / slug)) is None:
            continue
        with anyio.CancelScope(shield=True):  # else a cancellation would leave open whose branch it is
            if await _make_branch(git, toplevel, slug, commit):
                return claim
        claim.path.rmdir()
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


async def undo(git: Git, toplevel: Path, claim: Claim, commit: str) -> None:
    """Forced, but only for a folder that this call made moments ago and no agent has seen."""
    remove = ("worktree", "remove", "--force", "--force", "--", str(claim.path))
    if claim.is_ours():
        await git.run(toplevel, *remove, ok=range(256))
    if claim.is_ours():
        await to_thread.run_sync(lambda: shutil.rmtree(claim.path, ignore_errors=True))
    if not claim.path.exists():  # what git still has registered there
        await git.run(toplevel, *remove, ok=range(256))
        await git.run(toplevel, "update-ref", "-d", f"refs/heads/{claim.path.name}", commit, ok=range(256))

"""How a worktree ends: removed when nothing can be lost by it, by git's own removal, else kept and told (WT-3, WT-4).

Absent on purpose: `--force`, and `git worktree prune`, which would touch registrations of others.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from anyio import to_thread
from attrs import frozen

from agent_core.errors import GitFailed, WorktreeFailed
from agent_core.furnishing import made, take_away
from agent_core.ports import Git
from agent_core.repository import Repository, hidden_by_index
from agent_core.worktree import Worktree, release
from agent_core.worktree_claim import Claim, undo
from agent_core.worktree_journal import strike


@frozen
class Settled:
    """`reason` says in words why the worktree was kept, or that it was removed."""

    kept: bool
    reason: str


async def settle(git: Git, worktree: Worktree) -> Settled:
    """Unlock, then remove worktree and branch if nothing happened there (WT-3). Any doubt or git error: kept. Commits
    that were made and are on no branch get a ref, so that they outlive the worktree (C2)."""
    return await _end(git, worktree, _why_keep, "nothing changed")


async def sweep(git: Git, worktree: Worktree) -> Settled:
    """As `settle`, long after: commits that other branches, tags or remotes hold too are no reason to keep it."""
    return await _end(git, worktree, _why_keep_for_long, "everything in it is elsewhere")


async def _end(
    git: Git, worktree: Worktree, why_keep: Callable[[Git, Worktree, str], Awaitable[str | None]], gone: str
) -> Settled:
    """What is looked at is what is removed: the branch goes only while it is where it was before all checks."""
    try:
        await release(git, worktree)
        tip = await _head(git, worktree)
        if reason := await why_keep(git, worktree, tip):
            await _rescue(git, worktree)
            return Settled(True, reason)
        await _remove(git, worktree, tip)
    except (WorktreeFailed, OSError) as error:
        return Settled(True, f"kept, since git could not settle it: {error}")
    return Settled(False, f"{gone}; worktree and branch were removed")


async def remove_unfinished(git: Git, repository: Repository, worktree: Worktree) -> None:
    """One that holds nothing but files as git writes them (`is_untouched`), before it had them all."""
    _check_removable(worktree)
    claim = Claim(worktree.path, os.open(worktree.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    try:
        await release(git, worktree)
        await undo(git, repository, claim, worktree.base_commit)
    finally:
        claim.close()


async def _remove(git: Git, worktree: Worktree, tip: str) -> None:
    """What counts is what is left: a git that was killed at its end has done its work, and nothing is there to name."""
    _check_removable(worktree)
    if names := await to_thread.run_sync(_who_works_in, worktree.path):
        raise WorktreeFailed(f"programs work in it: {', '.join(names[:5])}")
    await to_thread.run_sync(take_away, worktree)
    branch = f"refs/heads/{worktree.branch}"
    try:  # without --force: git itself checks once more
        await git.run(worktree.repository, "worktree", "remove", "--", str(worktree.path))
    except GitFailed:
        if worktree.path.exists() or worktree.git_dir.exists():
            raise
    try:  # like `branch -d`: only while it still is at the commit that is elsewhere too
        await git.run(worktree.repository, "update-ref", "-d", branch, tip)
    except GitFailed:
        if await git.run(worktree.repository, "for-each-ref", "--format=%(refname)", branch):
            raise
    strike(worktree.path)


def _who_works_in(path: Path) -> list[str]:
    """Programs whose working folder is there (C4), as far as the system tells: elsewhere than on Linux, none."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            folder = (process / "cwd").readlink()
            if folder.is_relative_to(path):
                found.append(f"{(process / 'comm').read_text().strip()} ({process.name})")
        except OSError:
            continue  # it has ended, or is somebody else's
    return found


def _check_removable(worktree: Worktree) -> None:
    """Whatever led to such a value: no checkout of the user is ever removed, nor what holds or lies in one (C1)."""
    path, own, common = worktree.path, worktree.git_dir, worktree.common_dir
    for other in (worktree.repository, common, *worktree.forbidden):
        if path.is_relative_to(other) or other.is_relative_to(path):
            raise WorktreeFailed(f"{path} is, holds or is inside {other}, which is the user's; it is never removed")
    named = os.fsdecode((path / ".git").read_bytes()).removeprefix("gitdir: ").strip()  # git can make it relative
    if own.parent != common / "worktrees" or (path / named).resolve() != own:
        raise WorktreeFailed(f"{path} does not have the git folder {own} of a linked worktree; it is never removed")


async def _why_keep(git: Git, worktree: Worktree, head: str) -> str | None:
    if head != worktree.base_commit:
        return f"it has commits: HEAD is {head[:12]}, the base {worktree.base_commit[:12]}"
    if reason := await _why_not_clean(git, worktree):
        return reason
    if await _visited(git, worktree) - {worktree.base_commit}:
        return "commits were made in it that may be on no branch"  # its reflog would go with it
    return None


async def _why_keep_for_long(git: Git, worktree: Worktree, head: str) -> str | None:
    if reason := await _why_not_clean(git, worktree):
        return reason
    others = (f"--exclude={worktree.branch}", "--branches", "--tags", "--remotes")
    if only_here := await _missing_in(git, worktree, others):
        return f"it has {len(only_here)} commits that are on no other branch"
    return None


async def _why_not_clean(git: Git, worktree: Worktree) -> str | None:
    path, env = worktree.path, worktree.environment()
    branch = (await git.run(path, "symbolic-ref", "--quiet", "HEAD", env=env, ok=(0, 1))).decode().strip()
    if branch != f"refs/heads/{worktree.branch}":
        return f"it is not on its branch {worktree.branch} any more, but on {branch or 'a detached HEAD'}"
    status = ("status", "--porcelain", "-z", "--untracked-files=all", "--ignored=matching", "--ignore-submodules=dirty")
    changes = await git.run(path, *status, env=env)
    names = [os.fsdecode(entry[3:]) for entry in changes.split(b"\0") if entry]
    if files := await to_thread.run_sync(_not_ours, worktree, names):
        return f"it has {len(files)} changed, untracked or ignored files: {', '.join(files[:5])}"
    if hidden := await hidden_by_index(git, path, env):
        return f"its index hides what happens to {', '.join(hidden[:5])}"
    return None


def _not_ours(worktree: Worktree, names: list[str]) -> list[str]:
    """Without what we have put there (C6). git names a folder in place of all that is in it."""
    ours = made(worktree).unchanged(worktree.path) if names else frozenset()

    def is_ours(name: str) -> bool:
        if not name.endswith("/"):
            return name in ours
        inside = [path for path in (worktree.path / name).rglob("*") if path.is_symlink() or not path.is_dir()]
        return all(str(path.relative_to(worktree.path)) in ours for path in inside)

    return [name for name in names if not ours or not is_ours(name)]


async def _rescue(git: Git, worktree: Worktree) -> None:
    """A ref for each commit that was made here and that no ref holds: without the worktree git would collect it."""
    own = f"refs/agent-ls/rescue/{worktree.branch}/"
    refs = ("--branches", "--tags", "--remotes", "--glob=refs/agent-ls/*")
    for commit in await _missing_in(git, worktree, refs):
        await git.run(worktree.common_dir, "update-ref", f"{own}{commit[:12]}", commit)


async def _missing_in(git: Git, worktree: Worktree, refs: tuple[str, ...]) -> list[str]:
    """Those of the commits that HEAD was at which none of the refs holds."""
    visited = await _visited(git, worktree) - {worktree.base_commit}
    if not visited:
        return []
    missing = await git.run(worktree.common_dir, "rev-list", *sorted(visited), "--not", *refs)
    return [commit for commit in missing.decode().split() if commit in visited]


async def _head(git: Git, worktree: Worktree) -> str:
    found = await git.run(worktree.path, "rev-parse", "--verify", "HEAD", env=worktree.environment())
    return found.decode().strip()


async def _visited(git: Git, worktree: Worktree) -> set[str]:
    command = ("log", "--walk-reflogs", "--format=%H", "HEAD")
    return set((await git.run(worktree.path, *command, env=worktree.environment())).decode().split())

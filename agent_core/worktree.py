"""Isolated checkouts: made exclusively, locked while an agent runs, removed only when nothing happened (WT-1, WT-3).

Absent on purpose: re-use of an existing worktree, `--force`, `git worktree prune` (it would touch registrations of
others), age-based sweeps. What cannot be shown to be ours and unchanged is kept and reported (WT-4).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import anyio
from anyio import to_thread
from attrs import frozen

from agent_core.errors import GitFailed, WorktreeFailed
from agent_core.ports import Git
from agent_core.repository import Repository, at_once, hidden_by_index
from agent_core.worktree_claim import Claim, claim_place, drop_unreadable, lock_reason, undo
from agent_core.worktree_names import check_location, check_outside, project_slug, worktrees_folder

__all__ = [
    "Registered",
    "Settled",
    "Worktree",
    "create",
    "project_slug",
    "release",
    "reopen",
    "settle",
    "worktrees_folder",
]

UNFINISHED = "agent-ls-unfinished"
"""A file in the worktree's git folder while its files are still to be written, so that a further process knows."""
_LOCKED_SECONDS = 30.0
_PARALLEL = ("-c", "checkout.workers=0")
"""As many as there are processors; git does so for many files only."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@frozen
class Worktree:
    """`repository` is the checkout of the session, where reviewed changes go. `git_dir` is the worktree's own folder
    inside `common_dir`. `forbidden` are the real paths that the agent must not write to (WT-2). `branch` has no
    `refs/heads/`.
    """

    path: Path
    branch: str
    base_commit: str
    repository: Path
    git_dir: Path
    common_dir: Path
    forbidden: tuple[Path, ...]

    def environment(self) -> Mapping[str, str]:
        """For every git command about the worktree's files. The agent can write `.git` in its worktree; what that
        names (a config with filters, another repository) must not count. WorktreeFailed when the folder is gone or is
        no plain folder any more."""
        if self.path.is_symlink() or not self.path.is_dir() or self.path.resolve() != self.path:
            raise WorktreeFailed(f"the worktree {self.path} is gone or was replaced by a link; nothing was read there")
        return {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(self.path)}


@frozen
class Settled:
    """`reason` says in words why the worktree was kept, or that it was removed."""

    kept: bool
    reason: str


@frozen
class Registered:
    """A worktree without files, which no agent has seen yet. `claim` is held until it has them, or is taken back."""

    worktree: Worktree
    claim: Claim
    origin: Repository

    async def undo(self, git: Git) -> None:
        await undo(git, self.origin, self.claim, self.worktree.base_commit)


async def create(git: Git, repository: Repository, agent_id: str, location: Path, base: str = "head") -> Worktree:
    """As `register`, with its files."""
    made = await register(git, repository, agent_id, location, base)
    try:
        await fill(git, made.worktree)
    except BaseException:
        with anyio.CancelScope(shield=True), suppress(WorktreeFailed):  # what went wrong first is what counts
            await made.undo(git)
        raise
    finally:
        made.claim.close()
    return made.worktree


async def fill(git: Git, worktree: Worktree) -> None:
    """Write the files of a new worktree."""
    await git.run(worktree.path, *_PARALLEL, "reset", "--hard", "--quiet", env=worktree.environment())
    (worktree.git_dir / UNFINISHED).unlink(missing_ok=True)


async def fill_rest(git: Git, worktree: Worktree) -> None:
    """After `fill` was cut off: write what is missing. What is there may be somebody's work and stays as it is."""
    path, env = worktree.path, worktree.environment()
    await _unlocked(worktree.git_dir / "index.lock")
    await git.run(path, "reset", "--mixed", "--quiet", env=env)
    missing = await git.run(path, "ls-files", "--deleted", "-z", env=env)
    await git.run(path, "checkout-index", "-z", "--stdin", "-u", "--quiet", env=env, stdin=missing)
    (worktree.git_dir / UNFINISHED).unlink(missing_ok=True)


async def _unlocked(lock: Path) -> None:
    """A git that was started by a server which is gone may still work; one that is dead leaves its lock for ever."""
    with anyio.move_on_after(_LOCKED_SECONDS):
        while lock.exists():  # noqa: ASYNC110 - the other process tells nobody
            await anyio.sleep(0.1)
        return
    lock.unlink(missing_ok=True)


async def is_untouched(git: Git, worktree: Worktree) -> bool:
    """Of a worktree whose `fill` was cut off: there is nothing in it but files as git writes them. By an index of our
    own, since git's is not there yet."""
    index = worktree.git_dir / "agent-ls-index"
    env = {**worktree.environment(), "GIT_INDEX_FILE": str(index)}
    try:
        await git.run(worktree.path, "read-tree", "HEAD", env=env)
        status = ("status", "--porcelain", "-z", "--untracked-files=all", "--ignored=matching", "--no-renames")
        found = await git.run(worktree.path, *status, env=env)
    finally:
        index.unlink(missing_ok=True)
    return all(entry.startswith(b" D") for entry in found.split(b"\0") if entry)


def is_unfinished(worktree: Worktree) -> bool:
    return (worktree.git_dir / UNFINISHED).exists()


async def register(git: Git, repository: Repository, agent_id: str, location: Path, base: str = "head") -> Registered:
    """A new worktree `<location>/agent-<8 of the id>` on a new branch of that name, locked (WT-1), without files yet.

    `base` is `head`, the HEAD of the session's own checkout at this moment, or a commit. WorktreeFailed for anything
    that does not fit; then, and after cancellation, no folder, branch or registration is left.
    """
    if not _ID.fullmatch(agent_id):
        raise WorktreeFailed(f"agent id {agent_id!r} cannot name a worktree: letters, digits, `-` and `_` only")
    toplevel = repository.toplevel
    if toplevel is None:
        raise WorktreeFailed(f"{repository.git_dir} is a bare repository; open one of its worktrees")
    await to_thread.run_sync(check_location, location)
    await to_thread.run_sync(drop_unreadable, repository.common_dir)
    listed, commit = await _before(git, toplevel, base)
    check_outside(location, (toplevel, repository.common_dir, repository.git_dir, *listed))
    claim = await claim_place(git, repository, agent_id, location, commit, listed)
    try:
        return Registered(await _add(git, repository, claim.path, commit, listed), claim, repository)
    except BaseException:
        with anyio.CancelScope(shield=True), suppress(WorktreeFailed):  # what went wrong first is what counts
            await undo(git, repository, claim, commit)
        claim.close()
        raise


async def _before(git: Git, toplevel: Path, base: str) -> tuple[tuple[Path, ...], str]:
    """The worktrees that there are, and the commit that is meant."""
    name = _checked_base(base)
    commit = ("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    listed, found = await at_once(git, toplevel, ("worktree", "list", "--porcelain"), commit)
    return _paths(listed), _commit(found, toplevel, name)


async def _registered(git: Git, toplevel: Path) -> tuple[Path, ...]:
    """All worktrees that git knows, the main one first."""
    return _paths(await git.run(toplevel, "worktree", "list", "--porcelain"))


def _paths(listed: bytes) -> tuple[Path, ...]:
    lines = listed.split(b"\n")
    return tuple(Path(os.fsdecode(line[9:])) for line in lines if line.startswith(b"worktree "))


def _checked_base(base: str) -> str:
    name = "HEAD" if base == "head" else base
    if not name.strip() or name.startswith("-"):
        raise WorktreeFailed(f"base {base!r} is no commit")
    return name


def _commit(found: bytes, toplevel: Path, name: str) -> str:
    if not found.strip():
        fix = "commit something, or use isolation `none`" if name == "HEAD" else "fetch it, or name another base"
        raise WorktreeFailed(f"the repository {toplevel} has no commit {name}; {fix}")
    return found.decode().strip()


async def _add(git: Git, repository: Repository, path: Path, commit: str, listed: tuple[Path, ...]) -> Worktree:
    toplevel = repository.toplevel
    assert toplevel is not None
    lock = ("--lock", "--reason", lock_reason())
    await git.run(toplevel, "worktree", "add", "--quiet", "--no-checkout", *lock, "--", str(path), path.name)
    questions = ("--show-toplevel", "--git-common-dir", "HEAD", "--symbolic-full-name", "HEAD", "--absolute-git-dir")
    made = os.fsdecode(await git.run(path, "rev-parse", *questions)).splitlines()
    found = [Path(path, each).resolve() if number < 2 else each for number, each in enumerate(made[:4])]
    if found != [path, repository.common_dir, commit, f"refs/heads/{path.name}"]:
        raise WorktreeFailed(f"git made something else than a worktree at {path}: {made}")
    git_dir = Path(made[4]).resolve()
    (git_dir / UNFINISHED).touch()
    return Worktree(path, path.name, commit, toplevel, git_dir, repository.common_dir, _forbidden(repository, listed))


async def reopen(git: Git, repository: Repository, path: Path, branch: str, base_commit: str) -> Worktree:
    """The value of a worktree made earlier, from what was recorded of it. WorktreeFailed when git does not know it."""
    listed = await _registered(git, repository.common_dir)
    for entry in (repository.common_dir / "worktrees").glob("*/gitdir"):
        # git has no command for this; the file is described in gitrepository-layout(5)
        if Path(os.fsdecode(entry.read_bytes().strip())) == path / ".git" and repository.toplevel is not None:
            forbidden = _forbidden(repository, listed)
            common = repository.common_dir
            return Worktree(path, branch, base_commit, repository.toplevel, entry.parent, common, forbidden)
    raise WorktreeFailed(f"{path} is no worktree of {repository.toplevel} any more")


def _forbidden(repository: Repository, listed: tuple[Path, ...]) -> tuple[Path, ...]:
    """`listed[0]` is the main checkout, of a bare repository its git folder."""
    own = (repository.toplevel,) if repository.toplevel is not None else ()
    return tuple(dict.fromkeys((*own, *listed[:1], repository.common_dir, repository.git_dir)))


def check_there(worktree: Worktree) -> None:
    """WorktreeFailed when its folder is gone: it is never silently replaced."""
    if not (worktree.path / ".git").exists():
        raise WorktreeFailed(f"the worktree {worktree.path} of this agent is gone; its branch was {worktree.branch}")


async def lock(git: Git, worktree: Worktree) -> None:
    """For a further run in it. WorktreeFailed when it is gone; one that is locked already is fine."""
    check_there(worktree)
    await git.run(worktree.repository, "worktree", "lock", "--reason", lock_reason(), str(worktree.path), ok=(0, 128))


async def release(git: Git, worktree: Worktree) -> None:
    """Unlock only; a worktree that is not locked any more is fine."""
    await git.run(worktree.repository, "worktree", "unlock", str(worktree.path), ok=(0, 128))


async def settle(git: Git, worktree: Worktree) -> Settled:
    """Unlock, then remove worktree and branch if nothing happened there (WT-3). Any doubt or git error: kept."""
    try:
        await release(git, worktree)
        if reason := await _why_keep(git, worktree):
            return Settled(True, reason)
        _check_removable(worktree)
        await _remove(git, worktree)
    except (WorktreeFailed, OSError) as error:
        return Settled(True, f"kept, since git could not settle it: {error}")
    return Settled(False, "nothing changed; worktree and branch were removed")


async def _remove(git: Git, worktree: Worktree) -> None:
    """What counts is what is left: a git that was killed at its end has done its work, and nothing is there to name."""
    branch = f"refs/heads/{worktree.branch}"
    try:  # without --force: git itself checks once more
        await git.run(worktree.repository, "worktree", "remove", "--", str(worktree.path))
    except GitFailed:
        if worktree.path.exists() or worktree.git_dir.exists():
            raise
    try:  # like `branch -d`: only while it still is at the commit that everybody has
        await git.run(worktree.repository, "update-ref", "-d", branch, worktree.base_commit)
    except GitFailed:
        if await git.run(worktree.repository, "for-each-ref", "--format=%(refname)", branch):
            raise


def _check_removable(worktree: Worktree) -> None:
    """Whatever led to such a value: no checkout of the user is ever removed, nor what holds or lies in one (C1)."""
    path, own, common = worktree.path, worktree.git_dir, worktree.common_dir
    for other in (worktree.repository, common, *worktree.forbidden):
        if path.is_relative_to(other) or other.is_relative_to(path):
            raise WorktreeFailed(f"{path} is, holds or is inside {other}, which is the user's; it is never removed")
    named = os.fsdecode((path / ".git").read_bytes()).removeprefix("gitdir: ").strip()  # git can make it relative
    if own.parent != common / "worktrees" or (path / named).resolve() != own:
        raise WorktreeFailed(f"{path} does not have the git folder {own} of a linked worktree; it is never removed")


async def _why_keep(git: Git, worktree: Worktree) -> str | None:
    path, env = worktree.path, worktree.environment()
    head = (await git.run(path, "rev-parse", "--verify", "HEAD", env=env)).decode().strip()
    if head != worktree.base_commit:
        return f"it has commits: HEAD is {head[:12]}, the base {worktree.base_commit[:12]}"
    branch = (await git.run(path, "symbolic-ref", "--quiet", "HEAD", env=env, ok=(0, 1))).decode().strip()
    if branch != f"refs/heads/{worktree.branch}":
        return f"it is not on its branch {worktree.branch} any more, but on {branch or 'a detached HEAD'}"
    status = ("status", "--porcelain", "-z", "--untracked-files=all", "--ignored=matching", "--ignore-submodules=dirty")
    if changes := await git.run(path, *status, env=env):
        files = [os.fsdecode(entry[3:]) for entry in changes.split(b"\0") if entry]
        return f"it has {len(files)} changed, untracked or ignored files: {', '.join(files[:5])}"
    if hidden := await hidden_by_index(git, path, env):
        return f"its index hides what happens to {', '.join(hidden[:5])}"
    visited = set((await git.run(path, "log", "--walk-reflogs", "--format=%H", "HEAD", env=env)).decode().split())
    if visited - {worktree.base_commit}:
        return "commits were made in it that may be on no branch"  # its reflog would go with it
    return None

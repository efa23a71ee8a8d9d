"""Isolated checkouts: made exclusively, and locked while an agent runs (WT-1). How they end: `worktree_settling`.

Absent on purpose: re-use of an existing worktree.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

import anyio
from anyio import to_thread
from attrs import frozen

from agent_core.errors import WorktreeFailed
from agent_core.ports import Git
from agent_core.repository import Repository, at_once
from agent_core.worktree_claim import Claim, claim_place, drop_unreadable, is_alive, lock_reason, locked_by, undo
from agent_core.worktree_names import check_location, check_outside, project_slug, worktrees_folder

__all__ = [
    "Registered",
    "Worktree",
    "create",
    "project_slug",
    "release",
    "reopen",
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


async def fill(git: Git, worktree: Worktree, sparse: Sequence[str] = ()) -> None:
    """Write the files of a new worktree; with `sparse` only those at the top and in these folders."""
    if sparse:
        await to_thread.run_sync(_write_sparse, worktree, sparse)
    options = (*_PARALLEL, *sparse_options(worktree))
    await git.run(worktree.path, *options, "reset", "--hard", "--quiet", env=worktree.environment())
    (worktree.git_dir / UNFINISHED).unlink(missing_ok=True)


def sparse_options(worktree: Worktree) -> tuple[str, ...]:
    """By an option for each command: a setting for one worktree would change the configuration of the repository."""
    names = ("core.sparseCheckout=true", "core.sparseCheckoutCone=true") if _sparse_file(worktree).exists() else ()
    return tuple(word for name in names for word in ("-c", name))


def _sparse_file(worktree: Worktree) -> Path:
    return worktree.git_dir / "info" / "sparse-checkout"


def _write_sparse(worktree: Worktree, folders: Sequence[str]) -> None:
    """In the form of git's cone mode (git-sparse-checkout(1))."""
    lines = ["/*", "!/*/"]
    for folder in sorted({each.strip("/") for each in folders if ".." not in each.split("/")} - {"", "."}):
        for parent in reversed(PurePosixPath(folder).parents[:-1]):
            lines += [f"/{parent}/", f"!/{parent}/*/"]
        lines.append(f"/{folder}/")
    _sparse_file(worktree).parent.mkdir(exist_ok=True)
    _sparse_file(worktree).write_text("".join(f"{line}\n" for line in dict.fromkeys(lines)))


async def fill_rest(git: Git, worktree: Worktree) -> None:
    """After `fill` was cut off: write what is missing. What is there may be somebody's work and stays as it is."""
    path, env = worktree.path, worktree.environment()
    await _unlocked(worktree.git_dir / "index.lock")
    await git.run(path, *sparse_options(worktree), "reset", "--mixed", "--quiet", env=env)
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
    """Without an index git was killed before there could be the mark."""
    return (worktree.git_dir / UNFINISHED).exists() or not (worktree.git_dir / "index").exists()


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
    maker = locked_by(worktree.git_dir)
    if maker is not None and not is_alive(maker):
        await release(git, worktree)
    await git.run(worktree.repository, "worktree", "lock", "--reason", lock_reason(), str(worktree.path), ok=(0, 128))


async def release(git: Git, worktree: Worktree) -> None:
    """Unlock only. One that is not locked any more is fine, and one that somebody else has locked stays so."""
    if locked_by(worktree.git_dir) is None:
        return
    await git.run(worktree.repository, "worktree", "unlock", str(worktree.path), ok=(0, 128))

"""What a new worktree starts from: `head`, `snapshot` or `fresh` (protocol.md, worktree.base).

`head` is the HEAD of the session's own checkout at this moment (C8, C10, C11). `snapshot` is that with all that is not
committed: changed and untracked files, and what editors hold unsaved. `fresh` is the default branch of the remote.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

import anyio
from anyio import to_thread
from attrs import frozen

from agent_core.checkout_tree import Replaced, checkout_tree
from agent_core.definitions import BaseKind
from agent_core.errors import GitFailed
from agent_core.git_objects import commit_tree
from agent_core.ports import Git
from agent_core.repository import Repository

FETCH_SECONDS = 5.0
_FRESH_HOURS = 24


@frozen
class Base:
    """`commit` is None where it is HEAD. `note` says what people must know of it: commits that it lacks, files that
    are not in it."""

    commit: str | None = None
    note: str | None = None


async def choose(
    git: Git, repository: Repository, kind: BaseKind, unsaved: Mapping[Path, bytes], *, may_fetch: bool
) -> Base:
    """`unsaved` are texts of editors by real path. WorktreeFailed says what git could not do."""
    match kind:
        case "head":
            return Base()
        case "snapshot":
            return await _snapshot(git, repository, unsaved)
        case "fresh":
            return await _fresh(git, repository, may_fetch)


async def _snapshot(git: Git, repository: Repository, unsaved: Mapping[Path, bytes]) -> Base:
    top = repository.toplevel
    assert top is not None
    texts = {str(path.relative_to(top)): data for path, data in unsaved.items() if _belongs(path, top, repository)}
    instead = {path: Replaced(data) for path, data in (await _not_ignored(git, top, texts)).items()}
    taken = await checkout_tree(git, top, repository.git_dir, instead=instead)
    note = f"not in it, since they are repositories of their own: {', '.join(taken.left_out)}"
    head = await _commit(git, top, "HEAD")
    if head is not None and await git.run(top, "rev-parse", f"{head}^{{tree}}") == f"{taken.tree}\n".encode():
        return Base(None, note if taken.left_out else None)
    parents = [head] if head is not None else []
    commit = await commit_tree(git, top, taken.tree, parents, "agent-ls: the checkout with what is not committed")
    return Base(commit, note if taken.left_out else None)


def _belongs(path: Path, top: Path, repository: Repository) -> bool:
    return path.is_relative_to(top) and not path.is_relative_to(repository.git_dir)


async def _not_ignored(git: Git, top: Path, texts: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """An unsaved text of a file that git ignores is ignored as the file is."""
    if not texts:
        return texts
    listing = b"".join(os.fsencode(path) + b"\0" for path in texts)
    ignored = await git.run(top, "check-ignore", "-z", "--stdin", stdin=listing, ok=(0, 1))
    names = {os.fsdecode(name) for name in ignored.split(b"\0")}
    return {path: data for path, data in texts.items() if path not in names}


async def _fresh(git: Git, repository: Repository, may_fetch: bool) -> Base:
    top = repository.toplevel
    assert top is not None
    remote = await _remote(git, top)
    if remote is None:
        return Base(None, "there is no remote to start from, so it starts from HEAD")
    trouble = await _fetched(git, repository, remote) if may_fetch else "the folder is not trusted"
    commit = await _commit(git, top, f"refs/remotes/{remote}/HEAD")
    if commit is None:
        fix = f"run `git remote set-head {remote} --auto`"
        return Base(None, f"the default branch of {remote} is not known, so it starts from HEAD; {fix}")
    notes = [f"{remote} was not fetched: {trouble}"] if trouble else []
    notes += await _lacking(git, top, commit, f"the default branch of {remote}")
    return Base(commit, "; ".join(notes) or None)


async def _remote(git: Git, top: Path) -> str | None:
    names = (await git.run(top, "remote")).decode(errors="surrogateescape").split("\n")[:-1]
    return "origin" if "origin" in names else names[0] if len(names) == 1 else None


async def _fetched(git: Git, repository: Repository, remote: str) -> str | None:
    """None when its state is at most a day old, else why it is not."""
    if await to_thread.run_sync(_was_fetched, repository.common_dir / "FETCH_HEAD"):
        return None
    try:
        with anyio.fail_after(FETCH_SECONDS):
            await git.run(repository.common_dir, "fetch", "--quiet", "--no-recurse-submodules", "--", remote)
    except TimeoutError:
        return f"it did not answer within {FETCH_SECONDS:g} s"
    except GitFailed as error:
        return str(error).splitlines()[0]
    return None


def _was_fetched(head: Path) -> bool:
    try:
        return time.time() - head.stat().st_mtime < _FRESH_HOURS * 3600
    except OSError:
        return False


async def _commit(git: Git, top: Path, name: str) -> str | None:
    found = await git.run(top, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", ok=(0, 1))
    return found.decode().strip() or None


async def _lacking(git: Git, top: Path, commit: str, name: str) -> list[str]:
    """A base that lacks commits of the session is said, since a merge of it could take them back (C8)."""
    head = await _commit(git, top, "HEAD")
    if head is None:
        return []
    counted = (await git.run(top, "rev-list", "--count", f"{commit}..{head}")).decode().strip()
    return [f"{name} lacks {counted} commits of HEAD ({head[:12]})"] if counted != "0" else []

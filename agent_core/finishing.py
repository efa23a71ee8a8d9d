"""The end of a review in git's own terms: an agent's work as its branch, as one commit, or merged (agent/finish).

What was rejected in the review is left out. Conflicts are told before anything is made. Nothing of the user's is
overwritten: refs move only from what they were seen at, and a merge is git's own, which refuses where local changes
would be lost. Hooks of the repository do not run, and nothing is signed.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal

from attrs import frozen

from agent_core.checkout_tree import Replaced, checkout_tree
from agent_core.definitions import BaseKind
from agent_core.errors import GitFailed, InvalidParams, NotAllowed, NotReviewable, ReviewConflict
from agent_core.furnishing import made
from agent_core.git_objects import IDENTITY, commit_tree
from agent_core.ports import Git
from agent_core.repository import Repository, at_once, find_repository
from agent_core.review import SUBMODULE, FileInput, Side, Target
from agent_core.review_parts import review_file
from agent_core.snapshot import Snapshot, TreeChange, blobs, changes
from agent_core.worktree import Worktree

FinishAs = Literal["commit", "branch", "merge"]


@frozen
class FinishConflict:
    path: str
    reason: str


@frozen
class Finished:
    """With `conflicts` nothing was made."""

    commit: str | None = None
    branch: str | None = None
    conflicts: tuple[FinishConflict, ...] = ()


@frozen
class Finishing:
    """What is finished, and how. `branch` None: the obvious one. `unsaved` are real paths of texts that an editor holds
    and has not saved."""

    worktree: Worktree
    snapshot: Snapshot
    base: BaseKind
    rejected: Mapping[str, Collection[str]]
    message: str
    branch: str | None = None
    unsaved: Collection[Path] = ()


async def finish(git: Git, how: FinishAs, given: Finishing) -> Finished:
    """NotReviewable when there is nothing to finish, InvalidParams for a branch that cannot be used, NotAllowed where
    the user's checkout is in the way, GitFailed for what git refuses."""
    match how:
        case "branch":
            return await _as_branch(git, given)
        case "commit":
            return await _as_commit(git, given)
        case "merge":
            return await _as_merge(git, given)


async def _as_branch(git: Git, given: Finishing) -> Finished:
    """The agent's own history, with what it had not committed on top."""
    commit, own = await _tip(git, given), given.worktree
    name = given.branch or own.branch
    await _check_name(git, own, name)
    if name == own.branch:
        await _advance(git, own, commit)
    else:
        await _new_branch(git, own, name, commit)
    return Finished(commit, name)


async def _as_commit(git: Git, given: Finishing) -> Finished:
    """One commit with all that the agent changed, on a branch that starts at the user's HEAD, or goes on."""
    own = given.worktree
    name = given.branch or f"{own.branch}-commit"
    await _check_name(git, own, name)
    repository = await find_repository(git, own.repository)
    before = await _commit_of(git, own, f"refs/heads/{name}")
    if before is not None:
        await _refuse_checked_out(git, own, name)
    start = before or await _head(repository)
    tree, conflicts = await _three_way(git, own, start, await _tree(git, given))
    if conflicts:
        return Finished(conflicts=conflicts)
    commit = await _commit(git, own, tree, [start], given.message)
    await git.run(own.common_dir, "update-ref", f"refs/heads/{name}", commit, before or "0" * len(commit))
    return Finished(commit, name)


async def _as_merge(git: Git, given: Finishing) -> Finished:
    """Into the branch that the user's checkout is on."""
    own = given.worktree
    if given.branch is not None:
        raise InvalidParams("branch", "a merge goes into the branch that is checked out; leave branch out")
    repository = await find_repository(git, own.repository)
    head = await _head(repository)
    if repository.branch is None:
        raise NotAllowed(f"as: HEAD of {own.repository} is detached; switch to a branch, or finish as `commit`")
    theirs, conflicts = await _to_merge(git, given, head)
    if not conflicts and theirs is not None:
        tree, conflicts = await _merged(git, own, head, theirs)
        conflicts = conflicts or await _unsaved(git, given, head, tree)
    if conflicts or theirs is None:
        return Finished(conflicts=conflicts)
    merge = ("merge", "--no-ff", "--no-edit", "--no-gpg-sign", "--quiet", "-m", given.message, theirs)
    try:
        await git.run(own.repository, *merge, env=await _identity(git, own) or IDENTITY)
    except GitFailed as error:
        await _give_up(git, repository)
        raise ReviewConflict(f"git did not merge, and nothing was changed: {error}") from None
    return Finished(await _commit_of(git, own, f"refs/heads/{repository.branch}"), repository.branch)


async def _give_up(git: Git, repository: Repository) -> None:
    """A merge that began and failed, which was not there before: `_head` had refused it."""
    if (repository.git_dir / "MERGE_HEAD").exists() and repository.toplevel is not None:
        await git.run(repository.toplevel, "merge", "--abort", ok=range(256))


async def _to_merge(git: Git, given: Finishing, head: str) -> tuple[str | None, tuple[FinishConflict, ...]]:
    """The agent's history; from a snapshot, whose base is no commit of the user's, one commit on what that had for its
    parent."""
    own = given.worktree
    if given.base != "snapshot" or await _is_in(git, own, own.base_commit, head):
        return await _tip(git, given), ()
    start = await _commit_of(git, own, f"{own.base_commit}^")
    if start is None:
        raise NotAllowed("as: the agent started where there was no commit yet; finish as `commit`")
    tree, conflicts = await _three_way(git, own, start, await _tree(git, given))
    return (None if conflicts else await _commit(git, own, tree, [start], given.message)), conflicts


# What the agent made


async def _tip(git: Git, given: Finishing) -> str:
    """Its HEAD, or a commit on that with what it had not committed, and without what was rejected."""
    own = given.worktree
    tree, env = await _tree(git, given), own.environment()
    head, held = (await git.run(own.path, "rev-parse", "HEAD", "HEAD^{tree}", env=env)).decode().split()
    return head if tree == held else await _commit(git, own, tree, [head], given.message)


async def _tree(git: Git, given: Finishing) -> str:
    own = given.worktree
    instead = await _without_rejected(git, given)
    ours = made(own).unchanged(own.path)
    taken = await checkout_tree(git, own.path, own.git_dir, env=own.environment(), instead=instead, without=ours)
    base = (await git.run(own.common_dir, "rev-parse", f"{own.base_commit}^{{tree}}")).decode().strip()
    if taken.tree == base:
        raise NotReviewable("there is nothing to finish: the agent changed nothing, or everything was rejected")
    return taken.tree


async def _without_rejected(git: Git, given: Finishing) -> dict[str, Replaced]:
    """The files of which something was rejected, as they are with the rest."""
    found = [change for change in await changes(git, given.worktree, given.snapshot) if given.rejected.get(change.path)]
    data = await blobs(git, given.worktree, found)
    instead: dict[str, Replaced] = {}
    for change in found:
        instead |= _accepted(change, data, given.rejected[change.path])
    return instead


def _accepted(change: TreeChange, data: Mapping[str, bytes], rejected: Collection[str]) -> dict[str, Replaced]:
    if SUBMODULE in (change.old_mode, change.new_mode):
        return {change.path: Replaced(None, change.old_mode, change.old_blob)}
    old = Side(change.old_mode, data.get(change.old_blob) if change.old_blob else None)
    new = Side(change.new_mode, data.get(change.new_blob) if change.new_blob else None)
    given = FileInput(change.path, change.old_path, change.status, old, new, Target(old.mode, old.data))
    review = review_file(given)
    outcome = review.apply([hunk.id for hunk in review.change.hunks if hunk.id not in rejected])
    assert not isinstance(outcome.after, str)
    whole = "content" in {part.kind for part in review.parts if part.hunk.id not in rejected}
    mode = new.mode if whole else _mode(outcome.executable, old.mode if old.data is not None else new.mode)
    away = {path: Replaced(None) for path in (change.path, change.old_path) if path not in (None, outcome.path)}
    return {**{path: each for path, each in away.items() if path}, outcome.path: Replaced(outcome.after, mode)}


def _mode(executable: bool | None, before: str) -> str:
    return before if executable is None else "100755" if executable else "100644"


# Git


async def _three_way(git: Git, own: Worktree, ours: str, tree: str) -> tuple[str, tuple[FinishConflict, ...]]:
    """What changed from the base to `tree`, made in `ours`. Commits of our own say what the common base is, since git
    takes none before 2.40."""
    base = await _bare(git, own, own.base_commit, [])
    mine = await _bare(git, own, ours, [base])
    theirs = await _bare(git, own, tree, [base])
    return await _merged(git, own, mine, theirs)


async def _bare(git: Git, own: Worktree, of: str, parents: list[str]) -> str:
    return await commit_tree(git, own.common_dir, f"{of}^{{tree}}", parents, "agent-ls: one side of a merge")


async def _merged(git: Git, own: Worktree, ours: str, theirs: str) -> tuple[str, tuple[FinishConflict, ...]]:
    """The tree, and the files in which both sides changed the same. Needs git 2.38."""
    command = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs)
    output = await git.run(own.common_dir, *command, ok=(0, 1))
    tree, *paths = output.split(b"\0")
    names = sorted({os.fsdecode(path) for path in paths if path})
    return tree.decode(), tuple(FinishConflict(name, "you and the agent changed the same lines") for name in names)


async def _unsaved(git: Git, given: Finishing, head: str, tree: str) -> tuple[FinishConflict, ...]:
    """Files that a merge would write below an editor that holds another text."""
    diff = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", head, tree, "--")
    names = (await git.run(given.worktree.common_dir, *diff)).split(b"\0")
    top = given.worktree.repository
    open_files = [name for name in map(os.fsdecode, names) if name and top / name in given.unsaved]
    return tuple(FinishConflict(name, "it is not saved in the editor; save it first") for name in open_files)


async def _head(repository: Repository) -> str:
    if repository.head is None:
        raise NotAllowed(f"as: {repository.toplevel} has no commit yet; finish as `branch`, or commit something")
    if (repository.git_dir / "MERGE_HEAD").exists():
        raise NotAllowed(f"as: a merge is under way in {repository.toplevel}; end it first")
    return repository.head


async def _check_name(git: Git, own: Worktree, name: str) -> None:
    checked = await git.run(own.common_dir, "check-ref-format", "--branch", name, ok=range(256))
    if name.startswith("-") or checked.decode(errors="surrogateescape").rstrip("\n") != name:
        raise InvalidParams("branch", f"{name!r} cannot be the name of a branch")


async def _advance(git: Git, own: Worktree, commit: str) -> None:
    """The agent's branch, and the index of its worktree; the files there stay as they are."""
    env = own.environment()
    on, head = await at_once(git, own.path, ("symbolic-ref", "--quiet", "HEAD"), ("rev-parse", "HEAD"))
    if on.decode().strip() != f"refs/heads/{own.branch}":
        raise NotAllowed(f"branch: the worktree {own.path} is not on {own.branch} any more; name another branch")
    if commit != head.decode().strip():
        await git.run(own.common_dir, "update-ref", f"refs/heads/{own.branch}", commit, head.decode().strip())
        await git.run(own.path, "reset", "--mixed", "--quiet", env=env, ok=(0, 1))


async def _new_branch(git: Git, own: Worktree, name: str, commit: str) -> None:
    if await _commit_of(git, own, f"refs/heads/{name}") is not None:
        raise InvalidParams("branch", f"there is a branch {name!r} already; name another one")
    await git.run(own.common_dir, "update-ref", f"refs/heads/{name}", commit, "0" * len(commit))


async def _refuse_checked_out(git: Git, own: Worktree, name: str) -> None:
    listed = await git.run(own.common_dir, "worktree", "list", "--porcelain")
    if f"branch refs/heads/{name}\n".encode(errors="surrogateescape") in listed:
        raise InvalidParams("branch", f"{name!r} is checked out; finish as `merge`, or name another branch")


async def _is_in(git: Git, own: Worktree, commit: str, other: str) -> bool:
    counted = await git.run(own.common_dir, "rev-list", "--count", "--max-count=1", commit, f"^{other}")
    return counted.strip() == b"0"


async def _commit_of(git: Git, own: Worktree, name: str) -> str | None:
    found = await git.run(own.common_dir, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", ok=(0, 1))
    return found.decode().strip() or None


async def _commit(git: Git, own: Worktree, tree: str, parents: list[str], message: str) -> str:
    return await commit_tree(git, own.common_dir, tree, parents, message, await _identity(git, own))


async def _identity(git: Git, own: Worktree) -> Mapping[str, str] | None:
    """The user's, when git knows it, else None."""
    known = await git.run(own.common_dir, "var", "GIT_COMMITTER_IDENT", ok=(0, 128))
    return {} if known.strip() else None

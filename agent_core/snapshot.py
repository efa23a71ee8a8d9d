"""What an agent changed, frozen as git trees of real bytes.

Both trees hold the bytes as they lie in a checkout, not git's normalised form: the base as a checkout of it with its
own attributes writes it, the agent's files as they are. So line-end conversion, `ident`, working-tree encodings and LFS
change nothing in a review, and what is applied is what the agent's files hold.

What an agent can write never runs. Commands come from git's configuration only, which it cannot write (WT-2), and the
repository is named by GIT_DIR, never found through the worktree's `.git`, which it can. Its .gitattributes can at most
select a clean filter that the user configured, which git runs on a file written in the same moment as the index, to see
whether it differs; the outcome never gets into a tree. The base passes through the smudge filters that its own
attributes select, as in any checkout.

The worktree's index is read, never written. Ignored untracked files are left out.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from anyio import to_thread
from attrs import frozen

from agent_core.errors import GitFailed
from agent_core.git_objects import TreeEntry, commit_tree, read_blobs, update_index, write_tree
from agent_core.ports import Git
from agent_core.repository import side_by_side
from agent_core.review import SUBMODULE, ChangeStatus
from agent_core.snapshot_files import agent_entries, candidates, smudged
from agent_core.worktree import Worktree

_STATUS: Mapping[str, ChangeStatus] = {
    "A": "added", "M": "modified", "D": "deleted", "R": "renamed", "C": "copied", "T": "typechange"
}  # fmt: skip


@frozen
class Snapshot:
    """`base` and `tree` are tree ids. `commit` holds `tree`, and has one of `base` and the snapshot before among its
    ancestors, so that nothing of a review is collected while its ref stands. `skipped` are paths that no tree can
    hold: repositories inside the worktree, unreadable files.
    """

    base: str
    tree: str
    commit: str
    base_commit: str
    skipped: tuple[str, ...] = ()


@frozen
class TreeChange:
    """`old_path` is None unless renamed. Modes are git's octal text; mode 000000 and blob None mean absent."""

    path: str
    old_path: str | None
    status: ChangeStatus
    old_mode: str
    new_mode: str
    old_blob: str | None
    new_blob: str | None


def review_ref(agent_id: str) -> str:
    return f"refs/agent-ls/review/{agent_id}"


async def take(git: Git, worktree: Worktree, agent_id: str) -> Snapshot:
    """Freeze the worktree as it is now, while the agent may go on, and anchor it under `review_ref`.

    WorktreeFailed when the worktree is gone or git fails.
    """
    env = await to_thread.run_sync(worktree.environment)
    found = await candidates(git, worktree, env)
    # in the worktree's own git folder: same disk, private, and gone with the worktree after a crash
    with tempfile.TemporaryDirectory(prefix="agent-ls-", dir=worktree.git_dir) as folder:
        stage = Path(folder)
        index = {**env, "GIT_INDEX_FILE": str(stage / "index")}
        base = ""
        entries: list[TreeEntry] = []
        skipped: list[str] = []

        async def freeze_base() -> None:
            nonlocal base
            await _begin_index(git, worktree, env, stage / "index")
            if converted := await smudged(git, stage, found.base, index):
                await update_index(git, stage, converted, index)
            base = await write_tree(git, stage, index)

        async def freeze_agent() -> None:
            nonlocal entries, skipped
            entries, skipped = await agent_entries(git, worktree, list(found.paths), stage, found.base, env)

        await side_by_side(freeze_base, freeze_agent)
        await update_index(git, stage, entries, index)
        if found.submodules:  # git reads their HEAD itself, without running anything in them
            listing = b"".join(os.fsencode(path) + b"\0" for path in found.submodules)
            await git.run(worktree.path, "update-index", "--add", "--remove", "-z", "--stdin", env=index, stdin=listing)
        tree = await write_tree(git, stage, index)
    commit = await _anchor(git, worktree, agent_id, base, tree)
    return Snapshot(base, tree, commit, worktree.base_commit, tuple(sorted(skipped)))


async def _begin_index(git: Git, worktree: Worktree, env: Mapping[str, str], index: Path) -> None:
    """One of the base. A copy of the worktree's own, where nothing is staged in that, knows its trees already."""
    unstaged = ("diff-index", "--cached", "--quiet", "--ignore-submodules=none", worktree.base_commit, "--")
    try:
        await git.run(worktree.path, *unstaged, env=env)
        await to_thread.run_sync(shutil.copyfile, worktree.git_dir / "index", index)
    except (GitFailed, OSError):
        await git.run(worktree.path, "read-tree", worktree.base_commit, env={**env, "GIT_INDEX_FILE": str(index)})


async def _anchor(git: Git, worktree: Worktree, agent_id: str, base: str, tree: str) -> str:
    """Keeps earlier snapshots as ancestors: a review that is still open somewhere goes on working."""
    cwd, ref = worktree.common_dir, review_ref(agent_id)
    before = (await git.run(cwd, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", ok=(0, 1))).decode().strip()
    if before:
        same = (await git.run(cwd, "rev-parse", f"{before}^{{tree}}", f"{before}^1^{{tree}}")).decode().split()
        if same == [tree, base]:
            return before
    root = await commit_tree(git, cwd, base, [worktree.base_commit], "agent-ls: base of a review")
    parents = [root, before] if before else [root]
    commit = await commit_tree(git, cwd, tree, parents, f"agent-ls: what agent {agent_id} changed")
    await git.run(cwd, "update-ref", ref, commit, before or "0" * len(commit))
    return commit


async def changes(git: Git, worktree: Worktree, snapshot: Snapshot) -> tuple[TreeChange, ...]:
    """The files that differ, renames found by similarity, in git's order."""
    command = ("diff-tree", "-r", "-M", "--raw", "-z", "--no-abbrev", "--no-ext-diff", "--no-textconv")
    output = await git.run(worktree.common_dir, *command, snapshot.base, snapshot.tree, "--")
    words = iter(output.split(b"\0"))
    return tuple(_change(info.decode(), words) for info in words if info)


def _change(info: str, words: Iterable[bytes]) -> TreeChange:
    old_mode, new_mode, old_blob, new_blob, letter = info.removeprefix(":").split()
    names = iter(words)
    first = os.fsdecode(next(names))
    path, old_path = (os.fsdecode(next(names)), first) if letter[0] in "RC" else (first, None)
    status: ChangeStatus = "mode" if letter == "M" and old_blob == new_blob else _STATUS[letter[0]]
    return TreeChange(path, old_path, status, old_mode, new_mode, _present(old_blob), _present(new_blob))


def _present(oid: str) -> str | None:
    return oid if oid.strip("0") else None


async def blobs(git: Git, worktree: Worktree, wanted: Iterable[TreeChange]) -> dict[str, bytes]:
    """Contents by blob id of both sides of `wanted`, submodules left out."""
    sides = [
        side for change in wanted for side in ((change.old_mode, change.old_blob), (change.new_mode, change.new_blob))
    ]
    return await read_blobs(git, worktree.common_dir, [oid for mode, oid in sides if oid and mode != SUBMODULE])


async def blob(git: Git, worktree: Worktree, oid: str) -> bytes:
    return (await read_blobs(git, worktree.common_dir, [oid]))[oid]

"""What an apply is about to replace, kept under a git ref of its own first (WT-4)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence

from agent_core.errors import GitFailed, WorktreeFailed
from agent_core.git_objects import TreeEntry, commit_tree, store, tree_of
from agent_core.ports import Git
from agent_core.review import ABSENT, EXECUTABLE, FILE, LINK, Content, Outcome
from agent_core.snapshot import Snapshot
from agent_core.worktree import Worktree

_TRIES = 20


def recover_refs(agent_id: str) -> str:
    return f"refs/agent-ls/recover/{agent_id}"


async def save(git: Git, worktree: Worktree, snapshot: Snapshot, agent_id: str, outcomes: Sequence[Outcome]) -> str:
    """The new ref `refs/agent-ls/recover/<agent>/<n>`. Its tree holds the files at their paths as they were, unsaved
    buffer text as UTF-8. Its message is one line for people, then JSON: `absent` (paths that did not exist), `buffers`
    (paths whose text came from an open buffer) and `after` (path -> SHA-256 of what is written, null for a deletion).
    The reviewed snapshot is its parent. GitFailed when git cannot keep it.
    """
    present = [(outcome, _bytes(outcome.before)) for outcome in outcomes if outcome.before is not None]
    oids = await store(git, worktree.common_dir, [data for _, data in present])
    entries = [TreeEntry(outcome.source, _mode(outcome), oid) for (outcome, _), oid in zip(present, oids, strict=True)]
    tree = await tree_of(git, worktree.common_dir, entries)
    commit = await commit_tree(git, worktree.common_dir, tree, [snapshot.commit], _message(agent_id, outcomes))
    return await _keep(git, worktree, agent_id, commit)


async def narrow(git: Git, worktree: Worktree, agent_id: str, ref: str, written: Sequence[Outcome]) -> None:
    """Some files could not be written: from now on the record names the others only. All texts stay readable."""
    found = await git.run(worktree.common_dir, "rev-parse", ref, f"{ref}^{{tree}}", f"{ref}^")
    commit, tree, snapshot = os.fsdecode(found).split()
    narrowed = await commit_tree(git, worktree.common_dir, tree, [snapshot], _message(agent_id, written))
    await git.run(worktree.common_dir, "update-ref", ref, narrowed, commit)


async def save_discard(
    git: Git, worktree: Worktree, snapshot: Snapshot, agent_id: str, discarded: Mapping[str, Sequence[str]]
) -> str:
    """A ref as above for hunks that were rejected: its tree is the agent's version of everything, its message names
    them as `discarded` (path -> ids)."""
    record = json.dumps({"discarded": {path: list(ids) for path, ids in discarded.items()}})
    message = f"agent-ls: discarded changes of agent {agent_id}\n\n{record}\n"
    commit = await commit_tree(git, worktree.common_dir, snapshot.tree, [snapshot.commit], message)
    return await _keep(git, worktree, agent_id, commit)


def _message(agent_id: str, outcomes: Sequence[Outcome]) -> str:
    return f"agent-ls: before applying changes of agent {agent_id}\n\n{json.dumps(_record(outcomes))}\n"


def _bytes(content: Content) -> bytes:
    return content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content or b""


def _mode(outcome: Outcome) -> str:
    if outcome.mode == ABSENT:  # a new buffer that was never saved
        return FILE
    return outcome.mode if outcome.mode in (EXECUTABLE, LINK) else FILE


def _record(outcomes: Sequence[Outcome]) -> dict[str, object]:
    after: dict[str, str | None] = {}
    for outcome in outcomes:
        after[outcome.source] = None
        after[outcome.path] = None if outcome.after is None else hashlib.sha256(_bytes(outcome.after)).hexdigest()
    moved = [outcome.path for outcome in outcomes if outcome.path != outcome.source]
    return {
        "absent": [outcome.source for outcome in outcomes if outcome.before is None] + moved,
        "buffers": [outcome.source for outcome in outcomes if isinstance(outcome.before, str)],
        "after": after,
    }


async def _keep(git: Git, worktree: Worktree, agent_id: str, commit: str) -> str:
    prefix = recover_refs(agent_id)
    listed = await git.run(worktree.common_dir, "for-each-ref", "--format=%(refname)", f"{prefix}/")
    numbers = [int(name) for line in os.fsdecode(listed).split() if (name := line.rpartition("/")[2]).isdigit()]
    first = max(numbers, default=0) + 1
    for number in range(first, first + _TRIES):
        try:
            await git.run(worktree.common_dir, "update-ref", f"{prefix}/{number}", commit, "0" * len(commit))
        except GitFailed:
            continue  # another process was faster
        return f"{prefix}/{number}"
    raise WorktreeFailed(f"no ref could be made under {prefix}; nothing was applied")

"""The reviews of a process: which snapshot of each agent a person has seen, so that exactly that is applied."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import anyio
from attrs import define, field

from agent_core import applying
from agent_core.applying import Applied, Selection
from agent_core.errors import GitFailed, UnknownAgent
from agent_core.ports import Git, ReviewTarget
from agent_core.review import Review
from agent_core.snapshot import Snapshot, take
from agent_core.worktree import Worktree


@define(eq=False)
class Reviews:
    """One operation at a time per repository: two applies must not overwrite each other's files."""

    git: Git
    target: ReviewTarget
    _seen: dict[str, Snapshot] = field(factory=dict)
    _locks: dict[Path, anyio.Lock] = field(factory=lambda: defaultdict(anyio.Lock))

    async def review(self, agent_id: str, worktree: Worktree) -> Review:
        """Freezes what the agent has changed so far; `apply` works on this until the next review."""
        async with self._locks[worktree.repository]:
            snapshot = await take(self.git, worktree, agent_id)
            self._seen[agent_id] = snapshot
            return await applying.review(self.git, worktree, snapshot, self.target, agent_id)

    async def apply(
        self, agent_id: str, worktree: Worktree, selection: Sequence[Selection] | None, dry_run: bool
    ) -> Applied:
        async with self._locks[worktree.repository]:
            snapshot = await self._snapshot(agent_id, worktree)
            return await applying.apply(self.git, worktree, snapshot, self.target, agent_id, selection, dry_run=dry_run)

    async def content(self, agent_id: str, worktree: Worktree, side: Literal["base", "worktree"], path: str) -> bytes:
        """A file as the review shows it; empty where that side has none."""
        snapshot = await self._snapshot(agent_id, worktree)
        tree = snapshot.base if side == "base" else snapshot.tree
        try:
            return await self.git.run(worktree.repository, "cat-file", "blob", f"{tree}:{path}")
        except GitFailed as error:
            listed = await self.git.run(worktree.repository, "ls-tree", "--name-only", "-z", tree, "--", path)
            if listed:
                raise UnknownAgent(f"{path!r} of agent {agent_id} is no file") from error
            return b""

    async def _snapshot(self, agent_id: str, worktree: Worktree) -> Snapshot:
        if agent_id not in self._seen:
            self._seen[agent_id] = await take(self.git, worktree, agent_id)
        return self._seen[agent_id]

"""The reviews of a process: which snapshot of each agent a person has seen, so that exactly that is decided on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import anyio
from attrs import define, evolve, field, frozen

from agent_core import applying
from agent_core.applying import Applied, AppliedFile, Selection
from agent_core.decisions import Decisions, read_decisions, write_decisions
from agent_core.definitions import BaseKind
from agent_core.errors import GitFailed, NotReviewable, UnknownAgent
from agent_core.finishing import FinishAs, Finished, Finishing, finish
from agent_core.ports import Git, ReviewTarget
from agent_core.recovery import save_discard
from agent_core.restoring import Restored, restore
from agent_core.review import FileChange, Review
from agent_core.review_plans import named
from agent_core.snapshot import Snapshot, take
from agent_core.worktree import Worktree

Round = Literal["all", "new"]


@frozen
class Subject:
    """What is reviewed: an agent's worktree, and the file in which decisions about it are kept."""

    agent_id: str
    worktree: Worktree
    decisions: Path


@define(eq=False)
class Reviews:
    """One operation at a time per repository: two applies must not overwrite each other's files."""

    git: Git
    target: ReviewTarget
    _seen: dict[str, Snapshot] = field(factory=dict)
    _locks: dict[Path, anyio.Lock] = field(factory=lambda: defaultdict(anyio.Lock))

    async def review(self, subject: Subject, round: Round) -> Review:
        """Freezes what the agent has changed so far; what follows works on this until the next review."""
        async with self._working(subject) as decisions:
            taken = await take(self.git, subject.worktree, subject.agent_id)
            if round == "new" and decisions.baseline is not None:
                taken = evolve(taken, base=decisions.baseline)
            self._seen[subject.agent_id] = taken
            return await self._review(subject, taken, decisions)

    async def apply(self, subject: Subject, selection: Sequence[Selection] | None, dry_run: bool) -> Applied:
        async with self._working(subject) as decisions:
            snapshot = await self._snapshot(subject)
            tree, agent, rejected = subject.worktree, subject.agent_id, decisions.rejected
            return await applying.apply(
                self.git, tree, snapshot, self.target, agent, selection, dry_run=dry_run, rejected=rejected
            )

    async def discard(
        self, subject: Subject, selection: Sequence[Selection] | None
    ) -> tuple[tuple[AppliedFile, ...], str]:
        """Reject open hunks; (what was rejected, the ref under which it stays readable). NotReviewable when none is."""
        async with self._working(subject) as decisions:
            snapshot = await self._snapshot(subject)
            review = await self._review(subject, snapshot, decisions)
            chosen = [AppliedFile(path, hunks) for path, hunks in _open_hunks(review, selection) if hunks]
            if not chosen:
                raise NotReviewable("nothing was discarded: none of these changes is open")
            named = {file.path: file.hunks for file in chosen}
            ref = await save_discard(self.git, subject.worktree, snapshot, subject.agent_id, named)
            for path, hunks in named.items():
                decisions = decisions.reject(path, hunks)
            write_decisions(subject.decisions, decisions)
            return tuple(chosen), ref

    async def restore(self, subject: Subject, ref: str, paths: Sequence[str] | None) -> Restored:
        async with self._working(subject) as decisions:
            restored = await restore(self.git, subject.worktree, self.target, subject.agent_id, ref, paths)
            for path, hunks in restored.discarded.items():
                decisions = decisions.take_back(path, hunks)
            write_decisions(subject.decisions, decisions)
            return restored

    async def end_round(self, subject: Subject) -> None:
        """What was seen so far is the baseline of the next `new` round."""
        async with self._working(subject) as decisions:
            snapshot = await self._snapshot(subject)
            write_decisions(subject.decisions, evolve(decisions, baseline=snapshot.tree))

    async def finish(
        self,
        subject: Subject,
        how: FinishAs,
        base: BaseKind,
        message: str,
        branch: str | None,
        unsaved: Collection[Path],
    ) -> Finished:
        """What the agent has made by now, without what was rejected (`finishing`)."""
        async with self._working(subject) as decisions:
            snapshot = await take(self.git, subject.worktree, subject.agent_id)
            rejected = decisions.rejected
            given = Finishing(subject.worktree, snapshot, base, rejected, message, branch, unsaved)
            return await finish(self.git, how, given)

    async def content(self, subject: Subject, side: Literal["base", "worktree"], path: str) -> bytes:
        """A file as the review shows it; empty where that side has none."""
        snapshot = await self._snapshot(subject)
        tree, repository = snapshot.base if side == "base" else snapshot.tree, subject.worktree.repository
        try:
            return await self.git.run(repository, "cat-file", "blob", f"{tree}:{path}")
        except GitFailed as error:
            if await self.git.run(repository, "ls-tree", "--name-only", "-z", tree, "--", path):
                raise UnknownAgent(f"{path!r} of agent {subject.agent_id} is no file") from error
            return b""

    @asynccontextmanager
    async def _working(self, subject: Subject) -> AsyncIterator[Decisions]:
        async with self._locks[subject.worktree.repository]:
            yield read_decisions(subject.decisions)

    async def _review(self, subject: Subject, snapshot: Snapshot, decisions: Decisions) -> Review:
        tree, agent = subject.worktree, subject.agent_id
        return await applying.review(self.git, tree, snapshot, self.target, agent, decisions.rejected)

    async def _snapshot(self, subject: Subject) -> Snapshot:
        if subject.agent_id not in self._seen:
            self._seen[subject.agent_id] = await take(self.git, subject.worktree, subject.agent_id)
        return self._seen[subject.agent_id]


def _open_hunks(review: Review, selection: Sequence[Selection] | None) -> list[tuple[str, tuple[str, ...]]]:
    """Open hunks of the selection, conflicting ones too: what cannot be applied can still be rejected."""
    paths = named(file.path for file in review.files)
    chosen = {paths.get(each.path): each.hunks for each in selection} if selection is not None else None
    files = [file for file in review.files if chosen is None or file.path in chosen]
    return [(file.path, _chosen(file, chosen.get(file.path) if chosen else None)) for file in files]


def _chosen(file: FileChange, hunks: tuple[str, ...] | None) -> tuple[str, ...]:
    wanted: Callable[[str], bool] = (lambda each: True) if hunks is None else (lambda each: each in hunks)
    return tuple(hunk.id for hunk in file.hunks if hunk.state == "open" and wanted(hunk.id))

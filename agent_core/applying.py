"""From a snapshot to the user's files: review against them as they are, then apply what was chosen.

What is applied comes from the snapshot, so it is what was reviewed even if the agent has gone on. What is reported as
applied was read back. Before the first byte is written, everything that will be replaced is kept under a git ref.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from anyio import to_thread
from attrs import evolve, frozen

from agent_core.disk_target import replace_link, set_executable
from agent_core.errors import GitFailed, ReviewConflict, UserError
from agent_core.ports import Git, ReviewTarget
from agent_core.recovery import narrow, save
from agent_core.restoring import restore
from agent_core.review import ABSENT, LINK, OTHER, FileInput, FileReview, Outcome, Review, Side, Target
from agent_core.review_parts import review_file
from agent_core.review_plans import Conflict, Plan, Selection, plans_of
from agent_core.review_targets import Found, blocked, holds_only, present, remove_empty_folder, survey
from agent_core.snapshot import Snapshot, TreeChange, blobs, changes
from agent_core.worktree import Worktree

__all__ = ["Applied", "AppliedFile", "Conflict", "Selection", "apply", "review"]


@frozen
class AppliedFile:
    path: str
    hunks: tuple[str, ...]


@frozen
class Applied:
    """`applied` is what the user's files now hold, hunks that they held before included. `failure` says why nothing was
    written at all, or why not everything and what stayed. `planned` is filled in a dry run only."""

    applied: tuple[AppliedFile, ...]
    conflicts: tuple[Conflict, ...]
    failure: str | None
    remaining: int
    recover_ref: str | None
    planned: tuple[Outcome, ...] = ()


async def review(
    git: Git,
    worktree: Worktree,
    snapshot: Snapshot,
    target: ReviewTarget,
    agent_id: str,
    rejected: Mapping[str, Collection[str]] | None = None,
) -> Review:
    """The snapshot against the user's files as they are now. `rejected`: ids of hunks by path."""
    files = await _reviews(git, worktree, snapshot, target, rejected or {})
    changed = tuple(file.change for file in files)
    branch, path = worktree.branch, worktree.path
    return Review(agent_id, snapshot.base_commit, branch, path, snapshot.commit, changed, snapshot.skipped)


async def apply(
    git: Git,
    worktree: Worktree,
    snapshot: Snapshot,
    target: ReviewTarget,
    agent_id: str,
    selection: Sequence[Selection] | None,
    *,
    dry_run: bool = False,
    rejected: Mapping[str, Collection[str]] | None = None,
) -> Applied:
    """Make the chosen hunks (None: all) in the user's files, or none of them: what can be known beforehand is a
    conflict and left out; when a file fails while it is written, what was written before it is put back."""
    files = await _reviews(git, worktree, snapshot, target, rejected or {})
    plans, conflicts = plans_of(files, selection)
    remaining = _remaining(files)
    writing = []
    for plan in sorted((plan for plan in plans if plan.writes), key=lambda plan: plan.outcome.after is not None):
        if reason := _foreseen(worktree, target, plan.outcome):
            conflicts += [Conflict(plan.path, hunk, reason) for hunk in plan.new]
            plans[plans.index(plan)] = evolve(plan, new=())
        else:
            writing.append(plan)
    if dry_run:
        return Applied((), tuple(conflicts), None, remaining, None, tuple(plan.outcome for plan in writing))
    ref, failure = None, None
    if writing:
        try:
            ref = await save(git, worktree, snapshot, agent_id, [plan.outcome for plan in writing])
        except (UserError, OSError) as error:
            return Applied((), tuple(conflicts), f"nothing was applied: {error}", remaining, None)
        fault = await _write_all(worktree, target, writing)
        if fault is not None:
            conflicts += [Conflict(fault.plan.path, hunk, fault.reason) for hunk in fault.plan.new]
            fate = await _take_back(git, worktree, target, agent_id, ref, writing[: writing.index(fault.plan) + 1])
            failure = fate.told(fault, ref)
            plans = [plan for plan in plans if plan.path in fate.stayed]
            ref = ref if fate.stayed or fate.changed else None
    applied = tuple(AppliedFile(plan.path, plan.hunks) for plan in plans if plan.hunks)
    left = _remaining(await _reviews(git, worktree, snapshot, target, rejected or {})) if writing else remaining
    return Applied(applied, tuple(conflicts), failure, left, ref)


def _foreseen(worktree: Worktree, target: ReviewTarget, outcome: Outcome) -> str | None:
    """Why this cannot be written, as far as it can be known before."""
    if any(outcome.links) and (isinstance(outcome.before, str) or isinstance(outcome.after, str)):
        return f"{outcome.source} is open in the editor; close it first"
    if outcome.after is None:
        return target.keeps(worktree.repository / outcome.source)
    return None


@frozen
class _Fault:
    plan: Plan
    reason: str


async def _write_all(worktree: Worktree, target: ReviewTarget, writing: Sequence[Plan]) -> _Fault | None:
    """Up to the first that fails."""
    for plan in writing:
        try:
            await _write(worktree, target, plan.outcome)
        except (UserError, OSError) as error:
            return _Fault(plan, str(error))
    return None


@frozen
class _Fate:
    """Of what was written when a later file failed: paths that could not be put back and hold what was applied, and
    those that hold something else, made by somebody else."""

    stayed: frozenset[str]
    changed: frozenset[str]

    def told(self, fault: _Fault, ref: str) -> str:
        what = "not everything was applied" if self.stayed else "nothing was applied"
        left = [f"{', '.join(sorted(self.stayed))} could not be put back"] if self.stayed else []
        left += [f"{', '.join(sorted(self.changed))} was changed by something else"] if self.changed else []
        readable = [f"the text before is under {ref}"] if left else []
        return "; ".join([f"{what}: {fault.plan.path}: {fault.reason}", *left, *readable])


async def _take_back(
    git: Git, worktree: Worktree, target: ReviewTarget, agent_id: str, ref: str, begun: Sequence[Plan]
) -> _Fate:
    """Put back what was written; the last of `begun` is the one that failed. The record under `ref` then names what
    stayed only."""
    outcomes = [plan.outcome for plan in begun]
    with suppress(UserError, OSError):
        names = dict.fromkeys(name for each in outcomes for name in (each.source, each.path))
        await restore(git, worktree, target, agent_id, ref, list(names))
    seen = await survey(worktree, target, (name for each in outcomes for name in (each.source, each.path)))
    as_before = {each.path for each in outcomes if seen[each.source].target.content == each.before}
    stayed = {each.path for each in outcomes if seen[each.path].target.content == each.after} - as_before
    changed = {each.path for each in outcomes} - as_before - stayed
    with suppress(GitFailed):  # the record names too much, which a restore tells as conflicts
        await narrow(git, worktree, agent_id, ref, [each for each in outcomes if each.path in stayed])
    return _Fate(frozenset(stayed), frozenset(changed))


def _remaining(files: Iterable[FileReview]) -> int:
    return sum(hunk.state == "open" for file in files for hunk in file.change.hunks)


async def _write(worktree: Worktree, target: ReviewTarget, outcome: Outcome) -> None:
    """ReviewConflict or OSError when the file is not what it should be afterwards."""
    root = worktree.repository
    source, path = root / outcome.source, root / outcome.path
    for name in {outcome.source, outcome.path}:
        if reason := await to_thread.run_sync(blocked, worktree, name):
            raise ReviewConflict(reason)
    await to_thread.run_sync(remove_empty_folder, path)
    if any(outcome.links):
        if isinstance(outcome.before, str) or isinstance(outcome.after, str):
            raise ReviewConflict(f"{outcome.source} is open in the editor; close it first")
        await to_thread.run_sync(replace_link, source, outcome.before, outcome.after, outcome.links)
    elif source != path:
        await _move(target, outcome, worktree)
    elif outcome.after != outcome.before:
        await target.write(source, outcome.before, outcome.after, outcome.executable)
    if outcome.executable is not None and outcome.after is not None and await to_thread.run_sync(path.is_file):
        await to_thread.run_sync(set_executable, path, outcome.executable)
    found = await present(worktree, target, outcome.path)
    if found.content != outcome.after or (found.mode == LINK) != outcome.links[1]:
        raise ReviewConflict(f"{outcome.path} does not hold what was applied; something else changes it")


async def _move(target: ReviewTarget, outcome: Outcome, worktree: Worktree) -> None:
    """The new file first: when the old one cannot be removed the new one goes again, and nothing has changed."""
    source, path = worktree.repository / outcome.source, worktree.repository / outcome.path
    await target.write(path, None, outcome.after, outcome.executable)
    try:
        await target.write(source, outcome.before, None)
    except (UserError, OSError):
        await target.write(path, outcome.after, None)
        raise


async def _reviews(
    git: Git, worktree: Worktree, snapshot: Snapshot, target: ReviewTarget, rejected: Mapping[str, Collection[str]]
) -> list[FileReview]:
    found = await changes(git, worktree, snapshot)
    data = await blobs(git, worktree, found)
    leaving = frozenset(change.path for change in found if change.status == "deleted")
    seen = await survey(worktree, target, (name for change in found for name in (change.path, change.old_path) if name))
    root = worktree.repository
    free = {name for name, each in seen.items() if each.target.mode == OTHER and holds_only(root / name, root, leaving)}
    inputs = [_input(change, data, seen, free) for change in found]
    return await to_thread.run_sync(lambda: [review_file(given, rejected.get(given.path, ())) for given in inputs])


def _input(
    change: TreeChange, data: Mapping[str, bytes], seen: Mapping[str, Found], free: Collection[str]
) -> FileInput:
    """`free` are folders of which the agent has deleted everything: they make room for its file of that name."""
    old = Side(change.old_mode, data.get(change.old_blob) if change.old_blob else None)
    new = Side(change.new_mode, data.get(change.new_blob) if change.new_blob else None)
    given = FileInput(change.path, change.old_path, change.status, old, new, Target(ABSENT, None))
    for path in filter(None, (change.path, change.old_path)):
        if reason := seen[path].blocked:
            return evolve(given, target=Target(OTHER, None), blocked=reason)
    at_path = Target(ABSENT, None) if change.path in free else seen[change.path].target
    if change.old_path is None:
        return evolve(given, target=at_path)
    at_old = seen[change.old_path].target
    if at_old.content is None and at_path.content is not None:
        return evolve(given, target=at_path, moved=True)
    return evolve(given, target=at_old, occupied=at_path != Target(ABSENT, None))

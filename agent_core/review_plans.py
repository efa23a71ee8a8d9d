"""What a selection of hunks comes to, file by file. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from attrs import frozen

from agent_core.errors import ReviewConflict
from agent_core.review import FileReview, Outcome
from agent_core.text import encodable


@frozen
class Selection:
    """`hunks` None: the whole file. `path` may be as it is shown, where the real one is not UTF-8."""

    path: str
    hunks: tuple[str, ...] | None = None


@frozen
class Conflict:
    """`hunk` None: the whole file."""

    path: str
    hunk: str | None
    reason: str


@frozen
class Plan:
    """`new` are the hunks to be made, `held` those that the file holds already."""

    path: str
    outcome: Outcome
    new: tuple[str, ...]
    held: tuple[str, ...]
    order: tuple[str, ...]

    @property
    def writes(self) -> bool:
        return bool(self.new)

    @property
    def hunks(self) -> tuple[str, ...]:
        chosen = {*self.new, *self.held}
        return tuple(hunk for hunk in self.order if hunk in chosen)


def named(paths: Iterable[str]) -> dict[str, str]:
    """The path by each name that it may be given: its own, and as it is shown, unless another one is called so."""
    known = tuple(paths)
    return {encodable(path): path for path in known} | {path: path for path in known}


def plans_of(files: Sequence[FileReview], selection: Sequence[Selection] | None) -> tuple[list[Plan], list[Conflict]]:
    chosen = selection if selection is not None else [Selection(file.change.path) for file in files]
    by_path = {file.change.path: file for file in files}
    paths = named(by_path)
    wanted: dict[str, set[str] | None] = {}
    conflicts = []
    for each in chosen:
        path = paths.get(each.path)
        if path is None:
            conflicts.append(Conflict(each.path, None, "this file is not part of the review; review again"))
            continue
        known = wanted.get(path, set())
        wanted[path] = None if each.hunks is None or known is None else known | set(each.hunks)
    plans = []
    for path, ids in wanted.items():
        plan, problems = _plan(by_path[path], ids)
        plans.append(plan)
        conflicts += problems
    return [plan for plan in plans if plan is not None], conflicts


def _plan(file: FileReview, ids: Collection[str] | None) -> tuple[Plan | None, list[Conflict]]:
    change = file.change
    order = tuple(hunk.id for hunk in change.hunks)
    named = order if ids is None else ids
    problems = [
        Conflict(change.path, part.hunk.id, part.conflict)
        for part in file.parts
        if part.conflict and part.hunk.state == "open" and part.hunk.id in named
    ]
    gone = "this hunk is no longer part of the review; review again"
    problems += [Conflict(change.path, hunk, gone) for hunk in sorted(set(named) - set(order))]
    new = tuple(hunk for hunk in order if hunk in named and hunk in change.open_hunks)
    held = tuple(hunk.id for hunk in change.hunks if hunk.id in named and hunk.state == "accepted")
    try:
        return Plan(change.path, file.apply(new), new, held, order), problems
    except ReviewConflict as error:
        return None, [*problems, *(Conflict(change.path, hunk, str(error)) for hunk in new)]

"""Where an agent's edits stand in the user's text of today. Pure.

base -> agent gives the edits, base -> current what the user did. An edit is *open* where the user's text still has the
base's lines and untouched neighbours, *accepted* where it has the agent's, and a *conflict* otherwise: nothing is
guessed. As in git's merge, a user's change right next to an edit conflicts with it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import Literal, TypeVar

from attrs import frozen

from agent_core.line_diff import Edit, diff

Line = TypeVar("Line", bound=bytes | str)
PlacedState = Literal["open", "accepted", "conflict"]
_GAP = 2  # lines
_PATHS = 1000


@frozen
class Placed:
    """`edit` leads from base to agent; [start, end) are the lines of the current text that it replaces, that it became,
    or that the user's and its change cover together."""

    edit: Edit
    state: PlacedState
    start: int
    end: int


def place(base: list[Line], agent: list[Line], current: list[Line]) -> list[Placed]:
    """One entry for each edit of the agent, ascending."""
    edits = edits_of(base, agent)
    exact = _without_user_edits(base, agent, current, edits)
    return exact if exact is not None else _with_user_edits(base, agent, current, edits)


def apply(agent: list[Line], current: list[Line], placed: Sequence[Placed], chosen: Collection[Edit]) -> list[Line]:
    """`current` with the chosen open edits made; every other line stays."""
    result: list[Line] = []
    done = 0
    for item in placed:
        if item.state == "open" and item.edit in chosen:
            result += [*current[done : item.start], *agent[item.edit.new_start : item.edit.new_end]]
            done = item.end
    return [*result, *current[done:]]


def edits_of(base: list[Line], agent: list[Line]) -> list[Edit]:
    """What a person decides on one by one: edits with nothing but brackets or blank lines between them are one."""
    units: list[Edit] = []
    for edit in diff(base, agent):
        if units and _trivial(base[units[-1].old_end : edit.old_start]):
            last = units.pop()
            edit = Edit(last.old_start, edit.old_end, last.new_start, edit.new_end)
        units.append(edit)
    return units


def _trivial(lines: list[Line]) -> bool:
    return len(lines) <= _GAP and not any(
        character.isalnum() or character > "\x7f" for line in lines for character in _text(line)
    )


def _text(line: bytes | str) -> str:
    return line.decode("latin-1") if isinstance(line, bytes) else line


def _without_user_edits(
    base: list[Line], agent: list[Line], current: list[Line], edits: Sequence[Edit]
) -> list[Placed] | None:
    """If the current text is the base with some edits made, say which ones: by reading along, so repeated lines cannot
    mislead it as they can a comparison. None when the user changed something else."""
    trails: list[dict[int, tuple[int, bool]]] = []  # per edit: end in current -> (start of it, made?)
    places = {0}
    at = 0
    for edit in edits:
        kept = base[at : edit.old_start]
        trail: dict[int, tuple[int, bool]] = {}
        for place_ in places:
            start = place_ + len(kept)
            if current[place_:start] == kept:
                for made, lines in ((True, _new(agent, edit)), (False, base[edit.old_start : edit.old_end])):
                    if current[start : start + len(lines)] == lines:
                        trail.setdefault(start + len(lines), (start, made))
        trails.append(trail)
        places, at = set(trail), edit.old_end
        if not places or len(places) > _PATHS:
            return None
    rest = base[at:]
    end = len(current) - len(rest)
    if end not in places or current[end:] != rest:
        return None
    return _traced(trails, edits, end)


def _new(agent: list[Line], edit: Edit) -> list[Line]:
    return agent[edit.new_start : edit.new_end]


def _traced(trails: list[dict[int, tuple[int, bool]]], edits: Sequence[Edit], end: int) -> list[Placed]:
    placed = []
    for number in range(len(edits) - 1, -1, -1):
        edit = edits[number]
        start, made = trails[number][end]
        placed.append(Placed(edit, "accepted" if made else "open", start, end))
        if number:
            end = start - (edit.old_start - edits[number - 1].old_end)
    return placed[::-1]


def _with_user_edits(base: list[Line], agent: list[Line], current: list[Line], edits: Sequence[Edit]) -> list[Placed]:
    """Guess which edits were made, by where the text resembles the agent's and not the base's; then compare the current
    text with the base so edited and let that one comparison decide."""
    by_base, by_agent = _Changes(diff(base, current)), _Changes(diff(agent, current))
    made = {
        edit
        for edit in edits
        if by_base.touching(edit.old_start, edit.old_end) and not by_agent.inside(edit.new_start, edit.new_end)
    }
    reference: list[Line] = []
    spans: list[tuple[int, int]] = []
    at = 0
    for edit in edits:
        reference += base[at : edit.old_start]
        start = len(reference)
        reference += _new(agent, edit) if edit in made else base[edit.old_start : edit.old_end]
        spans.append((start, len(reference)))
        at = edit.old_end
    reference += base[at:]
    changes = _Changes(diff(reference, current))
    return [_judged(edit, edit in made, span, changes) for edit, span in zip(edits, spans, strict=True)]


def _judged(edit: Edit, made: bool, span: tuple[int, int], changes: _Changes) -> Placed:
    start, end = span
    hit = changes.inside(start, end) if made else changes.touching(start, end)
    if hit:
        start, end = min(start, hit[0].old_start), max(end, hit[-1].old_end)
        return Placed(edit, "conflict", start + changes.shift(start), end + changes.shift(end, including=True))
    shift = changes.shift(start, including=made)
    return Placed(edit, "accepted" if made else "open", start + shift, end + shift)


class _Changes:
    """What the user changed, found by the lines of the text that it was made in."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self._edits = edits
        self._starts = [edit.old_start for edit in edits]
        self._ends = [edit.old_end for edit in edits]
        growth = ((edit.new_end - edit.new_start) - (edit.old_end - edit.old_start) for edit in edits)
        self._shifts = [0, *accumulate(growth)]

    def touching(self, start: int, end: int) -> Sequence[Edit]:
        """Those in the lines and right next to them."""
        return self._edits[bisect_left(self._ends, start) : bisect_right(self._starts, end)]

    def inside(self, start: int, end: int) -> Sequence[Edit]:
        """Those that change the lines themselves. Where lines were deleted, what stands next to the gap may be what
        the user made of them."""
        if start == end:
            return self.touching(start, end)
        return self._edits[bisect_right(self._ends, start) : bisect_left(self._starts, end)]

    def shift(self, line: int, *, including: bool = False) -> int:
        """By how much `line` moved through the changes that end before it (or at it, `including`)."""
        return self._shifts[(bisect_right if including else bisect_left)(self._ends, line)]

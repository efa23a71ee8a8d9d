"""Reviews against git: what comes of any accepted and rejected hunks is what `git merge-file` makes of the pieces.

The agent's version is made of known edits, so that what was accepted can be put together without the product.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.review import FILE, FileInput, FileReview, Side, Target
from agent_core.review_parts import review_file

pytestmark = pytest.mark.spec("ED-3", "WT-4")

LINES = 24
Edit = tuple[int, int, tuple[str, ...]]
"""Lines from, to (of the base), and what they give way to."""


@st.composite
def edits(draw: Any, author: str) -> list[Edit]:
    """Apart by at least one line; no two of all lines are the same."""
    found: list[Edit] = []
    at = draw(st.integers(0, 4))
    while at < LINES and len(found) < 5:
        end = min(LINES, at + draw(st.integers(0, 3)))
        new = tuple(f"{author} {at}.{n}" for n in range(draw(st.integers(0 if end > at else 1, 3))))
        found.append((at, end, new))
        at = end + draw(st.integers(1, 6))
    return found


def made(edits: Sequence[Edit]) -> bytes:
    lines = [f"base {number}" for number in range(LINES)]
    for start, end, new in reversed(edits):
        lines[start:end] = new
    return "".join(f"{line}\n" for line in lines).encode()


def merged(current: bytes, agent: bytes) -> bytes | None:
    """By git; None when it finds a conflict."""
    with tempfile.TemporaryDirectory() as folder:
        names = [Path(folder) / name for name in ("current", "base", "agent")]
        for path, data in zip(names, (current, made([]), agent), strict=True):
            path.write_bytes(data)
        done = subprocess.run(["git", "merge-file", "-p", *map(str, names)], capture_output=True, check=False)
        return done.stdout if done.returncode == 0 else None


def reviewed(agent: bytes, current: bytes, rejected: Sequence[str] = ()) -> FileReview:
    base = made([])
    given = FileInput("f", None, "modified", Side(FILE, base), Side(FILE, agent), Target(FILE, current))
    return review_file(given, rejected)


@given(edits("agent"), edits("user"), st.data())
def test_what_was_accepted_is_merged_as_git_would_and_conflicts_are_those_of_git(
    agent: list[Edit], user: list[Edit], data: st.DataObject
) -> None:
    shared = data.draw(st.lists(st.sampled_from(agent), max_size=2, unique=True)) if agent else []
    user = sorted({edit for edit in user if not any(touch(edit, other) for other in shared)} | set(shared))
    current = made(user)
    review = reviewed(made(agent), current)
    hunks = review.change.hunks
    assert len(hunks) == len(agent)
    blocked = review.change.conflict.hunks if review.change.conflict else ()
    for hunk, edit in zip(hunks, agent, strict=True):
        assert (hunk.id in blocked) == (merged(current, made([edit])) is None), (hunk, edit)
        assert (hunk.state == "accepted") == (edit in user)
    chosen = data.draw(st.sets(st.sampled_from([hunk.id for hunk in hunks]))) if hunks else set()
    wanted = [edit for hunk, edit in zip(hunks, agent, strict=True) if hunk.id in chosen and hunk.id not in blocked]
    assert review.apply(chosen).after == merged(current, made(wanted))

    rejected = reviewed(made(agent), current, sorted(chosen))
    rest = [edit for hunk, edit in zip(hunks, agent, strict=True) if hunk.id not in chosen and hunk.id not in blocked]
    assert rejected.apply().after == merged(current, made(rest))


def touch(one: Edit, other: Edit) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]

"""Line differences: patience over unique lines, Myers' greedy algorithm between them. Pure.

Absent on purpose: difflib (quadratic on files with many equal lines) and minimality at any price. Between two unique
lines at most `_LIMIT` insertions and deletions are searched for; beyond that the whole stretch counts as replaced.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from typing import AnyStr, NamedTuple

_LIMIT = 600
Region = tuple[int, int, int, int]


class Edit(NamedTuple):
    """Lines [old_start, old_end) of the old text became [new_start, new_end) of the new one; from 0."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def split_lines(text: AnyStr) -> list[AnyStr]:
    """Lines with their ends, divided as LSP does: at CR LF, LF and CR, nowhere else."""
    if isinstance(text, bytes):
        return text.splitlines(keepends=True)
    # str.splitlines divides at eight more characters, bytes.splitlines at none of them
    data = text.encode("utf-8", "surrogatepass")
    return [line.decode("utf-8", "surrogatepass") for line in data.splitlines(keepends=True)]


def diff(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Edit]:
    """The edits that turn `old` into `new`, ascending, never touching each other. Equal input gives equal output."""
    numbers: dict[Hashable, int] = {}
    a = [numbers.setdefault(line, len(numbers)) for line in old]
    b = [numbers.setdefault(line, len(numbers)) for line in new]
    edits: list[Edit] = []
    stack: list[Region] = [(0, len(a), 0, len(b))]
    while stack:
        region = _trimmed(a, b, stack.pop())
        a0, a1, b0, b1 = region
        if a0 == a1 and b0 == b1:
            continue
        if a0 == a1 or b0 == b1:
            edits.append(Edit(*region))
        elif anchors := _anchors(a, b, region):
            stack.extend(_between(anchors, region))
        else:
            edits.extend(_myers(a, b, region))
    return _settled(sorted(edits), a, b)


def _trimmed(a: list[int], b: list[int], region: Region) -> Region:
    a0, a1, b0, b1 = region
    while a0 < a1 and b0 < b1 and a[a0] == b[b0]:
        a0, b0 = a0 + 1, b0 + 1
    while a0 < a1 and b0 < b1 and a[a1 - 1] == b[b1 - 1]:
        a1, b1 = a1 - 1, b1 - 1
    return a0, a1, b0, b1


def _anchors(a: list[int], b: list[int], region: Region) -> list[tuple[int, int]]:
    """Lines that are unique on both sides, the longest series of them in the same order."""
    a0, a1, b0, b1 = region
    in_a, in_b = _unique(a, a0, a1), _unique(b, b0, b1)
    pairs = [(at, in_b[line]) for line, at in in_a.items() if line in in_b]
    tails: list[int] = []  # smallest position in b that ends a series of this length
    ends: list[int] = []  # the pair there
    before: list[int] = []
    for number, (_, at) in enumerate(pairs):
        length = bisect_left(tails, at)
        tails[length : length + 1] = [at]
        ends[length : length + 1] = [number]
        before.append(ends[length - 1] if length else -1)
    series, number = [], ends[-1] if ends else -1
    while number >= 0:
        series.append(pairs[number])
        number = before[number]
    return series[::-1]


def _unique(lines: list[int], start: int, end: int) -> dict[int, int]:
    """Line -> position, ascending by position."""
    seen: dict[int, int] = {}
    for at in range(start, end):
        seen[lines[at]] = -1 if lines[at] in seen else at
    return {line: at for line, at in seen.items() if at >= 0}


def _between(anchors: list[tuple[int, int]], region: Region) -> Iterator[Region]:
    a0, a1, b0, b1 = region
    for at_a, at_b in anchors:
        if a0 != at_a or b0 != at_b:
            yield a0, at_a, b0, at_b
        a0, b0 = at_a + 1, at_b + 1
    yield a0, a1, b0, b1


def _myers(a: list[int], b: list[int], region: Region) -> list[Edit]:
    a0, a1, b0, b1 = region
    n, m = a1 - a0, b1 - b0
    furthest = {1: 0}
    trace = []
    for distance in range(min(n + m, _LIMIT) + 1):
        trace.append(furthest.copy())
        for k in range(-distance, distance + 1, 2):
            if k == -distance or (k != distance and furthest[k - 1] < furthest[k + 1]):
                x = furthest[k + 1]
            else:
                x = furthest[k - 1] + 1
            y = x - k
            while x < n and y < m and a[a0 + x] == b[b0 + y]:
                x, y = x + 1, y + 1
            furthest[k] = x
            if x >= n and y >= m:
                return _walk_back(trace, region)
    return [Edit(*region)]


def _walk_back(trace: list[dict[int, int]], region: Region) -> list[Edit]:
    a0, a1, b0, b1 = region
    x, y = a1 - a0, b1 - b0
    edits = []
    for distance in range(len(trace) - 1, 0, -1):
        furthest, k = trace[distance], x - y
        down = k == -distance or (k != distance and furthest[k - 1] < furthest[k + 1])
        k += 1 if down else -1
        x = furthest[k]
        y = x - k
        edits.append(Edit(a0 + x, a0 + x, b0 + y, b0 + y + 1) if down else Edit(a0 + x, a0 + x + 1, b0 + y, b0 + y))
    return edits[::-1]


def _settled(edits: list[Edit], a: list[int], b: list[int]) -> list[Edit]:
    """One form for equal outcomes: what can slide slides down (as git does), and what touches is one edit."""
    settled: list[Edit] = []
    for edit in reversed(_joined(edits)):
        limit = settled[-1].old_start if settled else len(a)
        settled.append(_slid(edit, a, b, limit))
        while len(settled) > 1 and settled[-1].old_end == settled[-2].old_start:
            later, earlier = settled.pop(-2), settled.pop()
            settled.append(Edit(earlier.old_start, later.old_end, earlier.new_start, later.new_end))
    return settled[::-1]


def _joined(edits: list[Edit]) -> list[Edit]:
    joined: list[Edit] = []
    for edit in edits:
        if joined and joined[-1].old_end == edit.old_start and joined[-1].new_end == edit.new_start:
            last = joined.pop()
            edit = Edit(last.old_start, edit.old_end, last.new_start, edit.new_end)
        joined.append(edit)
    return joined


def _slid(edit: Edit, a: list[int], b: list[int], limit: int) -> Edit:
    a0, a1, b0, b1 = edit
    if a0 == a1:
        while a1 < limit and b[b0] == a[a1]:
            a0, a1, b0, b1 = a0 + 1, a1 + 1, b0 + 1, b1 + 1
    elif b0 == b1:
        while a1 < limit and a[a0] == a[a1]:
            a0, a1, b0, b1 = a0 + 1, a1 + 1, b0 + 1, b1 + 1
    return Edit(a0, a1, b0, b1)

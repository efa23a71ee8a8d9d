"""What a search found, as text for the model: sorted, shortened, the same for ripgrep and for `walk.py`. Pure except
for looking up modification times."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

from attrs import frozen

from agent_core.tools.globs import GlobPattern
from agent_core.tools.search import Found, modified

_MAX_CHARACTERS = 30_000
_LINE_LENGTH = 500
_NOTHING = "No matches found."
_RECORD = re.compile(r"([^\0]+)\0(\d+)([:-])(.*)", re.DOTALL)


@frozen
class Page:
    """`limit` None: all results, as far as they fit; `context`: lines around matches were asked for; `denied`: files
    that a rule hides from the agent."""

    root: Path
    cwd: Path
    glob: GlobPattern | None
    limit: int | None
    numbers: bool
    context: bool
    denied: Callable[[Path], bool]

    def wants(self, name: str) -> bool:
        """The glob may be meant from the searched folder or from the working directory."""
        path = self.cwd / name
        if self.denied(path):
            return False
        if self.glob is None:
            return True
        inside = path.relative_to(self.root).as_posix() if path != self.root else path.name
        return self.glob.matches(inside, name)

    def limited(self, lines: list[str], what: str) -> str:
        kept = lines[: self.limit]
        room = _MAX_CHARACTERS
        for count, line in enumerate(kept):
            room -= len(line) + 1
            if room < 0:
                kept = kept[:count]
                break
        if len(kept) == len(lines):
            return "\n".join(lines)
        return "\n".join([*kept, f"[{len(kept)} of {len(lines)} {what} shown; narrow the search or raise head_limit]"])


@frozen
class Line:
    number: int
    mark: str
    text: str


def show_files(found: Found, page: Page) -> str:
    wanted = [name for name in found.names() if page.wants(name)]
    wanted.sort(key=lambda name: (-modified(page.cwd / name), name))
    return page.limited(wanted, "files") if wanted else _NOTHING


def show_counts(found: Found, page: Page) -> str:
    rows = sorted((name, int(count)) for name, count in _pairs(found, page))
    if not rows:
        return _NOTHING
    total = sum(count for _, count in rows)
    text = page.limited([f"{name}:{count}" for name, count in rows], "files")
    return f"{text}\n[{total} in {len(rows)} file{'' if len(rows) == 1 else 's'}]"


def show_lines(found: Found, page: Page) -> str:
    lines: list[str] = []
    for name, its_lines in sorted(_by_file(found, page).items()):
        lines += _block(name, its_lines, page, first=not lines)
    return page.limited(lines, "lines") if lines else _NOTHING


def _pairs(found: Found, page: Page) -> Iterator[tuple[str, str]]:
    for row in found.rows():
        raw_name, separator, count = row.partition("\0")
        name = found.name(raw_name)
        if separator and count.strip().isdigit() and page.wants(name):
            yield name, count.strip()


def _by_file(found: Found, page: Page) -> dict[str, list[Line]]:
    records = [match for row in found.rows() if (match := _RECORD.fullmatch(row.removesuffix("\r")))]
    files: dict[str, list[Line]] = {}
    for raw_name, group in groupby(records, key=lambda match: match[1]):
        name = found.name(raw_name)
        if page.wants(name):
            files.setdefault(name, []).extend(Line(int(m[2]), m[3], m[4]) for m in group)
    return files


def _block(name: str, lines: list[Line], page: Page, *, first: bool) -> Iterator[str]:
    previous: int | None = None
    for line in lines:
        gap = line.number != previous + 1 if previous is not None else not first
        if page.context and gap:
            yield "--"
        number = f"{line.number}{line.mark}" if page.numbers else ""
        yield f"{name}{line.mark}{number}{_cut(line.text)}"
        previous = line.number


def _cut(text: str) -> str:
    return text if len(text) <= _LINE_LENGTH else f"{text[:_LINE_LENGTH]}[... {len(text) - _LINE_LENGTH} more]"

"""Makes the review of one file. Pure."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Collection, Sequence

from attrs import evolve, frozen

from agent_core.line_diff import split_lines
from agent_core.merge import Placed, place
from agent_core.review import (
    ABSENT,
    EXECUTABLE,
    FILE,
    LINK,
    OTHER,
    SUBMODULE,
    FileChange,
    FileConflict,
    FileInput,
    FileReview,
    Hunk,
    HunkState,
    Part,
    PartKind,
    Side,
)
from agent_core.text_form import NotConvertible, encoding_of, is_binary, like, text_notes, to_buffer_form

_REGULAR = (FILE, EXECUTABLE)
_HEADING = 1000  # lines looked at for the heading of a hunk
Lines = list[bytes | str]


def review_file(given: FileInput, rejected: Collection[str] = ()) -> FileReview:
    """The parts of one file's change against the user's file; open ones whose id is in `rejected` count as rejected."""
    binary = any(
        side.mode in _REGULAR and side.data is not None and _opaque(side.data, given) for side in _sides(given)
    )
    texts = None
    if given.new.data is not None and not binary and all(side.mode in (*_REGULAR, ABSENT) for side in _sides(given)):
        texts = _Texts.of(given)
    parts = [*_rename(given), *(texts.parts(given) if texts else []), *_whole(given, texts), *_mode(given)]
    parts = _finished(given, parts, rejected)
    review = FileReview(given, _change(given, parts, binary), tuple(parts))
    if texts is None or texts.problem:
        return review
    clean = isinstance(given.target.content, str) and texts.current == texts.base
    return evolve(review, agent=texts.agent, current=texts.current, clean_buffer=clean)


def _sides(given: FileInput) -> tuple[Side, Side]:
    return given.old, given.new


def _opaque(data: bytes, given: FileInput) -> bool:
    """UTF-16 is text when an editor has decoded it."""
    marked = encoding_of(data)
    return is_binary(data) and not (isinstance(given.target.content, str) and marked is not None and marked[0] != b"")


@frozen
class _Texts:
    """Lines of the three texts in the form of the user's file. `problem` is why there is no such form."""

    base: Lines
    agent: Lines
    current: Lines
    problem: str | None = None

    @classmethod
    def of(cls, given: FileInput) -> _Texts:
        base, agent, current = given.old.data or b"", given.new.data or b"", given.target.content
        if not isinstance(current, str):
            current = base if current is None else current
            base, agent = like(base, agent, current)
            return cls([*split_lines(base)], [*split_lines(agent)], [*split_lines(current)])
        try:
            texts = to_buffer_form(base, agent, current)
        except NotConvertible as error:
            return cls([*split_lines(base)], [*split_lines(agent)], [*split_lines(base)], str(error))
        return cls([*split_lines(texts[0])], [*split_lines(texts[1])], [*split_lines(current)])

    def parts(self, given: FileInput) -> list[Part]:
        conflict = self.problem or _misfit(given, self)
        placed = place(self.base, self.agent, self.base if conflict else self.current)
        parts = []
        for item in placed:
            old, new = self.base[item.edit.old_start : item.edit.old_end], self.agent[slice(*item.edit[2:])]
            why = "your text differs from both sides here" if item.state == "conflict" else None
            heading = _heading(self.current, item.start)
            hunk = _hunk(given.path, "text", old, new, "accepted" if item.state == "accepted" else "open")
            parts.append(Part(evolve(hunk, header=heading), "text", conflict or why, item))
        return parts


def _misfit(given: FileInput, texts: _Texts) -> str | None:
    """Why the user's file is not one that the edits could be made in."""
    target, adds = given.target, given.old.data is None
    if target.mode not in (*_REGULAR, ABSENT):
        return "there is no ordinary file at this path now"
    if target.content is None:
        return None if adds else "you deleted this file"
    if adds and target.content and texts.current != texts.agent:
        return "you have a file of this name with other content"
    return None


def _whole(given: FileInput, texts: _Texts | None) -> list[Part]:
    """The part for a change of content that cannot be divided."""
    old, new, path = given.old, given.new, given.path
    if SUBMODULE in (old.mode, new.mode):
        reason = "submodules are not changed by a review; run `git submodule update` or commit it yourself"
        return [Part(_unit(path, "submodule", new.mode, "submodule moves to another commit"), "submodule", reason)]
    if new.data is None:
        body = [] if old.data is None or is_binary(old.data) or old.mode == LINK else [*split_lines(old.data)]
        hunk = evolve(_hunk(path, "delete", body, [], "open"), header="deletes the file")
        return [_judged(given, Part(hunk, "delete"))]
    creates_empty = old.data is None and new.data == b""
    if (old.data == new.data and old.mode in _REGULAR and new.mode in _REGULAR) or (texts and not creates_empty):
        return []
    header = "makes an empty file" if creates_empty else "the whole file"
    if new.mode == LINK:
        header = f"links to {new.data.decode(errors='replace')}"
    digest = hashlib.sha256((old.data or b"") + b"\0" + new.data).hexdigest()
    return [_judged(given, Part(_unit(path, "content", digest, header), "content"))]


def _judged(given: FileInput, part: Part) -> Part:
    if _holds(given, given.new):
        return evolve(part, hunk=evolve(part.hunk, state="accepted"))
    if _holds(given, given.old):
        return part
    return evolve(part, conflict="your file differs from both sides, and this change cannot be divided")


def _holds(given: FileInput, side: Side) -> bool:
    """Whether the user's file is that of `side`."""
    target = given.target
    if target.mode == OTHER:
        return side is given.new and side.data is None
    if side.data is None or target.content is None:
        return side.data is None and target.content is None
    if (side.mode == LINK) != (target.mode == LINK):
        return False
    if isinstance(target.content, bytes):
        return target.content == side.data
    try:
        return to_buffer_form(side.data, side.data, target.content)[0] == target.content
    except NotConvertible:
        return False


def _mode(given: FileInput) -> list[Part]:
    if given.old.mode not in _REGULAR or given.new.mode not in _REGULAR or given.old.mode == given.new.mode:
        return []
    header = "makes it executable" if given.new.mode == EXECUTABLE else "makes it not executable"
    part = Part(_unit(given.path, "mode", given.new.mode, header), "mode")
    if given.target.mode not in _REGULAR:
        return [evolve(part, conflict="there is no ordinary file at this path now")]
    return [evolve(part, hunk=evolve(part.hunk, state="accepted" if given.target.mode == given.new.mode else "open"))]


def _rename(given: FileInput) -> list[Part]:
    if given.old_path is None:
        return []
    part = Part(_unit(given.path, "rename", given.old_path, f"renames {given.old_path}"), "rename")
    if given.moved:
        return [evolve(part, hunk=evolve(part.hunk, state="accepted"))]
    if given.occupied:
        return [evolve(part, conflict=f"there is a file {given.path} already")]
    if given.target.content is None:
        return [evolve(part, conflict=f"you deleted {given.old_path}")]
    return [part]


def _unit(path: str, kind: PartKind, content: str, header: str) -> Hunk:
    return evolve(_hunk(path, kind, [content], [], "open"), old_lines=0, text="", header=header)


def _hunk(path: str, kind: PartKind, old: Sequence[bytes | str], new: Sequence[bytes | str], state: HunkState) -> Hunk:
    """Without position. The id says what is changed into what, whatever form the file is in: no line ends, no BOM."""
    sides = ("\n".join(_shown(line).rstrip("\r\n").removeprefix("\ufeff") for line in side) for side in (old, new))
    digest = hashlib.sha256("\0".join((path, kind, *sides)).encode(errors="surrogatepass")).hexdigest()[:16]
    text = "".join(itertools.chain(_body("-", old), _body("+", new)))
    return Hunk(digest, 0, len(old), 0, len(new), "", text, state)


def _body(sign: str, lines: Sequence[bytes | str]) -> list[str]:
    shown = [f"{sign}{_shown(line)}" for line in lines]
    if shown and not shown[-1].endswith(("\n", "\r")):
        shown.append("\n\\ No newline at end of file\n")
    return shown


def _shown(line: bytes | str) -> str:
    if isinstance(line, str):
        return line
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("latin-1")


def _heading(lines: Lines, start: int) -> str:
    """As git: the nearest line above that starts with a letter, `_` or `$`."""
    for line in reversed(lines[max(0, start - _HEADING) : start]):
        if (text := _shown(line[:200])) and (text[0].isalpha() or text[0] in "_$"):
            return text.strip()[:80]
    return ""


def _finished(given: FileInput, parts: list[Part], rejected: Collection[str]) -> list[Part]:
    """Ids made unique, positions and states filled in."""
    seen: Counter[str] = Counter()
    growth = 0
    finished = []
    for part in parts:
        hunk, number = part.hunk, seen[part.hunk.id]
        seen[part.hunk.id] += 1
        hunk = evolve(hunk, id=f"{hunk.id}-{number}" if number else hunk.id)
        if given.blocked:
            part, hunk = evolve(part, conflict=given.blocked), evolve(hunk, state="open")
        elif hunk.state == "open" and hunk.id in rejected:
            hunk = evolve(hunk, state="rejected")
        if part.placed:
            hunk = _positioned(hunk, part.placed, growth)
            growth += hunk.new_lines - hunk.old_lines if hunk.state == "open" and part.conflict is None else 0
        elif part.kind == "delete" and hunk.text:
            hunk = evolve(hunk, old_start=1)
        finished.append(evolve(part, hunk=hunk))
    return finished


def _positioned(hunk: Hunk, placed: Placed, growth: int) -> Hunk:
    """An open hunk takes current lines away; an accepted one stands there already, so both ranges are those lines."""
    old_lines = placed.end - placed.start
    new_lines = hunk.new_lines if placed.state == "open" else old_lines
    old_start = placed.start + (old_lines > 0)
    new_start = placed.start + growth + (new_lines > 0)
    heading = f"@@ -{old_start},{old_lines} +{new_start},{new_lines} @@ {hunk.header}".rstrip()
    return evolve(
        hunk, old_start=old_start, old_lines=old_lines, new_start=new_start, new_lines=new_lines, header=heading
    )


def _change(given: FileInput, parts: Sequence[Part], binary: bool) -> FileChange:
    blocked = [part for part in parts if part.conflict and part.hunk.state != "accepted"]
    reasons = dict.fromkeys(part.conflict for part in blocked if part.conflict)
    conflict = FileConflict("; ".join(reasons), tuple(part.hunk.id for part in blocked)) if blocked else None
    odd = given.new.mode not in _REGULAR or given.status == "typechange"
    return FileChange(
        given.path, given.old_path, given.status, binary, tuple(part.hunk for part in parts),
        tuple(_notes(given, binary)), conflict, needs_confirmation=odd,
    )  # fmt: skip


def _notes(given: FileInput, binary: bool) -> list[str]:
    old, new = given.old, given.new
    notes = []
    if SUBMODULE in (old.mode, new.mode):
        notes.append("submodule: only its commit changes")
    if LINK in (old.mode, new.mode):
        shown = [side.data.decode(errors="replace") if side.data and side.mode == LINK else None for side in (old, new)]
        notes.append(f"symbolic link: {shown[0] or 'none'} became {shown[1] or 'none'}")
    if old.mode in _REGULAR and new.mode in _REGULAR and old.mode != new.mode:
        notes.append(f"mode: {old.mode} became {new.mode} ({_mode(given)[0].hunk.header})")
    elif old.data is None and new.mode == EXECUTABLE:
        notes.append("mode: the new file is executable")
    if binary:
        notes.append(f"binary: {_size(old)} became {_size(new)}")
    elif old.data is not None and new.data is not None and old.mode in _REGULAR and new.mode in _REGULAR:
        notes += text_notes(old.data, new.data, in_buffer=isinstance(given.target.content, str))
    return notes


def _size(side: Side) -> str:
    return "no file" if side.data is None else f"{len(side.data):,} bytes"

"""Base, agent's version and the user's file of today to what is still to be decided. Pure.

A file's review is a list of *parts*: hunks of text, or one part for what cannot be divided (a binary file, a link, a
deletion), and one each for a rename and a change of the executable bit. On the wire every part is a hunk, so that each
can be accepted by itself. Edits that the user's file already holds are `accepted`; nothing is remembered for that.

The values are here; `review_parts.review_file` makes them, on `text_form` (one form for all three texts), `merge`
(where edits stand) and `line_diff`.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Literal

from attrs import evolve, field, frozen

from agent_core.errors import ReviewConflict
from agent_core.merge import Placed, apply

HunkState = Literal["open", "accepted", "rejected"]
ChangeStatus = Literal["added", "modified", "deleted", "renamed", "copied", "typechange", "mode"]
PartKind = Literal["text", "content", "delete", "mode", "rename", "submodule"]
Content = bytes | str | None
"""bytes: a closed file; str: an open buffer; None: no file."""

ABSENT = "000000"
FILE, EXECUTABLE, LINK, SUBMODULE = "100644", "100755", "120000", "160000"
OTHER = "other"
"""File modes as git writes them, and one for what git cannot hold, such as a folder."""


@frozen
class Hunk:
    """Old lines are counted in the user's current text, new ones in that text with all open hunks made; both from 1,
    and for an empty range the line before it, as in unified diffs. No context lines: hunks never overlap. `text` is
    the unified body, line ends included. Parts without lines have an empty `text` and say in `header` what they are.
    """

    id: str
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    header: str
    text: str
    state: HunkState


@frozen
class FileConflict:
    """`hunks` cannot be applied for `reason`; the other hunks of the file can."""

    reason: str
    hunks: tuple[str, ...]


@frozen
class FileChange:
    """`status` as on the wire. `needs_confirmation`: deletes a file or puts a link or something else in its place; the
    caller asks, apply does as it is told."""

    path: str
    old_path: str | None
    status: ChangeStatus
    binary: bool
    hunks: tuple[Hunk, ...]
    notes: tuple[str, ...]
    conflict: FileConflict | None
    needs_confirmation: bool

    @property
    def open_hunks(self) -> frozenset[str]:
        """Ids that can be applied."""
        blocked = self.conflict.hunks if self.conflict else ()
        return frozenset(hunk.id for hunk in self.hunks if hunk.state == "open" and hunk.id not in blocked)


@frozen
class Stats:
    files: int
    insertions: int
    deletions: int


@frozen
class Review:
    """`head` is the snapshot's commit. `skipped` are paths in the worktree that no review can hold."""

    agent_id: str
    base_commit: str
    branch: str | None
    worktree: Path | None
    head: str
    files: tuple[FileChange, ...]
    skipped: tuple[str, ...] = ()

    @property
    def stats(self) -> Stats:
        """Over all hunks, whatever their state."""
        lines = [line for file in self.files for hunk in file.hunks for line in hunk.text.split("\n")]
        count = {sign: sum(line.startswith(sign) for line in lines) for sign in "+-"}
        return Stats(len(self.files), count["+"], count["-"])

    @property
    def remaining(self) -> int:
        """Hunks not decided yet, conflicts included."""
        return sum(hunk.state == "open" for file in self.files for hunk in file.hunks)


@frozen
class Side:
    """The base's or the agent's file; `data` None: there is none. Of a link it is the path, of a submodule nothing."""

    mode: str
    data: bytes | None


@frozen
class Target:
    """The user's file now. `mode` is git's, 000000 without a file (a new buffer may still have content), and `other`
    for what git cannot hold, such as a folder. Of a link `content` is its path as bytes."""

    mode: str
    content: Content


@frozen
class FileInput:
    """`old_path` None unless renamed. `target` is the user's file; of a rename the one at `old_path`, or when that is
    gone the one at `path` (`moved`), and `occupied` says that both exist. `blocked` is a reason why nothing here may
    be applied."""

    path: str
    old_path: str | None
    status: ChangeStatus
    old: Side
    new: Side
    target: Target
    moved: bool = False
    occupied: bool = False
    blocked: str | None = None


@frozen
class Outcome:
    """What applying changes: `before` at `source` gives way to `after` at `path` (the same path unless renamed).

    `executable` None leaves the bits alone; `links` says whether before and after are links; `mode` is that of before.
    """

    source: str
    path: str
    before: Content
    after: Content
    executable: bool | None = None
    links: tuple[bool, bool] = (False, False)
    mode: str = FILE


@frozen
class Part:
    """A hunk and what it does. `conflict` is the reason why it cannot be applied."""

    hunk: Hunk
    kind: PartKind
    conflict: str | None = None
    placed: Placed | None = None


@frozen
class FileReview:
    """`agent` and `current` are the lines of a text review in the target's form. `clean_buffer`: the target is an open
    buffer in which the user changed nothing."""

    input: FileInput
    change: FileChange
    parts: tuple[Part, ...]
    agent: list[bytes | str] = field(factory=list)
    current: list[bytes | str] = field(factory=list)
    clean_buffer: bool = False

    def apply(self, ids: Collection[str] | None = None) -> Outcome:
        """The outcome of the hunks named (None: all). Those that are accepted, rejected or in conflict change nothing.

        ReviewConflict when an open buffer would have to be written to another path and its bytes are not known.
        """
        given, able = self.input, self.change.open_hunks
        chosen = [part for part in self.parts if part.hunk.id in able and (ids is None or part.hunk.id in ids)]
        kinds = {part.kind for part in chosen}
        here = given.old_path if given.old_path is not None and not given.moved else given.path
        was_link = given.target.mode == LINK
        is_link = given.new.mode == LINK if "content" in kinds else was_link and "delete" not in kinds
        outcome = Outcome(here, here, given.target.content, self._content(chosen), self._executable(kinds))
        outcome = evolve(outcome, links=(was_link, is_link), mode=given.target.mode)
        if "rename" not in kinds:
            return outcome
        mode = given.new.mode if "mode" in kinds else given.target.mode
        return evolve(
            outcome, path=given.path, after=self._as_bytes(outcome.after, chosen), executable=mode == EXECUTABLE
        )

    def _content(self, chosen: list[Part]) -> Content:
        kinds = {part.kind for part in chosen}
        if "delete" in kinds:
            return None
        if "content" in kinds:
            return self.input.new.data
        edits = {part.placed.edit for part in chosen if part.placed}
        if not edits:
            return self.input.target.content
        lines = apply(self.agent, self.current, [part.placed for part in self.parts if part.placed], edits)
        if isinstance(self.input.target.content, str):
            return "".join(line for line in lines if isinstance(line, str))
        return b"".join(line for line in lines if isinstance(line, bytes))

    def _executable(self, kinds: Collection[str]) -> bool | None:
        makes = self.input.target.mode == ABSENT and bool(kinds)
        return self.input.new.mode == EXECUTABLE if makes or "mode" in kinds else None

    def _as_bytes(self, after: Content, chosen: list[Part]) -> Content:
        """A file moved to another path is written to the disk, so what an open buffer holds must be known as bytes."""
        if not isinstance(after, str):
            return after
        texts = [part.kind for part in chosen].count("text")
        if self.clean_buffer and texts == 0:
            return self.input.old.data
        if self.clean_buffer and texts == [part.kind for part in self.parts].count("text"):
            return self.input.new.data
        raise ReviewConflict(f"{self.input.old_path} is open in the editor with other text; save and close it first")

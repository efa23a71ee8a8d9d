"""Listing and searching a tree for Glob and Grep: ripgrep when it is on PATH, else `walk.py`, with the same results.

Both follow git's ignore rules (.gitignore, .git/info/exclude), show hidden files, skip `.git`, binary files and every
symlink below the root. They look at the disk, not at unsaved buffers. Regular expressions are Rust's with ripgrep
and Python's without.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import anyio
from attrs import asdict, evolve, frozen

from agent_core.errors import ToolError
from agent_core.tool import Place, ToolContext
from agent_core.tools import walk
from agent_core.tools.files import explain
from agent_core.tools.globs import alternatives
from agent_core.tools.paths import shown

_TIMEOUT = 60.0  # seconds
_MAX_COLLECTED = 32 * 1024 * 1024  # characters; a search that finds more is stopped

_RG = (
    "rg", "--no-config", "--hidden", "--no-ignore-global", "--no-ignore-dot", "--no-require-git", "--no-messages",
    "--crlf", "--null", "--color=never", "--no-heading", "--with-filename", "--line-number", "--glob=!.git",
)  # fmt: skip

Mode = Literal["files", "list", "count", "lines"]
"""Names of all files; names of files that match; matching lines counted; the lines themselves."""


@frozen
class Query:
    """`names` are globs for the last name of a path (a first selection; empty for all)."""

    mode: Mode
    names: tuple[str, ...] = ()
    pattern: str = ""
    ignore_case: bool = False
    multiline: bool = False
    before: int = 0
    after: int = 0


@frozen
class Found:
    """`output` as `rg --null` prints it, with names that start with `target`; `cut` when it was stopped for its size.

    `shown` is the searched folder or file as people see it: relative to the working directory, else absolute.
    """

    output: str
    cut: bool
    target: str
    shown: str

    def names(self) -> list[str]:
        """Of output that consists of names only. What follows the last NUL was torn."""
        return [self.name(raw) for raw in self.output.split("\0")[:-1]]

    def rows(self) -> list[str]:
        """The lines of other output; what follows the last LF was torn."""
        return self.output.split("\n")[:-1]

    def name(self, raw: str) -> str:
        inside = raw[len(self.target) :].lstrip("/")
        if self.shown == ".":
            return inside
        return f"{self.shown.rstrip('/')}/{inside}" if inside else self.shown


async def search(query: Query, root: Path, ctx: ToolContext) -> Found:
    """ToolError for a bad pattern, a root that does not exist, or a search that takes longer than a minute."""
    target = _target(root, ctx.place)
    argv = _rg(query, target) if shutil.which("rg") else _walk(query, target)
    exit_code, output, cut = await _collect(argv, ctx)
    found = Found(output, cut, target, shown(root, ctx.place))
    if exit_code is None:
        raise ToolError(f"The search took longer than {_TIMEOUT:.0f} s. Narrow it with path or glob.")
    if exit_code and output and "\0" not in output:  # 1: nothing found; 2: also when one file could not be read
        wrong = f"pattern {query.pattern!r} is not a valid regular expression" if "regex" in output else "Search failed"
        raise ToolError(f"{wrong}:\n{output.strip()}")
    return found


def modified(path: Path) -> float:
    """Seconds; 0 when it has gone meanwhile."""
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def _target(root: Path, place: Place) -> str:
    """Absolute and without links: with `sub` or a link, ripgrep before 15 misses the rules of the folders above."""
    try:
        root.stat()
    except OSError as error:
        raise explain(error, root) from error
    return "." if root == place.cwd else os.path.realpath(root)


def _rg(query: Query, target: str) -> list[str]:
    argv = list(_RG)
    if query.names:
        # A type instead of --glob, which would bring back ignored files.
        argv += [f"--type-add=selected:{name}" for name in query.names] + ["--type=selected"]
    if query.mode == "files":
        return [*argv, "--files", "--", target]
    argv += {"list": ["--files-with-matches"], "count": ["--count"], "lines": []}[query.mode]
    argv += ["--ignore-case"] if query.ignore_case else []
    argv += ["--multiline", "--multiline-dotall"] if query.multiline else []
    if query.mode == "lines":
        argv += [f"--before-context={query.before}", f"--after-context={query.after}"]
    return [*argv, f"--regexp={query.pattern}", "--", target]


def _walk(query: Query, target: str) -> list[str]:
    options = asdict(evolve(query, names=tuple(name for glob in query.names for name in alternatives(glob))))
    return [sys.executable, "-I", str(Path(walk.__file__)), json.dumps(options), target]


async def _collect(argv: Sequence[str], ctx: ToolContext) -> tuple[int | None, str, bool]:
    """Exit code (None: out of time), output, and whether there was too much of it."""
    pieces: list[str] = []
    size = 0
    exit_code: int | None = 0
    with anyio.CancelScope() as scope:

        def take(text: str) -> None:
            nonlocal size
            pieces.append(text)
            size += len(text)
            if size > _MAX_COLLECTED:
                scope.cancel()

        try:
            result = await ctx.processes.run(argv, cwd=ctx.place.cwd, timeout=_TIMEOUT, max_output=1, on_output=take)
        except OSError as error:
            raise ToolError(f"{argv[0]} could not be started: {error.strerror}.") from error
        exit_code = result.exit_code
    return exit_code, "".join(pieces), scope.cancelled_caught

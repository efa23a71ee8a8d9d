"""Where a tool call may work: paths from a model made absolute, and the guards of an isolated agent (WT-2)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from agent_core.errors import ToolError
from agent_core.tool import Place

Identity = tuple[int, int]
"""(device, inode): equal for every spelling of one folder (links, bind mounts, upper and lower case)."""


def resolve(text: str, place: Place) -> Path:
    """Absolute, `~` and `..` worked out, symlinks kept. The same path goes to the permission rules and to the disk."""
    if not text.strip() or "\0" in text:
        raise ToolError(f"{text!r} is not a path. Give an absolute path, or one relative to {place.cwd}.")
    path = Path(os.path.normpath(place.cwd / Path(text).expanduser()))
    try:
        path.resolve()
    except RuntimeError as error:  # until Python 3.13; later versions leave it to whoever opens the file
        raise ToolError(f"{path} is, or leads over, a symbolic link that leads back to itself.") from error
    return path


def shown(path: Path, place: Place) -> str:
    """Relative to the working directory when inside, else absolute."""
    return path.relative_to(place.cwd).as_posix() if path.is_relative_to(place.cwd) else path.as_posix()


def one_line(text: str, limit: int = 120) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def check_place(place: Place) -> None:
    """The working directory is still there and, with isolation, still in the agent's worktree; else ToolError.

    Nothing ever falls back to another directory.
    """
    if not place.cwd.is_dir():
        raise ToolError(
            f"The working directory {place.cwd} no longer exists, so nothing was done. "
            "No other directory is used instead; report this and stop."
        )
    if place.worktree is not None and _owner(Path(os.path.realpath(place.cwd)), place) != place.worktree:
        raise ToolError(
            f"The working directory {place.cwd} is no longer inside this agent's worktree {place.worktree}, "
            "so nothing was done. Report this and stop."
        )


def check_write(path: Path, place: Place) -> None:
    """ToolError when writing to `path` would reach a forbidden place: as it is spelled, through a linked folder, or as
    the target of a link."""
    if not place.forbidden:
        return
    for real in _real_spellings(path):
        owner = _owner(real, place)
        if owner is not None and owner != place.worktree:
            raise ToolError(
                f"{path} is in {owner}, which this agent must not change: it works in its own worktree"
                f"{f' {place.worktree}' if place.worktree else ''}. Write to the same file under {place.cwd} instead."
            )


def _real_spellings(path: Path) -> Iterator[Path]:
    """Where the entry itself is and, for a link, what it leads to."""
    itself = Path(os.path.realpath(path.parent), path.name)
    yield itself
    if itself.is_symlink():
        yield Path(os.path.realpath(itself))


def _owner(real: Path, place: Place) -> Path | None:
    """The nearest of the forbidden places and the worktree around `real`: either may lie inside the other.

    A forbidden place comes first when both are the same folder, as after a worktree was replaced by a link.
    """
    places = [*place.forbidden, *([place.worktree] if place.worktree else [])]
    known = {_identity(folder): folder for folder in reversed(places)}
    return next((known[identity] for around in (real, *real.parents) if (identity := _identity(around)) in known), None)


def _identity(path: Path) -> Identity | Path:
    """The path itself when there is nothing."""
    try:
        found = path.stat()
    except OSError:
        return path
    return found.st_dev, found.st_ino

"""Where a worktree may stand and what it may be called. Pure, apart from resolving links."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from agent_core.errors import WorktreeFailed

_LONGEST = 200  # characters of a project slug; a file name holds 255 bytes


def worktrees_folder(state: Path, cwd: Path) -> Path:
    """`<state>/worktrees/<project>` as a real path; nothing is made."""
    return state.resolve() / "worktrees" / project_slug(cwd)


def project_slug(cwd: Path) -> str:
    """Letters, digits and `-` only; at most 217 characters."""
    slug = re.sub(r"[^A-Za-z0-9]", "-", str(cwd))
    if len(slug) <= _LONGEST:
        return slug
    return f"{slug[:_LONGEST]}-{hashlib.sha256(os.fsencode(cwd)).hexdigest()[:16]}"


def check_location(location: Path) -> None:
    if not location.is_absolute() or ".." in location.parts or not location.name.strip():
        raise WorktreeFailed(f"worktree.location: {str(location)!r} must be an absolute folder path")
    if location.resolve() != location:
        raise WorktreeFailed(f"worktree.location: {location} leads over a symbolic link; use {location.resolve()}")


def check_outside(location: Path, checkouts: tuple[Path, ...]) -> None:
    """A checkout inside another shows up in its `git status` and is committed by `git add -A`."""
    for path in checkouts:
        if location.is_relative_to(path):
            raise WorktreeFailed(
                f"worktree.location: {location} is inside {path}; choose a folder outside the repository"
            )


def slugs(agent_id: str) -> Iterator[str]:
    yield from (f"agent-{agent_id[:length]}" for length in range(8, len(agent_id) + 4, 4))
    yield from (f"agent-{agent_id}-{count}" for count in range(2, 10))

"""Paths that no mode but bypass frees: writing there can make later commands run something else (features 13).

`guarded` speaks of writing, `critical` of removing. Both look at the spelling and at its target, in any case: on some
disks `.GIT` is `.git`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

FOLDERS = frozenset(
    {".git", ".vscode", ".idea", ".husky", ".cargo", ".devcontainer", ".yarn", ".mvn", ".claude", ".ssh"}
)
FILES = frozenset(
    {".gitconfig", ".gitmodules", ".envrc", ".npmrc", "bunfig.toml", ".devcontainer.json", ".ripgreprc", ".mcp.json"}
    | {".claude.json", "pyrightconfig.json", "gradle-wrapper.properties", "maven-wrapper.properties"}
    | {".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".kshrc", ".inputrc"}
    | {".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout", ".cshrc", ".tcshrc", ".login", ".xprofile"}
    | {"config.fish", "hgrc", ".hgrc"}
)
PATTERNS = re.compile(
    r"\.yarnrc.*|\.pnp\..*|\.bazel.*|\.?pre-commit-config\.ya?ml|\.pre-commit-hooks\.ya?ml|\.?lefthook(-local)?\..*",
    re.DOTALL,
)


def guarded(path: Path) -> bool:
    return any(_guarded(spelling) for spelling in _spellings(path))


def critical(path: Path, cwd: Path, home: Path, roots: Iterable[Path] = ()) -> bool:
    """`/` and what is directly in it, the home folder, drives and what is directly in them, `cwd`, the folders `roots`
    and everything that holds one of these."""
    kept = [folder for each in (cwd, home, *roots) for folder in _spellings(each)]
    return any(
        _near_root(spelling) or any(each.is_relative_to(spelling) for each in kept) for spelling in _spellings(path)
    )


def _spellings(path: Path) -> tuple[PurePosixPath, ...]:
    return tuple(PurePosixPath(each) for each in dict.fromkeys((os.path.normpath(path), os.path.realpath(path))))


def _guarded(path: PurePosixPath) -> bool:
    """`.claude/worktrees` holds checkouts: what is guarded in one is so by the rest of its path."""
    parts = [part.casefold() for part in path.parts]
    for index, part in enumerate(parts):
        if part == ".claude" and parts[index + 1 : index + 2] == ["worktrees"]:
            continue
        if part in FOLDERS or (part == ".config" and parts[index + 1 : index + 2] == ["git"]):
            return True
    return bool(parts) and (parts[-1] in FILES or PATTERNS.fullmatch(parts[-1]) is not None)


def _near_root(path: PurePosixPath) -> bool:
    """A mounted drive, such as `/mnt/c`, counts as a root of its own."""
    parts = path.parts
    if len(parts) <= 2:
        return True
    return parts[1] == "mnt" and len(parts[2]) == 1 and len(parts) <= 4

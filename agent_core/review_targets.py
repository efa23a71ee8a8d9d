"""The user's files as a review meets them, and which paths a review may touch at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable
from pathlib import Path, PurePosixPath

from anyio import to_thread
from attrs import frozen

from agent_core.ports import ReviewTarget
from agent_core.review import ABSENT, EXECUTABLE, FILE, LINK, OTHER, Target
from agent_core.worktree import Worktree


def blocked(worktree: Worktree, path: str) -> str | None:
    """Why `path` must not be written, in words; None when it may be. Looks at the disk; a link at `path` itself is
    fine, since it is replaced and never followed."""
    names = path.split("/")
    if PurePosixPath(path).is_absolute() or any(name in ("", ".", "..") or _divides(name) for name in names):
        return f"{path} does not stay inside the repository"
    if any(name.casefold().rstrip(". ") in (".git", "git~1") for name in names):
        return f"{path} is inside a git folder"
    target = worktree.repository / path
    if any(target.is_relative_to(folder) for folder in (worktree.common_dir, worktree.git_dir)):
        return f"{path} is inside a git folder"
    for parent in target.parents:
        if parent == worktree.repository:
            break
        if parent.is_symlink():
            return f"{path} leads over the symbolic link {parent.relative_to(worktree.repository)}"
    return None


def _divides(name: str) -> bool:
    """Elsewhere a backslash is a letter as any other."""
    return os.sep == "\\" and "\\" in name


def holds_only(folder: Path, root: Path, paths: Collection[str]) -> bool:
    """A folder, in which there is nothing but files of `paths`, relative to `root`."""
    if not folder.is_dir() or folder.is_symlink():
        return False
    files = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return all(str(path.relative_to(root)) in paths for path in files)


async def present(worktree: Worktree, target: ReviewTarget, path: str) -> Target:
    """What is at `path` now. An empty folder counts as nothing, as it does for git. A file that cannot be read is one
    that no change fits."""
    return (await survey(worktree, target, [path]))[path].target


@frozen
class Found:
    """`blocked` as above."""

    blocked: str | None
    target: Target


async def survey(worktree: Worktree, target: ReviewTarget, paths: Iterable[str]) -> dict[str, Found]:
    """`blocked` and `present` of many paths, in two turns of a thread: one for each file would take longer than all
    the rest."""
    names = list(dict.fromkeys(paths))
    looked = await to_thread.run_sync(lambda: [(blocked(worktree, n), *_look(worktree.repository / n)) for n in names])
    files = [name for name, (_, mode, _) in zip(names, looked, strict=True) if mode not in (LINK, OTHER)]
    contents = dict(zip(files, await target.read_all([worktree.repository / name for name in files]), strict=True))
    found = {}
    for name, (reason, mode, link) in zip(names, looked, strict=True):
        content = link if mode == LINK else contents.get(name)
        if mode == OTHER or isinstance(content, OSError):
            found[name] = Found(reason, Target(OTHER, None))
        else:
            found[name] = Found(reason, Target(mode, content))
    return found


def _look(path: Path) -> tuple[str, bytes | None]:
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return LINK, os.fsencode(path.readlink())
        if stat.S_ISDIR(mode):
            return (OTHER if any(path.iterdir()) else ABSENT), None
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT, None
    except OSError:
        return OTHER, None
    if not stat.S_ISREG(mode):
        return OTHER, None
    return (EXECUTABLE if mode & stat.S_IXUSR else FILE), None


def remove_empty_folder(path: Path) -> None:
    """Make room for a file where `present` saw nothing. OSError when it is not empty any more."""
    if path.is_dir() and not path.is_symlink():
        path.rmdir()

"""What the file tools share: reading through the FileSystem port with errors in plain words."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

import anyio.to_thread

from agent_core.errors import ToolError
from agent_core.ports import FileState
from agent_core.tool import ToolContext

T = TypeVar("T")

_ON_LOOP = 64 * 1024  # bytes or characters that are worked through in well under a millisecond
_NAMES_LOOKED_AT = 2000


async def load(path: Path, ctx: ToolContext) -> FileState:
    """The file as the agent should see it; ToolError when it cannot be read or does not exist."""
    try:
        return await ctx.files.read(path)
    except OSError as error:
        raise explain(error, path) from error


async def load_existing(path: Path, ctx: ToolContext) -> FileState | None:
    """None when there is no such file."""
    try:
        return await ctx.files.read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise explain(error, path) from error


def explain(error: OSError, path: Path) -> ToolError:
    match error.errno:
        case errno.ENOENT:
            return ToolError(f"{path} does not exist.{_suggestion(path)}")
        case errno.EISDIR:
            return ToolError(f"{path} is a directory. List it with Glob (path: {path}, pattern: *) or with ls.")
        case errno.ENOTDIR:
            return ToolError(f"{path} does not exist: a part of the path before the last is a file, not a directory.")
        case errno.EACCES | errno.EPERM:
            return ToolError(f"{path}: {error.strerror or 'permission denied'}. Nothing was changed.")
        case errno.EFBIG:
            return ToolError(f"{path} is too big to be read whole. Use Grep, or head, tail or sed -n in Bash.")
        case errno.EINVAL:
            return ToolError(f"{path} is not a regular file (a device, pipe or socket), so it is not opened.")
        case _:
            return ToolError(f"{path}: {error.strerror or error}.")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def human_size(size: int) -> str:
    if size < 1024:
        return f"{size} bytes"
    return f"{size / 1024:.1f} KiB" if size < 1024 * 1024 else f"{size / 1024 / 1024:.1f} MiB"


async def off_loop(size: int, work: Callable[[], T]) -> T:
    """Do pure `work` on `size` bytes: at once when small, else in a thread so that the loop stays free."""
    if size <= _ON_LOOP:
        return work()
    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)


def _suggestion(path: Path) -> str:
    """The nearest names in the same folder, or the nearest folder that exists."""
    folder = path.parent
    if not folder.is_dir():
        existing = next(parent for parent in folder.parents if parent.is_dir())
        return f" The nearest folder that exists is {existing}."
    near = get_close_matches(path.name, _names(folder), n=3, cutoff=0.6)
    return f" Did you mean {' or '.join(str(folder / name) for name in near)}?" if near else ""


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in itertools.islice(entries, _NAMES_LOOKED_AT))
    except OSError:
        return []

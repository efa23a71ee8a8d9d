"""Where reviewed changes go when no editor has the file open: the disk. Never through a symbolic link."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from anyio import to_thread

from agent_core.disk import Disk, write_atomically
from agent_core.errors import ReviewConflict, ToolError


class DiskTarget:
    """ReviewTarget for closed files. OSError passes through; then the file is as it was. Folders that a deletion
    leaves empty stay."""

    async def read_all(self, paths: Sequence[Path]) -> list[bytes | str | OSError | None]:
        return await to_thread.run_sync(lambda: [_read_or_fault(path) for path in paths])

    def keeps(self, path: Path) -> str | None:
        return None

    async def write(
        self, path: Path, before: bytes | str | None, after: bytes | str | None, executable: bool | None = None
    ) -> None:
        if isinstance(before, str) or isinstance(after, str):
            raise ReviewConflict(f"{path} is not open in an editor any more; review it again")
        await to_thread.run_sync(_check, path, before)
        if after is None:
            await to_thread.run_sync(lambda: path.unlink(missing_ok=True))
        elif after != before:
            try:
                await Disk().write(path, after, expected=before)
            except ToolError as error:
                raise ReviewConflict(f"{path} was changed meanwhile; review it again") from error
        if after is not None and executable is not None:
            await to_thread.run_sync(set_executable, path, executable)
        await to_thread.run_sync(_check, path, after)


def _read_or_fault(path: Path) -> bytes | OSError | None:
    try:
        return _read(path)
    except OSError as error:
        return error


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def _check(path: Path, expected: bytes | None) -> None:
    if path.is_symlink():
        raise ReviewConflict(f"{path} is a symbolic link now; review it again")
    if _read(path) != expected:
        raise ReviewConflict(f"{path} was changed meanwhile; review it again")


def set_executable(path: Path, executable: bool) -> None:
    """Whoever may read it may run it, as git does it."""
    mode = stat.S_IMODE(path.stat().st_mode)
    wanted = mode | (mode & 0o444) >> 2 if executable else mode & ~0o111
    if wanted != mode:
        path.chmod(wanted)


def replace_link(path: Path, before: bytes | None, after: bytes | None, links: tuple[bool, bool]) -> None:
    """Exchange a link or a file for the other, or make or remove a link. `links` says which of the two is one; its
    bytes are the path that it names. ReviewConflict, with nothing changed, when `before` is not there."""
    present = os.fsencode(path.readlink()) if path.is_symlink() else _read(path)
    if path.is_symlink() != links[0] or present != before:
        raise ReviewConflict(f"{path} was changed meanwhile; review it again")
    if after is None:
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".agent-{os.urandom(8).hex()}.tmp")
    try:
        if links[1]:
            temporary.symlink_to(os.fsdecode(after))
        else:
            write_atomically(temporary, after)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)

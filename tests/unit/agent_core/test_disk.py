from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from agent_core import disk
from agent_core.disk import Disk, write_atomically
from agent_core.errors import ToolError
from agent_core.ports import FileState

pytestmark = pytest.mark.anyio


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


async def test_write_then_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "a"
    assert await Disk().write(path, b"one", expected=None) is True
    assert await Disk().write(path, b"two", expected=b"one") is True
    assert await Disk().read(path) == FileState(b"two", unsaved=False)
    assert names(path.parent) == ["a"]


async def test_big_files_take_the_thread(tmp_path: Path) -> None:
    old, new = b"x" * 300_000, b"y" * 300_000
    (tmp_path / "a").write_bytes(old)
    assert await Disk().read(tmp_path / "a") == FileState(old, unsaved=False)
    await Disk().write(tmp_path / "a", new, expected=old)
    assert (tmp_path / "a").read_bytes() == new


@pytest.mark.parametrize(
    ("present", "expected", "word"),
    [(b"now", b"then", "changed"), (b"now", None, "appeared"), (None, b"then", "was deleted")],
)
async def test_unexpected_content_is_refused(
    tmp_path: Path, present: bytes | None, expected: bytes | None, word: str
) -> None:
    path = tmp_path / "a"
    if present is not None:
        path.write_bytes(present)
    with pytest.raises(ToolError, match=word):
        await Disk().write(path, b"mine", expected=expected)
    assert (path.read_bytes() if path.exists() else None) == present
    assert names(tmp_path) == ([] if present is None else ["a"])


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755])
def test_mode_bits_are_kept(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(mode)
    write_atomically(path, b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", mode)


def test_new_files_follow_the_umask_unless_a_mode_is_given(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "a", b"")
        write_atomically(tmp_path / "b", b"", mode=0o666)
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"] == [0o640, 0o666]


def test_symlinks_stay_and_their_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("sub/target")
    (tmp_path / "dangling").symlink_to("sub/later")
    write_atomically(tmp_path / "link", b"new")
    write_atomically(tmp_path / "dangling", b"made")
    assert [(tmp_path / name).is_symlink() for name in ("link", "dangling")] == [True, True]
    assert [(tmp_path / "sub" / name).read_bytes() for name in ("target", "later")] == [b"new", b"made"]


def test_d22_a_failing_write_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D22: never truncate first."""
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk, "_set_owner_and_mode", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert (path.read_bytes(), names(tmp_path)) == (b"old", ["a"])


def test_readers_never_see_a_part(tmp_path: Path) -> None:
    """The old file stays complete for whoever has it open."""
    path = tmp_path / "a"
    path.write_bytes(b"old content")
    with path.open("rb") as reader:
        write_atomically(path, b"x")
        assert reader.read() == b"old content"


def test_read_only_files_are_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write anything
    with pytest.raises(PermissionError):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"


async def test_pipes_and_folders_are_neither_opened_nor_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, error in ((tmp_path / "pipe", "Not a regular file"), (tmp_path, "Is a directory")):
        with pytest.raises(OSError, match=error):
            await Disk().read(path)
        with pytest.raises(OSError, match=error):
            write_atomically(path, b"")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


async def test_huge_files_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    with pytest.raises(OSError, match="too large"):
        await Disk().read(tmp_path / "a")

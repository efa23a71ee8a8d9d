"""The files that a snapshot is made of: which may have changed, as the base had them, as they are now."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from anyio import to_thread
from attrs import frozen

from agent_core.furnishing import made
from agent_core.git_objects import TreeEntry, store_files
from agent_core.ports import Git
from agent_core.repository import hidden_by_index, side_by_side
from agent_core.review import ABSENT, EXECUTABLE, FILE, LINK, SUBMODULE
from agent_core.worktree import Worktree


@frozen
class Candidates:
    """Paths that may differ from the base, and those of submodules; `base` are the files of the former that it has."""

    paths: tuple[str, ...]
    submodules: tuple[str, ...]
    base: Mapping[str, TreeEntry]


async def candidates(git: Git, worktree: Worktree, env: Mapping[str, str]) -> Candidates:
    """Compares by time stamps, so it hashes nothing."""
    diff = ("diff-index", "--raw", "-z", "--no-renames", "--no-abbrev", "--no-ext-diff", "--ignore-submodules=dirty")
    tracked = b""
    untracked = b""
    hidden: list[str] = []

    async def look_at_tracked() -> None:
        nonlocal tracked
        tracked = await git.run(worktree.path, *diff, worktree.base_commit, "--", env=env)

    async def look_for_others() -> None:
        nonlocal untracked, hidden
        untracked = await git.run(worktree.path, "ls-files", "-z", "--others", "--exclude-standard", env=env)
        hidden = await hidden_by_index(git, worktree.path, env)

    await side_by_side(look_at_tracked, look_for_others)
    paths: dict[str, None] = {}
    submodules: dict[str, None] = {}
    base: dict[str, TreeEntry] = {}
    words = tracked.split(b"\0")
    for info, name in zip(words[::2], words[1::2], strict=False):
        old, new, blob, *_ = info.decode().lstrip(":").split()
        path = os.fsdecode(name)
        if SUBMODULE in (old, new):
            submodules[path] = None
        else:
            paths[path] = None
        if old != ABSENT:
            base[path] = TreeEntry(path, old, blob)
    ours = made(worktree).unchanged(worktree.path)
    paths.update((name, None) for name in map(os.fsdecode, untracked.split(b"\0")) if name and name not in ours)
    unknown = [path for path in hidden if path not in base]
    paths.update(dict.fromkeys(hidden))
    base.update(await _in_base(git, worktree, unknown, env))
    return Candidates(tuple(paths), tuple(submodules), base)


async def _in_base(git: Git, worktree: Worktree, paths: Sequence[str], env: Mapping[str, str]) -> dict[str, TreeEntry]:
    if not paths:
        return {}
    command = ("--literal-pathspecs", "ls-tree", "-r", "-z", "--full-tree", worktree.base_commit, "--", *paths)
    lines = [line.partition(b"\t") for line in (await git.run(worktree.path, *command, env=env)).split(b"\0") if line]
    found = {os.fsdecode(name): info.decode().split() for info, _, name in lines}
    return {path: TreeEntry(path, mode, blob) for path, (mode, _, blob) in found.items()}


_CONVERTING = ("text", "eol", "crlf", "filter", "ident", "working-tree-encoding")


async def smudged(git: Git, stage: Path, base: Mapping[str, TreeEntry], index: Mapping[str, str]) -> list[TreeEntry]:
    """The base's files as a checkout writes them, those that it writes in another form. The stage holds no
    .gitattributes, so git takes those of the index, which is the base."""
    plain = {entry.path: entry for entry in base.values() if entry.mode in (FILE, EXECUTABLE)}
    files = [plain[path] for path in await _converted(git, stage, list(plain), index)]
    if not files:
        return []
    listing = b"".join(os.fsencode(entry.path) + b"\0" for entry in files)
    env = {**index, "GIT_WORK_TREE": str(stage)}
    output = await git.run(stage, "checkout-index", "--temp", "-z", "--stdin", env=env, stdin=listing)
    lines = [line.partition(b"\t") for line in output.split(b"\0") if line]
    oids = await store_files(git, stage, [stage / os.fsdecode(name) for name, _, _ in lines], env)
    written = {os.fsdecode(path): oid for (_, _, path), oid in zip(lines, oids, strict=True)}
    return [TreeEntry(entry.path, entry.mode, written[entry.path]) for entry in files]


async def _converted(git: Git, stage: Path, paths: Sequence[str], index: Mapping[str, str]) -> list[str]:
    """Those whose attributes, or the configuration, may mean another form on the disk; to ask is much cheaper than to
    write them all."""
    if not paths:
        return []
    env = {**index, "GIT_WORK_TREE": str(stage)}
    automatic = await git.run(stage, "config", "--get", "core.autocrlf", env=env, ok=(0, 1))
    if automatic.strip() not in (b"", b"false"):
        return list(paths)
    listing = b"".join(os.fsencode(path) + b"\0" for path in paths)
    command = ("check-attr", "--cached", "-z", "--stdin", *_CONVERTING)
    words = (await git.run(stage, *command, env=env, stdin=listing)).split(b"\0")
    marked = {name for name, value in zip(words[::3], words[2::3], strict=False) if value not in _PLAIN}
    return [path for path in paths if os.fsencode(path) in marked]


_PLAIN = (b"unspecified", b"unset")


async def agent_entries(
    git: Git,
    worktree: Worktree,
    paths: Sequence[str],
    stage: Path,
    base: Mapping[str, TreeEntry],
    env: Mapping[str, str],
) -> tuple[list[TreeEntry], list[str]]:
    """The agent's files, and the paths that cannot be read. Taken aside first: they may change or vanish meanwhile."""
    answer = await git.run(worktree.path, "config", "--type=bool", "--get", "core.fileMode", env=env, ok=(0, 1))
    keeps_modes = answer.strip() != b"false"
    targets = [stage / f"copy{number}" for number in range(len(paths))]
    pairs = list(zip(paths, targets, strict=True))
    found = await to_thread.run_sync(lambda: [_take(worktree.path, *pair) for pair in pairs])
    oids = await _stored(git, worktree, [each.data for each in found], targets, env)
    entries, skipped = [], []
    for path, each, oid in zip(paths, found, oids, strict=True):
        if each.mode is None:
            skipped.append(path)
        elif each.mode == ABSENT and path in base:
            entries.append(TreeEntry(path, ABSENT, base[path].blob))
        elif each.mode != ABSENT:
            entries.append(TreeEntry(path, each.mode if keeps_modes else _mode_in(base.get(path), each.mode), oid))
    # a file may go away where a folder comes: first take out, then put in
    return sorted(entries, key=lambda entry: entry.mode != ABSENT), skipped


async def _stored(
    git: Git, worktree: Worktree, contents: Sequence[bytes | None], targets: Sequence[Path], env: Mapping[str, str]
) -> list[str]:
    """Object ids, in order; "" where there is neither content nor a copy. What git has already, as most of what a
    review before this one saw, is not written again."""
    algorithm = "sha1" if len(worktree.base_commit) == 40 else "sha256"
    oids = [_blob_id(data, algorithm) if data is not None else "" for data in contents]
    asked = "".join(f"{oid}\n" for oid in oids if oid).encode()
    told = await git.run(worktree.path, "cat-file", "--batch-check", env=env, stdin=asked) if asked else b""
    missing = {line.split()[0].decode() for line in told.splitlines() if line.endswith(b"missing")}

    def put_aside() -> list[int]:
        new = [number for number, oid in enumerate(oids) if oid in missing]
        for number in new:
            targets[number].write_bytes(contents[number] or b"")
        return sorted([*new, *(number for number, oid in enumerate(oids) if not oid and targets[number].exists())])

    numbers = await to_thread.run_sync(put_aside)
    written = await store_files(git, worktree.git_dir, [targets[number] for number in numbers], env)
    for number, oid in zip(numbers, written, strict=True):
        oids[number] = oid
    return oids


def _blob_id(data: bytes, algorithm: str) -> str:
    return hashlib.new(algorithm, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _mode_in(before: TreeEntry | None, mode: str) -> str:
    """With core.fileMode off the x bit on disk says nothing."""
    if mode == LINK:
        return LINK
    return before.mode if before is not None and before.mode in (FILE, EXECUTABLE) else FILE


_BLOCK = 1 << 16
_MOST = 1 << 20
"""Bytes that are read at once, and of a file that is kept in memory."""


@frozen
class _Taken:
    """`mode` as git would record it; ABSENT when there is nothing that git can hold, None when it cannot be read.
    `data` None: it is large, and was copied."""

    mode: str | None
    data: bytes | None = None


def _take(root: Path, path: str, to: Path) -> _Taken:
    source = root / path
    try:
        if path.endswith("/") or any(parent.is_symlink() for parent in _parents(root, source)):
            return _Taken(None if path.endswith("/") else ABSENT)
        mode = source.lstat().st_mode
        if stat.S_ISLNK(mode):
            return _Taken(LINK, os.fsencode(source.readlink()))
        if not stat.S_ISREG(mode):
            return _Taken(ABSENT)
        data = _read(source, to)
    except (FileNotFoundError, NotADirectoryError):
        return _Taken(ABSENT)
    except OSError:
        return _Taken(None)
    return _Taken(EXECUTABLE if mode & stat.S_IXUSR else FILE, data)


def _read(source: Path, to: Path) -> bytes | None:
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb", buffering=0) as reading:
        data = b""
        while len(data) <= _MOST:
            block = reading.read(_BLOCK)
            if not block:
                return data
            data += block
        with to.open("wb") as writing:
            writing.write(data)
            shutil.copyfileobj(reading, writing, _BLOCK)
    return None


def _parents(root: Path, path: Path) -> Iterable[Path]:
    for parent in path.parents:
        if parent == root:
            return
        yield parent

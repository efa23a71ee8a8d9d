"""The files that a snapshot is made of: which may have changed, as the base had them, as they are now."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from anyio import to_thread

from agent_core.furnishing import made
from agent_core.git_objects import TreeEntry, store_files
from agent_core.ports import Git
from agent_core.repository import hidden_by_index
from agent_core.review import ABSENT, EXECUTABLE, FILE, LINK, SUBMODULE
from agent_core.worktree import Worktree


async def candidates(git: Git, worktree: Worktree, env: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Paths that may differ from the base, and those of submodules. Compares by time stamps, so it hashes nothing."""
    diff = ("diff-index", "--raw", "-z", "--no-renames", "--no-abbrev", "--no-ext-diff", "--ignore-submodules=dirty")
    tracked = (await git.run(worktree.path, *diff, worktree.base_commit, "--", env=env)).split(b"\0")
    untracked = await git.run(worktree.path, "ls-files", "-z", "--others", "--exclude-standard", env=env)
    paths: dict[str, None] = {}
    submodules: dict[str, None] = {}
    for info, name in zip(tracked[::2], tracked[1::2], strict=False):
        old, new = info.decode().lstrip(":").split()[:2]
        target = submodules if SUBMODULE in (old, new) else paths
        target[os.fsdecode(name)] = None
    ours = made(worktree).unchanged(worktree.path)
    paths.update((name, None) for name in map(os.fsdecode, untracked.split(b"\0")) if name and name not in ours)
    paths.update(dict.fromkeys(await hidden_by_index(git, worktree.path, env)))
    return list(paths), list(submodules)


async def base_entries(
    git: Git, worktree: Worktree, paths: Sequence[str], index: Mapping[str, str]
) -> dict[str, TreeEntry]:
    wanted = set(paths)
    output = await git.run(worktree.path, "ls-files", "-z", "--stage", env=index)
    entries = {}
    for line in output.split(b"\0"):
        info, _, name = line.partition(b"\t")
        if (path := os.fsdecode(name)) in wanted:
            mode, blob, _ = info.decode().split()
            entries[path] = TreeEntry(path, mode, blob)
    return entries


async def smudged(git: Git, stage: Path, base: Mapping[str, TreeEntry], index: Mapping[str, str]) -> list[TreeEntry]:
    """The base's files as a checkout writes them. The stage holds no .gitattributes, so git takes those of the index,
    which is the base."""
    files = [entry for entry in base.values() if entry.mode in (FILE, EXECUTABLE)]
    if not files:
        return []
    listing = b"".join(os.fsencode(entry.path) + b"\0" for entry in files)
    env = {**index, "GIT_WORK_TREE": str(stage)}
    output = await git.run(stage, "checkout-index", "--temp", "-z", "--stdin", env=env, stdin=listing)
    lines = [line.partition(b"\t") for line in output.split(b"\0") if line]
    oids = await store_files(git, stage, [stage / os.fsdecode(name) for name, _, _ in lines], env)
    written = {os.fsdecode(path): oid for (_, _, path), oid in zip(lines, oids, strict=True)}
    return [TreeEntry(entry.path, entry.mode, written[entry.path]) for entry in files]


async def agent_entries(
    git: Git,
    worktree: Worktree,
    paths: Sequence[str],
    stage: Path,
    base: Mapping[str, TreeEntry],
    env: Mapping[str, str],
) -> tuple[list[TreeEntry], list[str]]:
    """The agent's files, and the paths that cannot be read. Copied aside first: they may change or vanish meanwhile."""
    answer = await git.run(worktree.path, "config", "--type=bool", "--get", "core.fileMode", env=env, ok=(0, 1))
    keeps_modes = answer.strip() != b"false"
    targets = [stage / f"copy{number}" for number in range(len(paths))]
    modes = await to_thread.run_sync(lambda: [_copy(worktree.path, *pair) for pair in zip(paths, targets, strict=True)])
    copied = [target for target, mode in zip(targets, modes, strict=True) if mode not in (ABSENT, None)]
    oids = iter(await store_files(git, stage, copied, env))
    entries, skipped = [], []
    for path, mode in zip(paths, modes, strict=True):
        if mode is None:
            skipped.append(path)
        elif mode == ABSENT and path in base:
            entries.append(TreeEntry(path, ABSENT, base[path].blob))
        elif mode != ABSENT:
            entries.append(TreeEntry(path, mode if keeps_modes else _mode_in(base.get(path), mode), next(oids)))
    # a file may go away where a folder comes: first take out, then put in
    return sorted(entries, key=lambda entry: entry.mode != ABSENT), skipped


def _mode_in(before: TreeEntry | None, mode: str) -> str:
    """With core.fileMode off the x bit on disk says nothing."""
    if mode == LINK:
        return LINK
    return before.mode if before is not None and before.mode in (FILE, EXECUTABLE) else FILE


def _copy(root: Path, path: str, to: Path) -> str | None:
    """The mode git would record; ABSENT when there is nothing git can hold; None when it cannot be read."""
    source = root / path
    try:
        if path.endswith("/") or any(parent.is_symlink() for parent in _parents(root, source)):
            return None if path.endswith("/") else ABSENT
        mode = source.lstat().st_mode
        if stat.S_ISLNK(mode):
            to.write_bytes(os.fsencode(source.readlink()))
            return LINK
        if not stat.S_ISREG(mode):
            return ABSENT
        descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as reading, to.open("wb") as writing:
            while block := reading.read(1 << 20):
                writing.write(block)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError:
        return None
    return EXECUTABLE if mode & stat.S_IXUSR else FILE


def _parents(root: Path, path: Path) -> Iterable[Path]:
    for parent in path.parents:
        if parent == root:
            return
        yield parent

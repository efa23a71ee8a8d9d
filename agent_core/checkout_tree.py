"""A checkout as it is now, uncommitted and untracked work included, as a tree in git's own form.

What `git add --all` and `git write-tree` would make, with the user's filters and line-end conversion, by an index of
our own: the checkout's index, files, stash and refs stay as they are. Ignored files are left out, and so are
repositories inside it that are no submodules.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from anyio import to_thread
from attrs import frozen

from agent_core.git_objects import TreeEntry, update_index, write_tree
from agent_core.ports import Git
from agent_core.repository import hidden_by_index
from agent_core.review import EXECUTABLE, FILE, LINK


@frozen
class CheckoutTree:
    """`left_out` are the repositories inside that are no submodules."""

    tree: str
    left_out: tuple[str, ...]


@frozen
class Replaced:
    """A file as it is on the disk, None for none. `mode` None: that of the file, of a new one the ordinary one. `blob`
    is the commit of a submodule."""

    data: bytes | None
    mode: str | None = None
    blob: str | None = None


async def checkout_tree(
    git: Git,
    top: Path,
    git_dir: Path,
    *,
    env: Mapping[str, str] | None = None,
    instead: Mapping[str, Replaced] | None = None,
    without: Iterable[str] = (),
) -> CheckoutTree:
    """`instead` is what counts in place of the files, by path, `without` untracked paths that do not count.
    GitFailed when a file cannot be read."""
    with tempfile.TemporaryDirectory(prefix="agent-ls-") as folder:
        index = Path(folder) / "index"
        own = {**(env or {}), "GIT_INDEX_FILE": str(index)}
        await to_thread.run_sync(_copy, git_dir / "index", index)
        hidden = await hidden_by_index(git, top, own)
        await _update(git, top, own, "--no-assume-unchanged", hidden)
        await _update(git, top, own, "--no-skip-worktree", hidden)
        await git.run(top, "add", "--update", env=own)
        listed = await git.run(top, "ls-files", "-z", "--others", "--exclude-standard", env=own)
        untracked = {os.fsdecode(name) for name in listed.split(b"\0") if name} - set(without)
        inner = {name for name in untracked if name.endswith("/")}
        await _update(git, top, own, "--add", sorted(untracked - inner))
        await _put(git, top, own, instead or {})
        return CheckoutTree(await write_tree(git, top, own), tuple(sorted(inner)))


def _copy(index: Path, to: Path) -> None:
    """With its times, by which git knows what it need not read. A repository without files has none."""
    if index.exists():
        shutil.copy2(index, to)


async def _update(git: Git, top: Path, env: Mapping[str, str], option: str, paths: Sequence[str]) -> None:
    if paths:
        listing = b"".join(os.fsencode(path) + b"\0" for path in paths)
        await git.run(top, "update-index", option, "-z", "--stdin", env=env, stdin=listing)


async def _put(git: Git, top: Path, env: Mapping[str, str], instead: Mapping[str, Replaced]) -> None:
    """Contents in place of files, cleaned as git would when it adds the file."""
    await _update(git, top, env, "--force-remove", [path for path, each in instead.items() if _is_absent(each)])
    there = {path: each for path, each in instead.items() if not _is_absent(each)}
    stage = ("--literal-pathspecs", "ls-files", "-z", "--stage", "--", *there)
    listed = await git.run(top, *stage, env=env) if there else b""
    lines = [line.partition(b"\t") for line in listed.split(b"\0") if line]
    modes = {os.fsdecode(name): info.split()[0].decode() for info, _, name in lines}
    entries = [await _entry(git, top, env, path, each, modes.get(path, FILE)) for path, each in there.items()]
    if entries:
        await update_index(git, top, entries, env)


def _is_absent(each: Replaced) -> bool:
    return each.data is None and each.blob is None


async def _entry(git: Git, top: Path, env: Mapping[str, str], path: str, each: Replaced, present: str) -> TreeEntry:
    mode = each.mode or (present if present == EXECUTABLE else FILE)
    if each.blob is not None:
        return TreeEntry(path, mode, each.blob)
    filters = ("--no-filters",) if mode == LINK else ("--path", path)
    blob = await git.run(top, "hash-object", "-w", *filters, "--stdin", env=env, stdin=each.data)
    return TreeEntry(path, mode, blob.decode().strip())

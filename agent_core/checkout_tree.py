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
from agent_core.review import EXECUTABLE, FILE


@frozen
class CheckoutTree:
    """`left_out` are the repositories inside that are no submodules."""

    tree: str
    left_out: tuple[str, ...]


async def checkout_tree(
    git: Git,
    top: Path,
    git_dir: Path,
    *,
    env: Mapping[str, str] | None = None,
    instead: Mapping[str, bytes] | None = None,
    without: Iterable[str] = (),
) -> CheckoutTree:
    """`instead` are contents by path that count in place of the files, `without` untracked paths that do not count.
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


async def _put(git: Git, top: Path, env: Mapping[str, str], contents: Mapping[str, bytes]) -> None:
    """Contents in place of files, cleaned as git would when it adds the file."""
    listed = await git.run(top, "ls-files", "-z", "--stage", "--", *contents, env=env) if contents else b""
    lines = [line.partition(b"\t") for line in listed.split(b"\0") if line]
    modes = {os.fsdecode(name): info.split()[0].decode() for info, _, name in lines}
    entries = []
    for path, data in contents.items():
        blob = await git.run(top, "hash-object", "-w", "--path", path, "--stdin", env=env, stdin=data)
        mode = modes.get(path, FILE)
        entries.append(TreeEntry(path, mode if mode == EXECUTABLE else FILE, blob.decode().strip()))
    if entries:
        await update_index(git, top, entries, env)

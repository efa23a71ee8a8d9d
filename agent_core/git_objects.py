"""Blobs, trees and commits made without touching an index or a checkout of the user.

Bytes go in and come out as they are: no filter, no line-end conversion. `env` names the repository where needed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from anyio import to_thread
from attrs import frozen

from agent_core.errors import GitFailed
from agent_core.ports import Git

IDENTITY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "agent-ls"), ("EMAIL", "agent-ls@localhost"))
}


@frozen
class TreeEntry:
    """One path of a tree; `mode` is git's octal text. Mode 000000 takes the path out, whatever `blob` is."""

    path: str
    mode: str
    blob: str


async def store(git: Git, cwd: Path, contents: Sequence[bytes]) -> list[str]:
    """Object ids of `contents`, in order. One git process; the bytes pass through files, so size is no concern."""
    if not contents:
        return []
    with tempfile.TemporaryDirectory(prefix="agent-ls-") as folder:
        names = [Path(folder) / str(number) for number in range(len(contents))]
        await to_thread.run_sync(lambda: [path.write_bytes(data) for path, data in zip(names, contents, strict=True)])
        return await store_files(git, cwd, names)


async def store_files(git: Git, cwd: Path, paths: Sequence[Path], env: Mapping[str, str] | None = None) -> list[str]:
    """As `store`, of private regular files whose names hold no line break."""
    if not paths:
        return []
    listing = "".join(f"{path}\n" for path in paths).encode(errors="surrogateescape")
    output = await git.run(cwd, "hash-object", "-w", "--no-filters", "--stdin-paths", env=env, stdin=listing)
    return output.decode().split()


async def update_index(git: Git, cwd: Path, entries: Iterable[TreeEntry], env: Mapping[str, str]) -> None:
    """Change the index named by GIT_INDEX_FILE in `env`."""
    lines = [f"{entry.mode} {entry.blob}\t{entry.path}\0" for entry in entries]
    listing = "".join(lines).encode(errors="surrogateescape")
    await git.run(cwd, "update-index", "-z", "--index-info", env=env, stdin=listing)


async def write_tree(git: Git, cwd: Path, env: Mapping[str, str]) -> str:
    return (await git.run(cwd, "write-tree", env=env)).decode().strip()


async def tree_of(git: Git, cwd: Path, entries: Iterable[TreeEntry]) -> str:
    """A tree of `entries` only."""
    with tempfile.TemporaryDirectory(prefix="agent-ls-") as folder:
        env = {"GIT_INDEX_FILE": f"{folder}/index"}
        await update_index(git, cwd, entries, env)
        return await write_tree(git, cwd, env)


async def commit_tree(
    git: Git, cwd: Path, tree: str, parents: Iterable[str], message: str, identity: Mapping[str, str] | None = None
) -> str:
    """Runs no hook and signs nothing. `identity` are variables that say who commits, none for the one of the user's
    configuration; None: this program, which needs no configuration."""
    words = [word for parent in parents for word in ("-p", parent)]
    env = IDENTITY if identity is None else identity
    output = await git.run(cwd, "commit-tree", tree, *words, env=env, stdin=message.encode())
    return output.decode().strip()


async def read_blobs(git: Git, cwd: Path, oids: Iterable[str]) -> dict[str, bytes]:
    """Contents by object id, read by one process. GitFailed names an object that is missing."""
    wanted = list(dict.fromkeys(oids))
    if not wanted:
        return {}
    output = await git.run(cwd, "cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in wanted).encode())
    found, at = {}, 0
    for oid in wanted:
        end = output.index(b"\n", at)
        header = output[at:end].split()
        if header[-1] == b"missing":
            raise GitFailed(f"object {oid} is not in the repository of {cwd} any more", 128)
        size = int(header[2])
        found[oid] = output[end + 1 : end + 1 + size]
        at = end + size + 2
    return found

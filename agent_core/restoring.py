"""The way back: what an apply replaced is written again, what a discard threw away is open again.

Both read the recovery commit that the act itself made first (`recovery`). A file that has changed since is a conflict.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from anyio import to_thread
from attrs import field, frozen

from agent_core.disk_target import replace_link, set_executable
from agent_core.errors import GitFailed, NotReviewable, ReviewConflict, UserError
from agent_core.git_objects import read_blobs
from agent_core.ports import Git, ReviewTarget
from agent_core.recovery import recover_refs
from agent_core.review import ABSENT, EXECUTABLE, LINK, OTHER
from agent_core.review_plans import Conflict, named
from agent_core.review_targets import blocked, present, remove_empty_folder
from agent_core.worktree import Worktree


@frozen
class Restored:
    """`paths` are as they were; `discarded` are the hunks, by path, that are open again."""

    paths: tuple[str, ...]
    conflicts: tuple[Conflict, ...]
    discarded: Mapping[str, tuple[str, ...]] = field(factory=dict)


async def restore(
    git: Git, worktree: Worktree, target: ReviewTarget, agent_id: str, ref: str, paths: Sequence[str] | None
) -> Restored:
    """`paths` None: all of the act. NotReviewable when `ref` is no recovery ref of this agent."""
    record = await _record(git, worktree, agent_id, ref)
    known_as = named(record.get("discarded", record.get("after", ())))
    paths = None if paths is None else [known_as.get(path, path) for path in paths]
    if "discarded" in record:
        kept = {path: tuple(ids) for path, ids in record["discarded"].items() if paths is None or path in paths}
        return Restored(tuple(kept), (), kept)
    done: list[str] = []
    conflicts: list[Conflict] = []
    # what was not there goes first: it may stand where a folder was
    known = sorted(record["after"], key=lambda path: path not in record["absent"])
    wanted = known if paths is None else paths
    before = await _before(git, worktree, ref, wanted)
    for path in wanted:
        try:
            if path not in known:
                raise ReviewConflict(f"{path} was not changed by that apply")
            await _put_back(worktree, target, ref, path, record, *before.get(path, (ABSENT, None)))
            done.append(path)
        except (UserError, OSError) as error:
            conflicts.append(Conflict(path, None, str(error)))
    return Restored(tuple(done), tuple(conflicts))


async def _record(git: Git, worktree: Worktree, agent_id: str, ref: str) -> dict[str, Any]:
    prefix = f"{recover_refs(agent_id)}/"
    if not ref.startswith(prefix) or not ref.removeprefix(prefix).isdigit():
        raise NotReviewable(f"{ref!r} is no recovery ref of agent {agent_id}; agent/apply and agent/discard name them")
    try:
        message = await git.run(worktree.common_dir, "log", "-1", "--format=%B", ref, "--")
        record = json.loads(message.decode().partition("\n\n")[2])
    except (GitFailed, ValueError) as error:
        raise NotReviewable(f"there is nothing to restore under {ref}") from error
    return dict(record)


async def _put_back(
    worktree: Worktree,
    target: ReviewTarget,
    ref: str,
    path: str,
    record: Mapping[str, Any],
    mode: str,
    before: bytes | None,
) -> None:
    if reason := await to_thread.run_sync(blocked, worktree, path):
        raise ReviewConflict(reason)
    place = worktree.repository / path
    now = await present(worktree, target, path)
    if now.mode == OTHER or _digest(now.content) != record["after"][path]:
        raise ReviewConflict(f"{path} was changed after the apply and is left as it is; {ref} holds the text before")
    if path in record["absent"]:
        mode, before = ABSENT, None
    if LINK in (mode, now.mode):
        if isinstance(now.content, str):
            raise ReviewConflict(f"{path} is open in the editor; close it first")
        await to_thread.run_sync(replace_link, place, now.content, before, (now.mode == LINK, mode == LINK))
        return
    if before is not None:
        await to_thread.run_sync(remove_empty_folder, place)
    content: bytes | str | None = before
    if before is not None and isinstance(now.content, str):
        content = before.decode("utf-8", "surrogatepass")
    await target.write(place, now.content, content)
    if before is not None and await to_thread.run_sync(place.is_file):
        await to_thread.run_sync(set_executable, place, mode == EXECUTABLE)


async def _before(git: Git, worktree: Worktree, ref: str, paths: Sequence[str]) -> dict[str, tuple[str, bytes]]:
    """Mode and bytes that files had before the act, of all at once."""
    listed = await git.run(worktree.common_dir, "ls-tree", "-r", "-z", "--full-tree", ref)
    lines = [line.partition(b"\t") for line in listed.split(b"\0") if line]
    found = {os.fsdecode(name): info.decode().split() for info, _, name in lines}
    there = {path: found[path] for path in paths if path in found}
    data = await read_blobs(git, worktree.common_dir, [blob for _, _, blob in there.values()])
    return {path: (mode, data[blob]) for path, (mode, _, blob) in there.items()}


def _digest(content: bytes | str | None) -> str | None:
    if content is None:
        return None
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return hashlib.sha256(data).hexdigest()

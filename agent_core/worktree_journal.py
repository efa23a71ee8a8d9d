"""Which worktrees are ours: one small file beside each, written before git makes anything and removed when all is gone.

So a next start knows what a process that was killed has left, however far it had come (`worktree_leftovers`).
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from attrs import asdict, evolve, frozen

from agent_core.disk import write_atomically


@frozen
class Entry:
    """`path` is the worktree's, whose name is also that of its branch; `repository` the checkout of the session,
    `commit` the base. `pid` is the process that made it. Until the folder is `made` it may be somebody else's."""

    path: Path
    agent_id: str
    repository: Path
    commit: str
    pid: int
    made: bool = False


def enter(path: Path, agent_id: str, repository: Path, commit: str) -> Entry | None:
    """Before the folder is made. None when there is an entry for it."""
    entry = Entry(path, agent_id, repository, commit, os.getpid())
    try:
        descriptor = os.open(_file(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return None
    with os.fdopen(descriptor, "wb") as file:
        file.write(_written(entry))
    return entry


def confirm(entry: Entry) -> None:
    """The folder is ours."""
    write_atomically(_file(entry.path), _written(evolve(entry, made=True)), mode=0o600)


def _written(entry: Entry) -> bytes:
    values = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(entry).items()}
    return json.dumps(values).encode(errors="surrogateescape")


def strike(path: Path) -> None:
    """One that is not there is fine."""
    _file(path).unlink(missing_ok=True)


def entries(location: Path) -> list[Entry]:
    """Of all worktrees in that folder. What is no entry is passed over."""
    found = (_read(file) for file in sorted(location.glob("agent-*.json")))
    return [entry for entry in found if entry is not None]


def _file(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _read(file: Path) -> Entry | None:
    try:
        values = json.loads(file.read_bytes())
        texts = {name: str(values[name]) for name in ("agent_id", "commit")}
        path, repository, pid = Path(values["path"]), Path(values["repository"]), int(values["pid"])
        made = values["made"] is True
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Entry(path, repository=repository, pid=pid, made=made, **texts) if _file(path) == file else None

"""Which worktrees are ours: one small file beside each, written before git makes anything and removed when all is gone.

So a next start knows what a process that was killed has left, however far it had come (`worktree_leftovers`).
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from attrs import asdict, frozen

from agent_core.disk import write_atomically


@frozen
class Entry:
    """`path` is the worktree's, whose name is also that of its branch; `repository` the checkout of the session,
    `commit` the base. `pid` is the process that made it."""

    path: Path
    agent_id: str
    repository: Path
    commit: str
    pid: int


def enter(path: Path, agent_id: str, repository: Path, commit: str) -> None:
    entry = Entry(path, agent_id, repository, commit, os.getpid())
    values = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(entry).items()}
    write_atomically(_file(path), json.dumps(values).encode(errors="surrogateescape"), mode=0o600)


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
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Entry(path, repository=repository, pid=pid, **texts) if _file(path) == file else None

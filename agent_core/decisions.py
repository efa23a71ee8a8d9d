"""What a person has decided about one agent's changes, kept beside its transcript: rejected hunks, the last round."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from agent_core.disk import write_atomically


@frozen
class Decisions:
    """`rejected`: ids of hunks by path. `baseline`: the tree of the last commented round, None before the first."""

    rejected: Mapping[str, tuple[str, ...]] = field(factory=dict)
    baseline: str | None = None

    def reject(self, path: str, hunks: Sequence[str]) -> Decisions:
        ids = tuple(dict.fromkeys((*self.rejected.get(path, ()), *hunks)))
        return evolve(self, rejected={**self.rejected, path: ids})

    def take_back(self, path: str, hunks: Sequence[str]) -> Decisions:
        left = tuple(each for each in self.rejected.get(path, ()) if each not in hunks)
        others = {name: ids for name, ids in self.rejected.items() if name != path}
        return evolve(self, rejected={**others, path: left} if left else others)


def read_decisions(path: Path) -> Decisions:
    """A file that is not there, or that cannot be understood, holds none: then everything is shown as open again."""
    try:
        values: Any = json.loads(path.read_text("utf-8"))
        rejected = {str(name): tuple(map(str, ids)) for name, ids in values["rejected"].items()}
        baseline = values["baseline"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Decisions()
    return Decisions(rejected, baseline if isinstance(baseline, str) else None)


def write_decisions(path: Path, decisions: Decisions) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    values = {"rejected": {name: list(ids) for name, ids in decisions.rejected.items()}, "baseline": decisions.baseline}
    write_atomically(path, json.dumps(values).encode(), mode=0o600)

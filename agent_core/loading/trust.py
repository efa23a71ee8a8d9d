"""Whose folders may change what runs on this machine: what the person decided before, here and in Claude Code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_core.definitions import Definitions
from agent_core.disk import write_atomically
from agent_core.loading.layers import Layer
from agent_core.permissions.modes import wider_than_default


def trusted_before(folder: Path, state: Path, home: Path) -> bool:
    """By this product's own memory, which is the newer one, else by `~/.claude.json`. A trusted folder says nothing of
    repositories inside it: each is asked for by itself."""
    own = _read(state / "trust.json").get(str(folder))
    if isinstance(own, bool):
        return own
    projects = _read(home / ".claude.json").get("projects")
    entry = projects.get(str(folder)) if isinstance(projects, dict) else None
    return isinstance(entry, dict) and entry.get("hasTrustDialogAccepted") is True


def decided_before(folder: Path, state: Path) -> bool:
    """The person has said yes or no, here."""
    return isinstance(_read(state / "trust.json").get(str(folder)), bool)


def remember(folder: Path, state: Path, trusted: bool) -> None:
    """OSError when it cannot be kept."""
    path = state / "trust.json"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    known = {**_read(path), str(folder): trusted}
    text = json.dumps(known, indent=2, ensure_ascii=False) + "\n"
    write_atomically(path, text.encode("utf-8", "surrogatepass"), mode=0o600)


def waiting(layers: Sequence[Layer], definitions: Definitions) -> tuple[str, ...]:
    """What the folder's own files want that its person has not agreed to yet, in words."""
    own = [layer for layer in layers if layer.from_project]
    rules = sum(len(found) for layer in own if isinstance(found := layer.part("allow"), list))
    folders = any(layer.part("additionalDirectories") for layer in own)
    others = sorted({name for layer in own for name in layer.values if name not in ("permissions", "$schema")})
    wide = [
        each.name
        for each in definitions.active
        if each.source == "project" and each.permission_mode and wider_than_default(each.permission_mode)
    ]
    said = {
        f"{rules} allow {'rule' if rules == 1 else 'rules'}": rules,
        "further folders": folders,
        f"settings ({', '.join(others)})": others,
        f"agents with a wider permission mode ({', '.join(wide)})": wide,
    }
    return tuple(words for words, there in said.items() if there)


def _read(path: Path) -> dict[str, Any]:
    """What cannot be read grants nothing."""
    try:
        values = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}

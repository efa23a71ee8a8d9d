"""The shell commands of `scenarios/shell` with what becomes of each: `allow`, `ask` or `deny` under every set of rules.

    rules.toml          the sets of rules, by name
    <category>.toml     [[entry]] command, decisions, and `sentinel = true` for what must not run under any of the sets

The decisions hold in a folder with FILES and LINK, which leads out of it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from agent_core.permissions.types import Behavior

PLACE = Path(__file__).parent / "scenarios" / "shell"
CATEGORIES = (
    *("quoting", "expansion", "substitution", "heredocs", "wrappers", "assignments"),
    *("redirects", "paths", "git", "interpreters", "unicode", "syntax_errors"),
)
FILES = {"a.txt": "x\n", ".env": "x\n", "src/b.py": "x\n"}
LINK = "out"
Rules = dict[Behavior, list[str]]


@frozen
class Entry:
    category: str
    command: str
    decisions: Mapping[str, str]
    sentinel: bool


def rule_sets() -> dict[str, Rules]:
    return tomllib.loads((PLACE / "rules.toml").read_text("utf-8"))


def entries() -> list[Entry]:
    return [
        Entry(category, each["command"], each["decisions"], each.get("sentinel", False))
        for category in CATEGORIES
        for each in tomllib.loads((PLACE / f"{category}.toml").read_text("utf-8"))["entry"]
    ]


def furnish(folder: Path) -> None:
    """Creates it."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / LINK).symlink_to(folder.parent)

"""One source of settings each, as it was read. What cannot be read does not take rules out of force (fail closed)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from attrs import evolve, field, frozen

from agent_core.definitions import Problem
from agent_core.json_places import Where, line_of, spans

Level = Literal["managed", "command line", "client", "local", "project", "user"]
State = Literal["read", "kept", "unknown"]


@frozen
class Layer:
    """`name` is a path, or what people call it; `anchor` is where its rules' `/path` starts; `text` is what `values`
    were read from. `state` is `kept` when the file is broken now and these are its last good values, `unknown` when
    there were none."""

    name: str
    values: Mapping[str, Any]
    anchor: Path
    level: Level
    text: str = field(default="", repr=False)
    state: State = "read"

    @property
    def from_project(self) -> bool:
        """What it frees waits for trust."""
        return self.level in ("local", "project")

    def part(self, name: str) -> Any:
        """Of `permissions`; None without one."""
        permissions = self.values.get("permissions")
        return permissions.get(name) if isinstance(permissions, dict) else None

    def line(self, *where: str | int) -> int | None:
        return self.lines((where,))[where]

    def lines(self, wanted: tuple[Where, ...]) -> dict[Where, int | None]:
        found = spans(self.text) if self.text else {}
        return {where: line_of(self.text, found[where].lead) if where in found else None for where in wanted}

    def problem(self, message: str, *where: str | int, severity: Literal[1, 2] = 2) -> Problem:
        return Problem(Path(self.name), self.line(*where) or 0, severity, message)


def read_layer(path: Path, anchor: Path, level: Level, problems: list[Problem], earlier: Layer | None = None) -> Layer:
    """An absent file is an empty layer. A broken one is reported, and what it said before (`earlier`) goes on."""
    layer = Layer(str(path), {}, anchor, level)
    try:
        text = path.read_text("utf-8-sig")
        return evolve(layer, values=_shaped(parse(text)), text=text)
    except (FileNotFoundError, NotADirectoryError):
        return layer
    except json.JSONDecodeError as error:
        line, message = error.lineno - 1, f"not valid JSON: {error.msg}"
    except (OSError, ValueError) as error:  # with no right to read, no UTF-8, or no object
        line, message = 0, f"cannot be read: {error}"
    if earlier is not None and earlier.state != "unknown":
        problems.append(
            Problem(path, line, 1, f"{message}. What the file said before stays in force until it is mended")
        )
        return evolve(earlier, anchor=anchor, state="kept")
    closed = "What it denies is not known, so every call asks until it is mended"
    problems.append(Problem(path, line, 1, f"{message}. {closed}"))
    return evolve(layer, state="unknown")


def parse(text: str) -> Mapping[str, Any]:
    """ValueError when `text` holds no JSON object."""
    try:
        values = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(values, dict):
        raise ValueError("it must hold a JSON object")
    return values


def _shaped(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """A slip of the pen that would take all restrictions of a file out of force makes it broken, as bad JSON does."""
    permissions = values.get("permissions")
    if not isinstance(permissions, dict | None):
        raise ValueError("permissions must be an object")
    for name in ("deny", "ask"):
        if not isinstance(permissions.get(name) if permissions else None, list | str | None):
            raise ValueError(f"permissions.{name} must be a list of rules")
    return values

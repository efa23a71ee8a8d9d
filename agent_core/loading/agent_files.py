"""Agent definition files: Markdown with YAML front matter. A BOM or CRLF is no reason to ignore one (M1)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attrs import evolve

from agent_core.definitions import PRECEDENCE, AgentDefinition, Definitions, Problem, Source
from agent_core.hooks.parsing import of_agent, parse_hooks
from agent_core.hooks.values import Hook
from agent_core.permissions.types import PermissionMode

_FRONT = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_KNOWN = frozenset(
    {"name", "description", "tools", "disallowedTools", "model", "permissionMode", "maxTurns", "skills", "mcpServers"}
    | {"hooks", "memory", "background", "effort", "isolation", "color", "initialPrompt", "requiredMcpServers"}
)
_COLORS = ("red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan")


def read_folder(folder: Path, source: Source) -> tuple[list[AgentDefinition], list[Problem]]:
    """All definitions below `folder`, in path order; folders that are not there hold none."""
    definitions: list[AgentDefinition] = []
    problems: list[Problem] = []
    for path in sorted(folder.rglob("*.md")) if folder.is_dir() else []:
        found = read_file(path, source, problems)
        if found and (twin := next((other for other in definitions if other.name == found.name), None)):
            problems.append(Problem(path, 0, 2, f"the agent {found.name!r} is already defined in {twin.path}"))
        elif found:
            definitions.append(found)
    return definitions, problems


def read_mapping(agents: Any, path: Path, source: Source) -> tuple[list[AgentDefinition], list[Problem]]:
    """Name to {description, prompt, ...}, as `--agents` and the settings key `agents` have it (SEL-7)."""
    definitions: list[AgentDefinition] = []
    problems: list[Problem] = []
    if not isinstance(agents, dict):
        return [], [Problem(path, 0, 1, f"agents must be an object of name to agent, not {agents!r}")]
    for name, fields in agents.items():
        if not isinstance(fields, dict) or not isinstance(fields.get("prompt"), str):
            problems.append(Problem(path, 0, 1, f"the agent {name!r} must be an object with description and prompt"))
            continue
        named = {**{key: value for key, value in fields.items() if key != "prompt"}, "name": name}
        if found := _Reader(named, "", path, problems).definition(fields["prompt"].strip(), source):
            definitions.append(evolve(found, path=None))
    return definitions, problems


def read_file(path: Path, source: Source, problems: list[Problem]) -> AgentDefinition | None:
    """None for a file that defines no agent: documentation (no front matter or no name), or one with an error."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        problems.append(Problem(path, 0, 1, f"cannot be read: {error}"))
        return None
    return parse_definition(text, path, source, problems)


def parse_definition(text: str, path: Path, source: Source, problems: list[Problem]) -> AgentDefinition | None:
    text = text.replace("\r\n", "\n")
    front = _FRONT.match(text)
    fields = _yaml(front[1], path, problems) if front else None
    if front is None or fields is None or "name" not in fields:
        return None
    return _Reader(fields, front[1], path, problems).definition(text[front.end() :].strip(), source)


def merge(groups: Iterable[tuple[list[AgentDefinition], list[Problem]]]) -> Definitions:
    """A name at a higher level replaces the lower ones (SEL-7); within a level the first group wins."""
    active: dict[str, AgentDefinition] = {}
    overridden: list[AgentDefinition] = []
    problems: list[Problem] = []
    every: list[AgentDefinition] = []
    for definitions, found in groups:
        every.extend(definitions)
        problems.extend(found)
    for definition in sorted(every, key=lambda each: PRECEDENCE.index(each.source)):
        if definition.name in active:
            overridden.append(definition)
        else:
            active[definition.name] = definition
    return Definitions(tuple(sorted(active.values(), key=lambda each: each.name)), tuple(overridden), tuple(problems))


def _yaml(text: str, path: Path, problems: list[Problem]) -> dict[str, Any] | None:
    import yaml

    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 0
        what = getattr(error, "problem", None) or "it does not parse"
        problems.append(Problem(path, line, 1, f"the front matter is not valid YAML: {what}"))
        return None
    if not isinstance(value, dict):
        return None
    return {str(key): item for key, item in value.items()}


class _Reader:
    """Reads one front matter field by field; a bad optional field is reported and left out, the agent still loads."""

    def __init__(self, fields: dict[str, Any], text: str, path: Path, problems: list[Problem]) -> None:
        self.fields, self.lines, self.path, self.problems = fields, text.split("\n"), path, problems

    def definition(self, prompt: str, source: Source) -> AgentDefinition | None:
        name = self.fields["name"]
        if not isinstance(name, str) or not name or name.startswith("-") or ":" in name:
            self._error("name", "must be a text without ':' that does not start with '-'")
            return None
        if not _NAME.fullmatch(name):
            self._warn("name", "should hold lowercase letters, digits and hyphens only")
        description = self.fields.get("description")
        if not isinstance(description, str) or not description.strip():
            self._error("description", "is missing: say in a sentence when to use this agent")
            return None
        for field in sorted(set(self.fields) - _KNOWN):
            self._warn(field, "is no field of an agent file and is ignored")
        return AgentDefinition(
            name=name,
            description=description.strip(),
            prompt=prompt,
            source=source,
            path=self.path,
            tools=self._names("tools"),
            disallowed_tools=self._names("disallowedTools") or (),
            model=self._text("model"),
            permission_mode=self._mode(),
            max_turns=self._turns(),
            background=self._flag("background"),
            isolation="worktree" if self._choice("isolation", ("worktree", "none")) == "worktree" else None,
            color=self._choice("color", _COLORS),
            hooks=self._hooks(source),
        )

    def _names(self, field: str) -> tuple[str, ...] | None:
        value = self.fields.get(field)
        if value is None:
            return None
        if isinstance(value, str):
            value = re.findall(r"[^,\s(]+(?:\([^)]*\))?", value)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            names = tuple(item.strip() for item in value)
            return None if names == ("*",) else names
        # An allow-list that cannot be read must not become "everything".
        self._warn(field, "must be a list of tool names; no tool is given")
        return () if field == "tools" else None

    def _hooks(self, source: Source) -> tuple[Hook, ...]:
        """HK-2. A plugin's agents bring none."""
        value = self.fields.get("hooks")
        if value is not None and source == "plugin":
            self._warn("hooks", "of a plugin's agent do not run")
            return ()

        def report(message: str) -> None:
            self.problems.append(Problem(self.path, self._line("hooks"), 2, message))

        return of_agent(parse_hooks(value, str(self.path), source == "project", report), report)

    def _text(self, field: str) -> str | None:
        value = self.fields.get(field)
        if value is None or (isinstance(value, str) and value.strip()):
            return value.strip() if value else None
        self._warn(field, f"must be a text, not {value!r}")
        return None

    def _mode(self) -> PermissionMode | None:
        value = self._text("permissionMode")
        if value is None:
            return None
        try:
            return PermissionMode("default" if value == "manual" else value)
        except ValueError:
            self._warn("permissionMode", f"{value!r} is none of {', '.join(PermissionMode)}; default is used")
            return PermissionMode.DEFAULT

    def _turns(self) -> int | None:
        value = self.fields.get("maxTurns")
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
            return value
        self._warn("maxTurns", f"must be a whole number above 0, not {value!r}")
        return None

    def _flag(self, field: str) -> bool:
        value = self.fields.get(field, False)
        if isinstance(value, bool):
            return value
        self._warn(field, f"must be true or false, not {value!r}")
        return False

    def _choice(self, field: str, allowed: tuple[str, ...]) -> str | None:
        value = self._text(field)
        if value is None or value in allowed:
            return value
        self._warn(field, f"{value!r} is none of {', '.join(allowed)}")
        return None

    def _error(self, field: str, message: str) -> None:
        self.problems.append(Problem(self.path, self._line(field), 1, f"{field} {message}"))

    def _warn(self, field: str, message: str) -> None:
        self.problems.append(Problem(self.path, self._line(field), 2, f"{field} {message}"))

    def _line(self, field: str) -> int:
        return next((index + 1 for index, line in enumerate(self.lines) if line.startswith(f"{field}:")), 0)

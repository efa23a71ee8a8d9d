"""Agent definitions: what a `.claude/agents/*.md` file, a settings entry or a built-in says (SEL-7, SEL-8)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from attrs import frozen

from agent_core.hooks.values import Hook
from agent_core.permissions.types import PermissionMode

Source = Literal["managed", "cli", "project", "user", "plugin", "builtin"]
PRECEDENCE: tuple[Source, ...] = ("managed", "cli", "project", "user", "plugin", "builtin")
"""Highest first."""

FORK = "fork"
"""The agent type of forks, and the name by which rules deny them."""

Isolation = Literal["none", "worktree"]
BaseKind = Literal["head", "snapshot", "fresh"]
"""What a worktree starts from (protocol.md, worktree.base)."""
BASES: tuple[BaseKind, ...] = ("head", "snapshot", "fresh")


@frozen
class AgentDefinition:
    """`tools` None means all; `model` None means inherit; `prompt` is the whole system prompt of the agent.

    `read_only` holds for built-ins that must not write by any tool (TL-6).
    """

    name: str
    description: str
    prompt: str
    source: Source
    path: Path | None = None
    tools: tuple[str, ...] | None = None
    disallowed_tools: tuple[str, ...] = ()
    model: str | None = None
    permission_mode: PermissionMode | None = None
    max_turns: int | None = None
    background: bool = False
    isolation: Isolation | None = None
    color: str | None = None
    read_only: bool = False
    hooks: tuple[Hook, ...] = ()


@frozen
class Problem:
    """A fault in a configuration file. `line` counts from 0; `severity` as in LSP: 1 error, 2 warning."""

    path: Path
    line: int
    severity: Literal[1, 2]
    message: str


@frozen
class Definitions:
    """All definitions found, the active ones first by name, and the faults met on the way."""

    active: tuple[AgentDefinition, ...]
    overridden: tuple[AgentDefinition, ...]
    problems: tuple[Problem, ...]

    def get(self, name: str) -> AgentDefinition | None:
        return next((definition for definition in self.active if definition.name == name), None)

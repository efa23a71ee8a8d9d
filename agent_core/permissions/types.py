"""Permission values: modes, rules, facts about a call, the ask, the answer, the decision.

PermissionDecision = Allow | Deny | Ask
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any, Literal

from attrs import field, frozen

from agent_core.ids import AgentId, RequestId


class PermissionMode(StrEnum):
    """PM-1. `bubble` decides like `default`, except that edits inside the agent's own worktree are free (PM-7)."""

    DEFAULT = "default"
    ACCEPT_EDITS = "acceptEdits"
    PLAN = "plan"
    DONT_ASK = "dontAsk"
    BYPASS = "bypassPermissions"
    BUBBLE = "bubble"


class ToolKind(StrEnum):
    READ = "read"
    EDIT = "edit"
    DELETE = "delete"
    MOVE = "move"
    SEARCH = "search"
    EXECUTE = "execute"
    THINK = "think"
    FETCH = "fetch"
    OTHER = "other"


class Match(Enum):
    """Does a rule speak of a call?"""

    NO = "no"
    YES = "yes"
    UNCLEAR = "unclear"


Behavior = Literal["deny", "ask", "allow"]
Destination = Literal["session", "localSettings", "projectSettings", "userSettings"]
DecidedBy = Literal["user", "rule", "hook", "mode", "none"]


@frozen
class PermissionRule:
    """One rule of a settings file, such as `Bash(make test)`. `specifier` None matches every call of the tool.

    `anchor` is the folder that a specifier starting with `/` is relative to; `line` counts from 0.
    """

    tool: str
    specifier: str | None
    behavior: Behavior
    source: str
    anchor: Path | None = None
    line: int | None = field(default=None, eq=False)

    @property
    def place(self) -> str:
        """`file:line` as people count it."""
        return self.source if self.line is None else f"{self.source}:{self.line + 1}"

    @property
    def text(self) -> str:
        return self.tool if self.specifier is None else f"{self.tool}({self.specifier})"


@frozen
class PermissionFacts:
    """What one call would do, as far as its tool can tell. Paths are absolute, not resolved.

    `diff` is unified; `edit` is (path, text before or None, text after or None) for editors that draw it themselves;
    `agent` is the type that an Agent call would start, `skill` the name of a skill with what it is given, `url` what
    would be fetched; `input` is the call's own, for rules that name a parameter.
    """

    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    command: str | None = None
    cwd: Path | None = None
    diff: str | None = None
    edit: tuple[Path, str | None, str | None] | None = None
    agent: str | None = None
    skill: str | None = None
    url: str | None = None
    input: Mapping[str, Any] | None = field(default=None, eq=False, repr=False)


class OptionKind(StrEnum):
    ALLOW_ONCE = "allowOnce"
    ALLOW_SESSION = "allowSession"
    ALLOW_ALWAYS = "allowAlways"
    REJECT_ONCE = "rejectOnce"
    REJECT_SESSION = "rejectSession"
    REJECT_ALWAYS = "rejectAlways"
    REJECT_AND_STOP = "rejectAndStop"

    @property
    def allows(self) -> bool:
        return self in (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_SESSION, OptionKind.ALLOW_ALWAYS)


@frozen
class PermissionOption:
    """`rules` are the exact texts that the answer stores, `destination` is where; none for one-time answers."""

    id: str
    kind: OptionKind
    label: str
    rules: tuple[str, ...] = ()
    destination: Destination | None = None


@frozen
class ChainLink:
    """One ancestor of the asking agent, the nearest first."""

    id: AgentId
    agent_type: str
    description: str


@frozen
class PermissionRequest:
    """An ask, complete enough to be shown by a client that knows nothing else (PM-6, A9)."""

    id: RequestId
    agent_id: AgentId
    root_id: AgentId
    agent_type: str
    description: str
    chain: tuple[ChainLink, ...]
    tool_name: str
    tool_kind: ToolKind
    tool_use_id: str
    title: str
    input: Mapping[str, Any]
    reason: str
    facts: PermissionFacts
    options: tuple[PermissionOption, ...]
    created_at: datetime
    destinations: tuple[Destination, ...] = ()
    """Where a person may have a lasting answer stored instead: places that are read back (B4)."""
    destination_files: Mapping[Destination, Path] = field(factory=dict, eq=False)
    """The file of each destination that has one."""


@frozen
class PermissionAnswer:
    """A person's answer. `updated_input` replaces the whole input and is checked again."""

    option_id: str
    comment: str | None = None
    updated_input: Mapping[str, Any] | None = None
    destination: Destination | None = None


@frozen
class Allow:
    decided_by: DecidedBy
    reason: str


@frozen
class Deny:
    decided_by: DecidedBy
    reason: str
    nearest: str = field(default="", eq=False)


@frozen
class Ask:
    """`nearest` tells of an allow rule for this tool and why it does not cover this call, if there is one."""

    reason: str
    nearest: str = field(default="", eq=False)


PermissionDecision = Allow | Deny | Ask

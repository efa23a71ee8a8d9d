"""What a tool is, and all that a running tool may reach.

A tool module builds one object that satisfies `Tool`. It never imports the engine: files, processes and progress
come in through `ToolContext`, so a tool runs the same in a test, in a worktree and over unsaved buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from attrs import define, field, frozen

from agent_core.ids import AgentId
from agent_core.messages import ResultContent, TextBlock
from agent_core.permissions.types import PermissionFacts, ToolKind
from agent_core.ports import FileSystem, Processes
from agent_core.task_items import TaskItem


@frozen
class ToolResult:
    """`content` is what the model reads; `diff` and `changed` are for people.

    `changed` holds (absolute path, `added` | `modified` | `deleted`) of files that this call is known to have changed.
    """

    content: ResultContent
    is_error: bool = False
    diff: str | None = None
    changed: tuple[tuple[Path, str], ...] = ()

    @classmethod
    def ok(cls, text: str, *, diff: str | None = None, changed: tuple[tuple[Path, str], ...] = ()) -> ToolResult:
        return cls((TextBlock(text),), diff=diff, changed=changed)

    @classmethod
    def error(cls, text: str) -> ToolResult:
        return cls((TextBlock(text),), is_error=True)

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.content if isinstance(block, TextBlock))


@define
class ReadFiles:
    """Which files this agent has seen, and with which content (path -> sha256 of the bytes it was shown).

    One per agent, never shared (CTX-1).
    """

    _seen: dict[Path, str] = field(factory=dict)

    def remember(self, path: Path, digest: str) -> None:
        self._seen[path] = digest

    def digest(self, path: Path) -> str | None:
        return self._seen.get(path)

    def copy(self) -> ReadFiles:
        """For a fork, whose conversation shows the same files."""
        return ReadFiles(dict(self._seen))


@frozen
class Place:
    """Where an agent works; `cwd` is absolute. With isolation, `worktree` is its checkout and `forbidden` are the real
    paths that it must not write to: the main checkout and its git directory (WT-2). `environment` is for its commands.
    """

    cwd: Path
    worktree: Path | None = None
    forbidden: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(factory=dict)


class Launcher(Protocol):
    """How an agent launches others; None in a context whose agent may not."""

    async def launch(self, input: Mapping[str, Any]) -> ToolResult:
        """Start the agent of an Agent call and wait for its answer. Cancellation stops the agent. Bad values are
        ToolErrors that say what is allowed (IN-13)."""
        ...


class Messenger(Protocol):
    """How an agent talks to others of its conversation. Bad addresses are ToolErrors that say what there is."""

    async def send(self, to: str, message: str) -> ToolResult: ...

    async def output(self, to: str, wait_seconds: float) -> ToolResult:
        """The answer of an agent that has ended, within that time, else how far it is."""
        ...

    async def stop(self, to: str) -> ToolResult: ...

    async def list(self) -> ToolResult: ...


class TaskStore(Protocol):
    """The task list of an agent's conversation. `values` are fields of TaskItem; bad ones are ToolErrors."""

    async def all(self) -> tuple[TaskItem, ...]: ...

    async def create(self, values: Mapping[str, Any]) -> TaskItem: ...

    async def update(self, task_id: str, values: Mapping[str, Any]) -> TaskItem: ...


@frozen
class ToolContext:
    """`report` shows output of a running call to people (never to the model); it may be called often. `denied` says
    whether a rule hides a file from this agent: what a search finds there is left out.
    """

    agent_id: AgentId
    place: Place
    files: FileSystem
    processes: Processes
    read_files: ReadFiles
    report: Callable[[str], None] = lambda text: None
    launcher: Launcher | None = None
    messenger: Messenger | None = None
    tasks: TaskStore | None = None
    denied: Callable[[Path], bool] = lambda path: False


class Tool(Protocol):
    """Contract for all tools.

    `input` was validated against `input_schema` before any method is called. `facts` has no effect on the outside and
    says what `run` with the same input would do. Both may raise ToolError (shown to the model); anything else that
    they raise is reported as an internal error result. `run` is cancelled by task cancellation and then leaves
    no process behind. `description` and `input_schema` are constant: their bytes are part of the cached prefix (TL-5).
    """

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def input_schema(self) -> Mapping[str, Any]: ...
    @property
    def kind(self) -> ToolKind: ...
    @property
    def read_only(self) -> bool:
        """True when no call of this tool can change anything."""
        ...

    @property
    def concurrent(self) -> bool:
        """True when neighbouring calls may run side by side: they read, or what they start does not share state."""
        ...

    def title(self, input: Mapping[str, Any]) -> str:
        """One line for people, such as `Edit src/a.py`."""
        ...

    async def facts(self, input: Mapping[str, Any], ctx: ToolContext) -> PermissionFacts: ...
    async def run(self, input: Mapping[str, Any], ctx: ToolContext) -> ToolResult: ...

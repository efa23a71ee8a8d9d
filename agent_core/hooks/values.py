"""What a hook is and what it answered. Handler = Command | Http | McpTool | Question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from attrs import frozen

from agent_core.permissions.types import Destination, PermissionRule

Kind = Literal["tool", "type", "source", "none"]

EVENTS: Mapping[str, Kind] = {
    "PreToolUse": "tool",
    "PostToolUse": "tool",
    "PostToolUseFailure": "tool",
    "PermissionRequest": "tool",
    "UserPromptSubmit": "none",
    "SessionStart": "source",
    "SessionEnd": "source",
    "SubagentStart": "type",
    "SubagentStop": "type",
    "Stop": "none",
    "Notification": "source",
    "PreCompact": "source",
    "PostCompact": "source",
    "StopFailure": "source",
    "TaskCreated": "none",
    "TaskCompleted": "none",
    "WorktreeCreate": "none",
    "WorktreeRemove": "none",
}
"""Every event that is raised here, with what its matcher is about."""

BLOCKING = frozenset(
    {"PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SubagentStop", "PreCompact"}
    | {"TaskCreated", "TaskCompleted"}
)
"""Where exit code 2 and `decision: "block"` mean something (features 14)."""

ENDING = frozenset({"Stop", "SubagentStop", "SessionEnd"})
"""Where `continue: false` asks for what happens anyway."""

MAX_TEXT = 10_000
"""Characters of any text that a hook gives."""

HookOutcome = Literal["ok", "allow", "deny", "ask", "block", "error", "timeout"]


@frozen
class Command:
    """`args` None: `command` is a text for bash, else a program that is started without a shell."""

    command: str
    args: tuple[str, ...] | None = None


@frozen
class Http:
    url: str
    headers: Mapping[str, str]
    allowed_env: tuple[str, ...] = ()


@frozen
class McpTool:
    server: str
    tool: str
    input: Mapping[str, Any]


@frozen
class Question:
    """A `prompt` hook; an `agent` hook when it may look at files first (`tools`)."""

    prompt: str
    model: str | None = None
    tools: bool = False


Handler = Command | Http | McpTool | Question


@frozen
class Hook:
    """One handler of one matcher group. `condition` is its `if`; `timeout` is in seconds, None the kind's own.

    `source` is the file that it stands in; `from_project`: a file that comes with the folder.
    """

    event: str
    matcher: str
    handler: Handler
    source: str
    condition: PermissionRule | None = None
    timeout: float | None = None
    once: bool = False
    detached: bool = False
    from_project: bool = False


@frozen
class Grant:
    """Rules that a PermissionRequest hook adds for later calls (features 12, update entries)."""

    behavior: Literal["allow", "deny"]
    rules: tuple[str, ...]
    destination: Destination


@frozen
class Answer:
    """What one hook said. `outcome` and `message` are for people, everything else is for the engine.

    `input` replaces the call's whole input, `output` the result that the model reads, `context` is added for the
    model. `stop`: `continue: false`. `interrupt`: of a refusal. `grants` are `updatedPermissions`.
    `path` is the folder that a WorktreeCreate hook has made.
    """

    outcome: HookOutcome = "ok"
    message: str | None = None
    reason: str | None = None
    input: Mapping[str, Any] | None = None
    output: str | None = None
    context: str | None = None
    stop: bool = False
    interrupt: bool = False
    grants: tuple[Grant, ...] = ()
    path: str | None = None


OK = Answer()


def failed(message: str) -> Answer:
    return Answer("error", message)

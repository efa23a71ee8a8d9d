"""SendMessage, TaskOutput, TaskStop, ListAgents: talking to agents that were launched before (MSG-1, MSG-2).

None of them changes anything by itself: what the other agent then does is judged by its own permissions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from attrs import frozen

from agent_core.errors import ToolError
from agent_core.permissions.types import PermissionFacts, ToolKind
from agent_core.tool import Messenger, Tool, ToolContext, ToolResult

DEFAULT_WAIT_MS, MAX_WAIT_MS = 30_000, 600_000


@frozen
class _Talking:
    name: str
    description: str
    properties: Mapping[str, Any]
    required: tuple[str, ...]
    act: Callable[[Messenger, Mapping[str, Any]], Awaitable[ToolResult]]

    kind = ToolKind.OTHER
    read_only = True
    concurrent = True

    @property
    def input_schema(self) -> Mapping[str, Any]:
        return {
            "type": "object",
            "properties": self.properties,
            "required": list(self.required),
            "additionalProperties": False,
        }

    def title(self, input: Mapping[str, Any]) -> str:
        return f"{self.name} {input.get('to') or input.get('task_id') or ''}".rstrip()

    async def facts(self, input: Mapping[str, Any], ctx: ToolContext) -> PermissionFacts:
        return PermissionFacts()

    async def run(self, input: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        if ctx.messenger is None:
            raise ToolError("There are no other agents here.")
        return await self.act(ctx.messenger, input)


async def _send(messenger: Messenger, input: Mapping[str, Any]) -> ToolResult:
    return await messenger.send(input["to"], input["message"])


async def _output(messenger: Messenger, input: Mapping[str, Any]) -> ToolResult:
    wait_ms = input.get("timeout", DEFAULT_WAIT_MS) if input.get("block", True) else 0
    return await messenger.output(input["task_id"], wait_ms / 1000)


async def _stop(messenger: Messenger, input: Mapping[str, Any]) -> ToolResult:
    return await messenger.stop(input["task_id"])


async def _list(messenger: Messenger, input: Mapping[str, Any]) -> ToolResult:
    return await messenger.list()


_TASK = {"type": "string", "minLength": 1, "description": "The agent's id, or its name."}

SEND_MESSAGE = _Talking(
    "SendMessage",
    "Send a message to an agent that you launched before. One that works reads it at its next turn; one that has ended "
    "goes on with all that it knew, in the background. Use it to correct, to ask further, or to continue; a new "
    "agent would start with nothing.",
    {"to": _TASK, "message": {"type": "string", "minLength": 1, "description": "What it shall know or do."}},
    ("to", "message"),
    _send,
)
TASK_OUTPUT = _Talking(
    "TaskOutput",
    "Read how far a background agent is, or wait for its end. Needed only when you cannot go on without the result: "
    "you are told of every end anyway.",
    {
        "task_id": _TASK,
        "block": {"type": "boolean", "description": "Wait for the end (default: true)."},
        "timeout": {"type": "integer", "minimum": 0, "maximum": MAX_WAIT_MS, "description": "Milliseconds; 30000."},
    },
    ("task_id",),
    _output,
)
TASK_STOP = _Talking(
    "TaskStop",
    "Stop an agent that is not needed any more. What it has said so far is kept.",
    {"task_id": _TASK},
    ("task_id",),
    _stop,
)
LIST_AGENTS = _Talking("ListAgents", "List the agents of this conversation and how they stand.", {}, (), _list)


def talking_tools(*, background: bool) -> tuple[Tool, ...]:
    """Without background agents there is nothing to wait for, and nothing that could be stopped."""
    return (LIST_AGENTS, SEND_MESSAGE, TASK_OUTPUT, TASK_STOP) if background else (LIST_AGENTS, SEND_MESSAGE)

"""SendMessage, TaskOutput, TaskStop, ListAgents: talking to agents that were launched before (MSG-1, MSG-2).

None of them changes anything by itself: what the other agent then does is judged by its own permissions.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from agent_core.errors import ToolError
from agent_core.tool import Messenger, Tool, ToolContext, ToolResult
from agent_core.tools.host_tool import HostTool

DEFAULT_WAIT_MS, MAX_WAIT_MS = 30_000, 600_000


def _messenger(ctx: ToolContext) -> Messenger:
    if ctx.messenger is None:
        raise ToolError("There are no other agents here.")
    return ctx.messenger


async def _send(ctx: ToolContext, input: Mapping[str, Any]) -> ToolResult:
    return await _messenger(ctx).send(input["to"], input["message"])


async def _output(ctx: ToolContext, input: Mapping[str, Any]) -> ToolResult:
    wait_ms = input.get("timeout", DEFAULT_WAIT_MS) if input.get("block", True) else 0
    return await _messenger(ctx).output(input["task_id"], wait_ms / 1000)


async def _stop(ctx: ToolContext, input: Mapping[str, Any]) -> ToolResult:
    return await _messenger(ctx).stop(input["task_id"])


async def _list(ctx: ToolContext, input: Mapping[str, Any]) -> ToolResult:
    return await _messenger(ctx).list()


_talking = partial(HostTool, subject=("to", "task_id"), concurrent=True)
_TASK = {"type": "string", "minLength": 1, "description": "The agent's id, or its name."}

SEND_MESSAGE = _talking(
    "SendMessage",
    "Send a message to an agent that you launched before. One that works reads it at its next turn; one that has ended "
    "goes on with all that it knew, in the background. Use it to correct, to ask further, or to continue; a new "
    "agent would start with nothing.",
    {"to": _TASK, "message": {"type": "string", "minLength": 1, "description": "What it shall know or do."}},
    ("to", "message"),
    _send,
)
TASK_OUTPUT = _talking(
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
TASK_STOP = _talking(
    "TaskStop",
    "Stop an agent that is not needed any more. What it has said so far is kept.",
    {"task_id": _TASK},
    ("task_id",),
    _stop,
)
LIST_AGENTS = _talking("ListAgents", "List the agents of this conversation and how they stand.", {}, (), _list)


def talking_tools(*, background: bool) -> tuple[Tool, ...]:
    """Without background agents there is nothing to wait for, and nothing that could be stopped."""
    return (LIST_AGENTS, SEND_MESSAGE, TASK_OUTPUT, TASK_STOP) if background else (LIST_AGENTS, SEND_MESSAGE)

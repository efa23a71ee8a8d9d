"""Agent: launches another agent. All the work is the launcher's (ToolContext)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from agent_core.errors import ToolError
from agent_core.permissions.types import PermissionFacts, ToolKind
from agent_core.tool import ToolContext, ToolResult

MODES = ("default", "acceptEdits", "plan", "dontAsk", "bubble")
"""What a model may name; bypassPermissions is a person's decision."""

_PROPERTIES: Mapping[str, Any] = {
    "description": {"type": "string", "minLength": 1, "description": "The task in 3 to 5 words, for the user."},
    "prompt": {"type": "string", "minLength": 1, "description": "The whole task."},
    "subagent_type": {
        "type": "string",
        "description": "Which agent; general-purpose when absent, unless said otherwise above.",
    },
    "model": {"type": "string", "description": "opus, sonnet, haiku or a full id; leave it out unless the user asks."},
    "run_in_background": {
        "type": "boolean",
        "description": "true: don't wait; you are told when it ends. false: wait for its answer.",
    },
    "fork": {
        "type": "boolean",
        "description": "true: the agent starts with all of this conversation, instead of with nothing.",
    },
    "name": {"type": "string", "description": "A name by which the agent can be addressed."},
    "mode": {"type": "string", "enum": list(MODES), "description": "A stricter permission mode than usual."},
    "isolation": {
        "type": "string",
        "enum": ["worktree"],
        "description": "worktree: the agent works in its own git worktree; the user reviews its changes.",
    },
    "cwd": {"type": "string", "description": "Another working directory, inside yours; not with isolation."},
}


@frozen
class Agent:
    """`absent` are the fields whose feature is off."""

    description: str = ""
    absent: frozenset[str] = frozenset()

    name = "Agent"
    kind = ToolKind.OTHER
    read_only = False
    concurrent = True

    @property
    def input_schema(self) -> Mapping[str, Any]:
        return {
            "type": "object",
            "properties": {name: value for name, value in _PROPERTIES.items() if name not in self.absent},
            "required": ["description", "prompt"],
            "additionalProperties": False,
        }

    def title(self, input: Mapping[str, Any]) -> str:
        return f"{_type(input)}: {input['description']}"

    async def facts(self, input: Mapping[str, Any], ctx: ToolContext) -> PermissionFacts:
        return PermissionFacts(agent=_type(input))

    async def run(self, input: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        if ctx.launcher is None:
            raise ToolError("Agents cannot be launched here; do the work yourself.")
        return await ctx.launcher.launch(input)


def _type(input: Mapping[str, Any]) -> str:
    return "fork" if input.get("fork") else input.get("subagent_type") or "general-purpose"

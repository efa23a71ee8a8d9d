"""Tools that reach only what the host keeps (other agents, the task list): one shape for all, an action for each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from attrs import frozen

from agent_core.permissions.types import PermissionFacts, ToolKind
from agent_core.tool import ToolContext, ToolResult


@frozen
class HostTool:
    """They change nothing outside the host, so none asks. `subject` are the fields that a title shows the first of."""

    name: str
    description: str
    properties: Mapping[str, Any]
    required: tuple[str, ...]
    act: Callable[[ToolContext, Mapping[str, Any]], Awaitable[ToolResult]]
    subject: tuple[str, ...] = ()
    concurrent: bool = False

    kind = ToolKind.OTHER
    read_only = True

    @property
    def input_schema(self) -> Mapping[str, Any]:
        return {
            "type": "object",
            "properties": self.properties,
            "required": list(self.required),
            "additionalProperties": False,
        }

    def title(self, input: Mapping[str, Any]) -> str:
        shown = next((input[field] for field in self.subject if input.get(field)), "")
        return f"{self.name} {shown}".rstrip()

    async def facts(self, input: Mapping[str, Any], ctx: ToolContext) -> PermissionFacts:
        return PermissionFacts()

    async def run(self, input: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        return await self.act(ctx, input)

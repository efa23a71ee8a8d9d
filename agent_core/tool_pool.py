"""Which tools an agent gets (TL-1, TL-2, TL-5). Pure: definitions and tools in, an ordered table out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agent_core.definitions import AgentDefinition
from agent_core.errors import NotAllowed
from agent_core.permissions.rules import names_tool
from agent_core.permissions.types import PermissionRule
from agent_core.tool import Tool

NOT_FOR_CHILDREN = frozenset(
    {
        "EndConversation", "EnterPlanMode", "ListAgents", "ScheduleWakeup", "TaskCreate", "TaskGet", "TaskList",
        "TaskOutput", "TaskUpdate", "WaitForMcpServers", "Workflow",
    }
)  # fmt: skip
"""What belongs to the conversation with the user. ExitPlanMode does too, but for an agent in plan mode."""

IN_BACKGROUND = frozenset(
    {
        "Agent", "Artifact", "AskUserQuestion", "Bash", "Edit", "EnterWorktree", "ExitPlanMode", "ExitWorktree", "Glob",
        "Grep", "Monitor", "NotebookEdit", "PowerShell", "Read", "SendMessage", "Skill", "TaskStop", "TodoWrite",
        "ToolSearch", "WebFetch", "WebSearch", "Write",
    }
)  # fmt: skip
"""All that an agent in the background keeps, beside the tools of MCP servers."""


def for_child(tools: Iterable[Tool], *, background: bool, planning: bool) -> tuple[Tool, ...]:
    """What an agent that another one launched may have at all (TL-2), before its definition is asked."""

    def allowed(name: str) -> bool:
        if name in NOT_FOR_CHILDREN or (name == "ExitPlanMode" and not planning):
            return False
        return not background or name in IN_BACKGROUND or name.startswith("mcp__")

    return tuple(tool for tool in tools if allowed(tool.name))


def assemble(
    definition: AgentDefinition, tools: Iterable[Tool], rules: Iterable[PermissionRule] = ()
) -> dict[str, Tool]:
    """In name order. A bare deny rule removes a tool. NotAllowed when an allow-list names nothing that exists."""
    every = sorted(tools, key=lambda tool: tool.name)
    bare = [rule for rule in rules if rule.behavior == "deny" and rule.specifier is None]
    removed = {_bare(name) for name in definition.disallowed_tools}
    left = [t for t in every if t.name not in removed and not any(names_tool(rule, t.name) for rule in bare)]
    if definition.tools is None:
        return {tool.name: tool for tool in left}
    wanted = {_bare(name) for name in definition.tools}
    pool = {tool.name: tool for tool in left if tool.name in wanted or "*" in wanted}
    if wanted and not pool and not wanted & {tool.name for tool in every}:
        raise NotAllowed(
            f"the agent {definition.name!r} gets no tool: its list names {', '.join(definition.tools)}; "
            f"there are {', '.join(tool.name for tool in every)}"
        )
    return pool


def render_tools(pool: Mapping[str, Tool]) -> tuple[Mapping[str, Any], ...]:
    return tuple(
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
        for tool in pool.values()
    )


def _bare(name: str) -> str:
    """`Agent(a, b)` and `Bash(git *)` name the tool before the parenthesis."""
    return name.partition("(")[0].strip()

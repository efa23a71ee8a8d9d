"""The description of the Agent tool, assembled for one agent (GD-1, GD-4, GD-5, GD-7 in a first version)."""

from __future__ import annotations

from collections.abc import Iterable

from agent_core.definitions import AgentDefinition
from agent_core.guidance.builtin_agents import text


def describe(agents: Iterable[AgentDefinition]) -> str:
    return text("agent_tool").replace("{agents}", "\n".join(_line(agent) for agent in agents))


def _line(agent: AgentDefinition) -> str:
    tools = "all tools" if agent.tools is None else ", ".join(agent.tools) or "no tools"
    return f"- {agent.name}: {' '.join(agent.description.split())} (Tools: {tools})"

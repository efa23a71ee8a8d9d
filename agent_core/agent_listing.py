"""Which agents an agent may launch, and how it learns of them: in its Agent tool or in messages (SEL-9, GD-1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import evolve

from agent_core.agent import Agent, user_message
from agent_core.background import background_disabled, forced
from agent_core.definitions import FORK, AgentDefinition
from agent_core.engine import Engine
from agent_core.guidance.agent_tool import REMINDER, Situation, describe, reminder
from agent_core.guidance.builtin_agents import text
from agent_core.messages import TextBlock
from agent_core.model.prompt import Prompt
from agent_core.permissions.rules import names_tool
from agent_core.project import ProjectState
from agent_core.tool import Tool
from agent_core.tools.agent import Agent as AgentTool

LISTED = "agents"
"""The `meta` of messages that hold the list."""


def with_guidance(
    pool: Mapping[str, Tool], engine: Engine, project: ProjectState, definition: AgentDefinition, depth: int
) -> dict[str, Tool]:
    """The pool with a description of the Agent tool that fits it, where it has that tool."""
    tool = pool.get("Agent")
    if not isinstance(tool, AgentTool):
        return dict(pool)
    now = _situation(pool, tool, engine, project, definition, depth)
    words = describe(now, launchable(project, definition, depth))
    return {**pool, tool.name: evolve(tool, description=words)}


async def tell_agents(agent: Agent) -> None:
    """Where the description leaves them out: a message with the list, at first and whenever it has changed.

    The description is that of the prompt, which stays as it was however the settings change.
    """
    words = text("fragments/agents_attached")
    if not any(tool["name"] == "Agent" and words in tool["description"] for tool in agent.prompt.tools):
        return
    await agent.project.refresh()
    words = reminder(launchable(agent.project, agent.definition, agent.depth))
    if words != _told(agent.prompt):
        agent.add(user_message(TextBlock(words), meta=LISTED))


def launchable(project: ProjectState, definition: AgentDefinition, depth: int) -> list[AgentDefinition]:
    """Neither denied (SEL-5) nor left out by the list of the main thread (SEL-10)."""
    return [each for each in project.configuration.definitions.active if _may(project, definition, depth, each.name)]


def allowed_agents(definition: AgentDefinition, depth: int) -> tuple[str, ...] | None:
    """The names in `Agent(a, b)` of the main thread; None when it names `Agent` alone or there is no list."""
    for entry in (definition.tools or ()) if depth == 0 else ():
        tool, bracket, names = entry.partition("(")
        if tool.strip() in ("Agent", "Task") and bracket:
            return tuple(name.strip() for name in names.rstrip(") ").split(",") if name.strip())
    return None


def _may(project: ProjectState, definition: AgentDefinition, depth: int, name: str) -> bool:
    rules = project.configuration.settings.rules
    denied = any(rule.behavior == "deny" and names_tool(rule, "Agent") and rule.specifier == name for rule in rules)
    allowed = allowed_agents(definition, depth)
    return not denied and (allowed is None or name in allowed)


def _situation(
    pool: Mapping[str, Tool],
    tool: AgentTool,
    engine: Engine,
    project: ProjectState,
    definition: AgentDefinition,
    depth: int,
) -> Situation:
    settings = project.configuration.settings
    forks = "fork" not in tool.absent and _may(project, definition, depth, FORK)
    usual: Literal["usual", "asked"] = "usual" if settings.default_background else "asked"
    return Situation(
        background="off"
        if background_disabled(engine.env)
        else "always"
        if forced(settings, interactive=engine.interactive)
        else usual,
        forking="off" if not forks else "on" if settings.forking == "on" and engine.interactive else "explicit",
        coordinator=settings.coordinator,
        attached=settings.agent_list_attachment,
        parallel_guidance=settings.parallel_guidance,
        sends="SendMessage" in pool,
        worktrees="isolation" not in tool.absent,
    )


def _told(prompt: Prompt) -> str | None:
    """The newest list in the conversation, that of a fork's parent included."""
    for message in reversed(prompt.messages):
        for block in message["content"] if message["role"] == "user" else ():
            if block["type"] == "text" and block["text"].startswith(REMINDER):
                return str(block["text"])
    return None

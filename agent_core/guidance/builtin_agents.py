"""The built-in agents (SEL-8). Their prompts are the Markdown files beside this module."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from attrs import evolve

from agent_core.definitions import AgentDefinition

_HERE = Path(__file__).parent
_SEARCH = ("Glob", "Grep", "Read")


@cache
def text(name: str) -> str:
    """The text of `NAME.md`, without its final newline."""
    return (_HERE / f"{name}.md").read_text("utf-8").strip()


def builtin_definitions(explore_model: str = "haiku") -> list[AgentDefinition]:
    return [evolve(agent, model=explore_model) if agent.name == "Explore" else agent for agent in _all()]


def main_definition() -> AgentDefinition:
    """The main thread, itself an agent; it is not in the list, since nobody launches it."""
    return AgentDefinition("main", "The conversation the user talks to", text("main"), "builtin")


@cache
def _all() -> tuple[AgentDefinition, ...]:
    return (
        AgentDefinition(
            "Explore",
            "Fast search of a code base: finds files, symbols and how things work together. Read-only. Say how "
            "thorough to be: quick, medium or very thorough.",
            text("explore"),
            "builtin",
            tools=_SEARCH,
            read_only=True,
        ),
        AgentDefinition(
            "Plan",
            "Researches a code base and returns a step-by-step plan for a change. Read-only.",
            text("plan"),
            "builtin",
            tools=_SEARCH,
            read_only=True,
        ),
        AgentDefinition(
            "claude-code-guide",
            "Answers questions about using this language server: settings, agents, permissions, reviews.",
            text("guide"),
            "builtin",
            tools=_SEARCH,
            read_only=True,
        ),
        AgentDefinition(
            "general-purpose",
            "Complex work of several steps: research, changes over many files, and their tests.",
            text("general_purpose"),
            "builtin",
        ),
        AgentDefinition(
            "statusline-setup",
            "Changes the status line settings of the user.",
            text("statusline_setup"),
            "builtin",
            tools=("Edit", "Read"),
        ),
        AgentDefinition(
            "verification",
            "Checks finished work against its task: reads the change, runs its tests when allowed, reports what fails.",
            text("verification"),
            "builtin",
            tools=("Bash", *_SEARCH),
        ),
    )

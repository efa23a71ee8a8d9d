"""The description of the Agent tool, assembled from fragments (GD-1 to GD-7). Pure.

`SECTIONS` says which fragment is there when; each one's text is a file in `fragments`. To add one, write its file and
its row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from attrs import frozen

from agent_core.definitions import AgentDefinition
from agent_core.guidance.builtin_agents import text
from agent_core.text import harmless


@frozen
class Situation:
    """What decides. `background`: never, when a call asks for it, unless it asks not to, always.

    `forking`: `on` in the sense of SEL-4. `attached`: the list of agents comes in a message (SEL-9). `sends`,
    `worktrees`: there is SendMessage, there is isolation.
    """

    background: Literal["off", "asked", "usual", "always"] = "asked"
    forking: Literal["off", "explicit", "on"] = "explicit"
    coordinator: bool = False
    attached: bool = False
    parallel_guidance: bool = True
    sends: bool = True
    worktrees: bool = True


@frozen
class Fragment:
    """`when` is not asked in coordinator mode: there only what is for `coordinators` stays."""

    id: str
    name: str
    when: Callable[[Situation], bool] = lambda now: True
    coordinators: bool = False


SECTIONS: tuple[tuple[Fragment, ...], ...] = (
    (Fragment("GD-1", "base", coordinators=True),),
    (
        Fragment("GD-1", "agents_listed", lambda now: not now.attached, coordinators=True),
        Fragment("GD-1", "agents_attached", lambda now: now.attached, coordinators=True),
    ),
    (
        Fragment("GD-4", "when"),
        Fragment("GD-4", "when_not", lambda now: now.forking != "on"),
    ),
    (
        Fragment("GD-2", "foreground_first", lambda now: now.background == "asked"),
        Fragment("GD-2", "background_first", lambda now: now.background == "usual"),
        Fragment("GD-2", "background_only", lambda now: now.background == "always"),
        Fragment("GD-2", "notified", lambda now: now.background != "off"),
        Fragment("GD-3", "parallel", lambda now: now.parallel_guidance or now.attached),
        Fragment("GD-3", "in_parallel"),
        Fragment("GD-7", "usage"),
        Fragment("GD-7", "send", lambda now: now.sends),
        Fragment("GD-7", "worktree", lambda now: now.worktrees),
    ),
    (
        Fragment("GD-5", "alone", lambda now: now.forking == "off"),
        Fragment("GD-5", "alone_unless_forked", lambda now: now.forking != "off"),
        Fragment("GD-5", "prompt"),
    ),
    (
        Fragment("GD-6", "fork_by_omission", lambda now: now.forking == "on"),
        Fragment("GD-6", "fork_by_flag", lambda now: now.forking == "explicit"),
        Fragment("GD-6", "fork_in_background", lambda now: now.forking == "explicit" and _chosen(now)),
        Fragment("GD-6", "forks", lambda now: now.forking != "off"),
        Fragment("GD-6", "fork_patience", lambda now: now.forking != "off" and now.background != "off"),
    ),
)


def _chosen(now: Situation) -> bool:
    return now.background in ("asked", "usual")


def fragments(now: Situation) -> list[list[Fragment]]:
    """Those that are there, by section."""
    present = [
        [each for each in section if (each.coordinators or not now.coordinator) and each.when(now)]
        for section in SECTIONS
    ]
    return [section for section in present if section]


def describe(now: Situation, agents: Iterable[AgentDefinition]) -> str:
    sections = ("\n".join(text(f"fragments/{each.name}") for each in section) for section in fragments(now))
    return "\n\n".join(sections).replace("{agents}", list_of(agents))


def reminder(agents: Iterable[AgentDefinition]) -> str:
    """The list as a message of the host, for a description that leaves it out (SEL-9)."""
    return f"{REMINDER}\n{list_of(agents)}\n</system-reminder>"


REMINDER = "<system-reminder>\nThe agents that the Agent tool can launch now:"
"""How every one begins."""


def list_of(agents: Iterable[AgentDefinition]) -> str:
    return "\n".join(_line(agent) for agent in agents) or "(none)"


def _line(agent: AgentDefinition) -> str:
    return f"- {agent.name}: {' '.join(harmless(agent.description).split())} (Tools: {_tools(agent)})"


def _tools(agent: AgentDefinition) -> str:
    if agent.tools is not None:
        left = [name for name in agent.tools if name not in agent.disallowed_tools]
        return ", ".join(left) or "none"
    without = ", ".join(agent.disallowed_tools)
    return f"all but {without}" if without else "all"

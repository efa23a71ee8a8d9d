"""Conversations of a folder: each has a main thread, the agents that worked for it, and what was allowed in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from attrs import frozen

from agent_core.events import AgentInfo
from agent_core.ids import AgentId, ConversationId
from agent_core.text import shortened

MAIN_THREAD = "Main thread"
"""The description of main threads."""


@frozen
class Conversation:
    """`title` is made of what was said first; `agents` counts those besides the main thread. `main` is its id."""

    id: ConversationId
    title: str
    started_at: datetime
    agents: int
    main: str | None


def is_main(info: AgentInfo) -> bool:
    return info.parent_id is None and (info.agent_type == "main" or info.description == MAIN_THREAD)


def group(infos: Iterable[AgentInfo], title_of: Mapping[AgentId, str]) -> list[Conversation]:
    """The newest first. `title_of` holds the first words of main threads, by their id."""
    found: dict[ConversationId, list[AgentInfo]] = {}
    for info in sorted(infos, key=lambda info: info.started_at):
        found.setdefault(info.conversation_id, []).append(info)
    conversations = [_conversation(id, members, title_of) for id, members in found.items()]
    return sorted(conversations, key=lambda each: each.started_at, reverse=True)


def _conversation(id: ConversationId, members: list[AgentInfo], title_of: Mapping[AgentId, str]) -> Conversation:
    mains = [info for info in members if is_main(info)]
    first = mains[0] if mains else members[0]
    title = title_of.get(first.id) or first.description
    main = mains[-1].id if mains else None
    return Conversation(id, shortened(title, 12), members[0].started_at, len(members) - len(mains), main)

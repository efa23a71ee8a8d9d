"""Small values for tests: an agent's info, an event, a log on a clock that stands still."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from attrs import define, field

from agent_core.event_log import EventLog
from agent_core.events import AgentInfo, Event, EventBody, Started
from agent_core.ids import AgentId, ConversationId, MessageId
from agent_core.messages import Block, Message, TextBlock, ToolResultBlock, ToolUseBlock, Usage
from agent_core.permissions.types import PermissionMode
from agent_core.task import TaskStatus

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@define
class StillClock:
    slept: list[float] = field(factory=list)

    def now(self) -> datetime:
        return NOW + timedelta(seconds=sum(self.slept))

    def monotonic(self) -> float:
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def info(**changes: Any) -> AgentInfo:
    fields: dict[str, Any] = {
        "id": AgentId("a1"),
        "root_id": AgentId("a1"),
        "parent_id": None,
        "depth": 0,
        "name": None,
        "agent_type": "general-purpose",
        "description": "repair the test",
        "status": TaskStatus.PENDING,
        "stop_reason": None,
        "background": False,
        "fork": False,
        "isolation": "none",
        "worktree": None,
        "model": "claude-sonnet-5-5",
        "permission_mode": PermissionMode.BUBBLE,
        "cwd": Path("/w"),
        "started_at": NOW,
        "ended_at": None,
        "usage": Usage(),
        "output_file": Path("/s/a1.md"),
        "pending_permissions": 0,
        "last_tool": None,
        "result": None,
        "error": None,
        "conversation_id": ConversationId("c1"),
    }
    return AgentInfo(**{**fields, **changes})


def event(seq: int, body: EventBody) -> Event:
    return Event(AgentId("a1"), seq, None, NOW, body)


def log(sink: list[Event] | None = None) -> EventLog:
    made = EventLog(AgentId("a1"), StillClock(), (sink if sink is not None else []).append)
    made.append(Started(info()))
    return made


def user(*blocks: Block | str, id: str = "m1") -> Message:
    return Message(MessageId(id), "user", _blocks(blocks))


def assistant(*blocks: Block | str, id: str = "m2") -> Message:
    return Message(MessageId(id), "assistant", _blocks(blocks))


def use(id: str, name: str = "Read", **input: Any) -> ToolUseBlock:
    return ToolUseBlock(id, name, input)


def result(id: str, text: str = "ok", is_error: bool = False) -> ToolResultBlock:
    return ToolResultBlock(id, (TextBlock(text),), is_error)


def _blocks(blocks: tuple[Block | str, ...]) -> tuple[Block, ...]:
    return tuple(TextBlock(block) if isinstance(block, str) else block for block in blocks)

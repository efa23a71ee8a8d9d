"""The calls around a run and after a tool: what hooks add to a conversation, and what they hold up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
from attrs import evolve

from agent_core.agent import Agent, Incoming, user_message
from agent_core.background import summary
from agent_core.conversations import is_main
from agent_core.engine import Engine
from agent_core.errors import AgentError, NotAllowed
from agent_core.hooks.dispatch import dispatch, hooks_of, observe, record
from agent_core.hooks.moments import Moment, response, stop_moment, tool_moment
from agent_core.hooks.values import Answer
from agent_core.messages import Message, TextBlock
from agent_core.permissions.gate import speaks_of
from agent_core.task import TaskStatus
from agent_core.tool import Tool, ToolContext, ToolResult

MAX_BLOCKS = 8
"""How often in a row a hook may keep an agent from ending (H5)."""
HOOK = "hook"
"""The `meta` of messages that a hook has caused."""


async def after_tool(
    agent: Agent,
    engine: Engine,
    tool: Tool,
    use_id: str,
    input: Mapping[str, Any],
    result: ToolResult,
    duration_ms: int,
    context: ToolContext,
) -> tuple[ToolResult, tuple[str, ...]]:
    """The result that the model reads, and what else it is told."""
    event = "PostToolUseFailure" if result.is_error else "PostToolUse"
    if not hooks_of(agent, engine, event):
        return result, ()
    more: dict[str, Any] = {"error": result.text} if result.is_error else {"tool_response": response(result)}
    speaks = speaks_of(agent, tool, input, context)
    said = await dispatch(
        agent, engine, tool_moment(event, agent, tool.name, use_id, input, speaks, duration_ms=duration_ms, **more)
    )
    notes = [f"A {event} hook adds:\n{text}" for text in said.context]
    if said.blocked is not None:
        notes.append(f"A {event} hook objects to this call:\n{said.blocked}")
    if said.output is not None:
        result = evolve(result, content=(TextBlock(said.output),))
    return result, tuple(notes)


async def at_start(agent: Agent, engine: Engine, first: Message | None) -> tuple[str, ...]:
    """What hooks add to the first message of a run (CTX-6). NotAllowed when one refuses what a person has said."""
    begun = [*await _session(agent, engine), *await _subagent(agent, engine)]
    return (*begun, *(await _prompt(agent, engine, first) if first is not None else ()))


async def check_inbox(agent: Agent, engine: Engine) -> None:
    """What a person says while an agent works is a prompt as well; what a hook refuses never reaches the agent."""
    checked: set[str] = set()
    while hooks_of(agent, engine, "UserPromptSubmit"):
        each = next((each for each in agent.inbox if each.message.id not in checked), None)
        if each is None:
            return
        checked.add(each.message.id)
        try:
            added = await _prompt(agent, engine, each.message)
        except NotAllowed:
            agent.inbox.remove(each)
        else:
            message = evolve(each.message, content=(*each.message.content, *map(TextBlock, added)))
            _replace(agent.inbox, each, evolve(each, message=message))


async def kept_going(agent: Agent, engine: Engine, before: int, *, may: bool) -> bool:
    """Whether a Stop or SubagentStop hook wants a further turn, after `before` of them; then it is told why. `may`: it
    has ended by itself, so that there can be one."""
    moment = stop_moment(agent, engine, again=before > 0)
    if not hooks_of(agent, engine, moment.event):
        return False
    said = await dispatch(agent, engine, moment)
    if said.blocked is None or said.stop is not None or not may:
        return False
    if before >= MAX_BLOCKS:
        record(agent, moment.event, Answer("ok", f"it has blocked {MAX_BLOCKS} times in a row: the agent ends now"))
        return False
    parts = [f"A {moment.event} hook says that you are not done:\n{said.blocked}", *said.context]
    agent.add(user_message(TextBlock("\n\n".join(parts)), meta=HOOK))
    return True


async def may_compact(agent: Agent, engine: Engine) -> bool:
    """A PreCompact hook can keep everything in the context, for as long as the service takes it."""
    said = await dispatch(agent, engine, Moment("PreCompact", "auto", {"trigger": "auto", "custom_instructions": ""}))
    return said.blocked is None


def compacted(agent: Agent, engine: Engine) -> None:
    observe(agent, engine, Moment("PostCompact", "auto", {"trigger": "auto", "compact_summary": ""}))


def has_failed(agent: Agent, engine: Engine, error: AgentError) -> None:
    kind = error.code or "modelError"
    observe(agent, engine, Moment("StopFailure", kind, {"error": kind, "error_details": str(error)}))


def has_ended(agent: Agent, engine: Engine) -> None:
    """Of agents that nobody waits for."""
    info = agent.log.state.info
    if is_main(info) or (agent.parent is not None and not info.background):
        return
    if info.status in (TaskStatus.COMPLETED, TaskStatus.FAILED):
        fields = {"message": summary(info), "title": info.agent_type, "notification_type": "agent_completed"}
        observe(agent, engine, Moment("Notification", "agent_completed", fields))


async def end_sessions(engine: Engine) -> None:
    """All of them share the one and a half seconds that a program has for its end."""
    with anyio.move_on_after(1.5, shield=True):
        async with anyio.create_task_group() as group:
            for agent in engine.hooks.sessions.values():
                group.start_soon(dispatch, agent, engine, Moment("SessionEnd", "other", {"reason": "other"}))


async def _session(agent: Agent, engine: Engine) -> tuple[str, ...]:
    """Once for each conversation in this process, with the first of its agents that nobody else launched."""
    conversation = agent.log.state.info.conversation_id
    if agent.parent is not None or conversation in engine.hooks.sessions:
        return ()
    engine.hooks.sessions[conversation] = agent
    source = "resume" if agent.log.state.messages else "startup"
    said = await dispatch(agent, engine, Moment("SessionStart", source, {"source": source, "model": agent.model}))
    return _added("SessionStart", said.context)


async def _subagent(agent: Agent, engine: Engine) -> tuple[str, ...]:
    info = agent.log.state.info
    if is_main(info) or agent.log.state.messages:
        return ()
    said = await dispatch(agent, engine, Moment("SubagentStart", info.agent_type))
    return _added("SubagentStart", said.context)


async def _prompt(agent: Agent, engine: Engine, message: Message) -> tuple[str, ...]:
    """Only what a person says, so nothing that an agent or this program has written."""
    if agent.parent is not None or message.meta is not None:
        return ()
    said = await dispatch(agent, engine, Moment("UserPromptSubmit", "", {"prompt": message.text}))
    if said.blocked is not None:
        raise NotAllowed(f"a UserPromptSubmit hook refused the prompt: {said.blocked}")
    return _added("UserPromptSubmit", said.context)


def _added(event: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"Added by a {event} hook:\n{text}" for text in texts)


def _replace(inbox: list[Incoming], old: Incoming, new: Incoming) -> None:
    inbox[inbox.index(old)] = new

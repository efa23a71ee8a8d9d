"""The loop of one run: ask what is next, do it, record it, until the run is finished."""

from __future__ import annotations

from typing import assert_never

from agent_core.agent import Agent, user_message
from agent_core.agent_listing import tell_agents
from agent_core.budget import check_budget
from agent_core.context_room import is_full, make_all_room, make_room
from agent_core.engine import Engine
from agent_core.errors import ContextFull
from agent_core.hooks.occasions import check_inbox, compacted, kept_going, may_compact
from agent_core.ids import new_message_id
from agent_core.messages import ModelReply, StopReason, ToolUseBlock
from agent_core.model.messages_api import call_model
from agent_core.stagger import new_prefix
from agent_core.state import unanswered
from agent_core.tool_runner import ToolBatch, comment_blocks
from agent_core.transcript.repair import interrupted_results
from agent_core.turn import CallModel, Finish, RunTools, next_step

STOPPED = "This call was interrupted before it ended: the user stopped the agent."


async def run_loop(agent: Agent, engine: Engine) -> StopReason:
    kept = 0
    while True:
        if not unanswered(agent.log.state.messages):
            await check_inbox(agent, engine)
            agent.take_inbox()
        match next_step(agent.log.state, agent.max_turns):
            case CallModel():
                await _call_model(agent, engine)
            case RunTools(calls):
                await _run_tools(agent, engine, calls)
            case Finish(reason):
                if not await kept_going(agent, engine, kept, may=reason is StopReason.END_TURN):
                    return reason
                kept += 1
            case step:
                assert_never(step)


async def _call_model(agent: Agent, engine: Engine) -> None:
    await tell_agents(agent)
    check_budget(agent, engine)
    if is_full(agent, engine.env) and await may_compact(agent, engine):
        make_room(agent, engine.env)
        compacted(agent, engine)
    await agent.log.written()
    try:
        reply = await _reply(agent, engine)
    except ContextFull:
        if not make_all_room(agent):
            raise
        reply = await _reply(agent, engine)
    agent.add_reply(reply)


async def _reply(agent: Agent, engine: Engine) -> ModelReply:
    settings = agent.project.configuration.settings
    turn = await engine.stagger.turn(_shared_key(agent), settings.stagger_ms)
    try:
        return await call_model(
            engine.client,
            agent.prompt.request(agent.model, settings.max_output_tokens),
            clock=engine.clock,
            max_attempts=settings.max_retries + 1,
            on_begin=turn.begun,
            on_delta=agent.record,
            on_retry=agent.record,
        )
    finally:
        turn.over()


def _shared_key(agent: Agent) -> str | None:
    """Only the first request of an agent has a prefix that is new and shared."""
    fresh = all(message.role == "user" for message in agent.log.state.messages)
    return new_prefix(agent.model, agent.prompt, fork=agent.fork) if fresh else None


async def _run_tools(agent: Agent, engine: Engine, calls: tuple[ToolUseBlock, ...]) -> None:
    """Every call gets its result in the very next message, also when the run is cancelled in the middle (E8).

    But when the process ends while a call waits for an answer, the calls stay open: a resume asks again.
    """
    earlier, agent.earlier = agent.earlier, {}
    batch = ToolBatch(agent, engine, tuple(call for call in calls if call.id not in earlier))
    try:
        await batch.run()
    finally:
        if agent.stop_asked or not agent.withdrawn:
            batch.interrupt(STOPPED)
            done = (*earlier.values(), *batch.results.values())
            results = interrupted_results(calls, done, STOPPED, new_message_id())
            agent.add(user_message(*results.content, *comment_blocks(batch.comments)))

"""The life of one run: queue, isolate, loop, finalize, settle, end; in this order, whatever happens.

Every run lives in the runtime's task group from birth; whoever wants its result awaits `agent.idle`. The parent of a
background agent is told by a notification, once for each run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

import anyio
from attrs import evolve, frozen

from agent_core.agent import Agent, Incoming, user_message
from agent_core.engine import Engine
from agent_core.errors import AgentError, TranscriptFailed
from agent_core.events import Ended, StatusChanged
from agent_core.forking import first_message
from agent_core.guidance.environment import environment
from agent_core.handoff import warning
from agent_core.hooks.occasions import HOOK, at_start, has_failed
from agent_core.ids import new_message_id
from agent_core.isolation import isolate, settle
from agent_core.messages import Message, StopReason, TextBlock, Usage
from agent_core.progress_summary import with_summaries
from agent_core.query_loop import STOPPED, run_loop
from agent_core.state import unanswered
from agent_core.task import TaskStatus
from agent_core.transcript.repair import INTERRUPTED, interrupted_results

logger = logging.getLogger(__name__)

NOTHING_SAID = "(Subagent completed but returned no output.)"
CLEANUP_SECONDS = 5.0
LAST_PLACES = 3


@frozen
class Outcome:
    status: TaskStatus
    stop_reason: StopReason | None = None
    error: str | None = None


async def run(agent: Agent, engine: Engine, first: Message | None) -> None:
    """One run of `agent`, and a further one for what arrived while it ended. Never raises but for cancellation.

    `first` is its task, or None when the inbox holds it.
    """
    try:
        await _run_once(agent, engine, first)
        while _goes_on(agent):
            agent.stop_asked = False
            await _run_once(agent, engine, None)
    finally:
        agent.stop_asked = False
        agent.finished.set()
        agent.idle.set()


def _goes_on(agent: Agent) -> bool:
    """Somebody wants an answer of an agent that has done its task, or has spoken to it after the stop."""
    return agent.woken and (agent.status is TaskStatus.COMPLETED or any(each.after_stop for each in agent.inbox))


async def _run_once(agent: Agent, engine: Engine, first: Message | None) -> None:
    started = engine.clock.monotonic()
    outcome = Outcome(TaskStatus.INTERRUPTED, StopReason.CANCELLED)
    try:
        with anyio.CancelScope() as agent.scope:
            if agent.stop_asked:
                agent.scope.cancel()
            outcome = await _work(agent, engine, first)
        if agent.scope.cancelled_caught:
            outcome = Outcome(TaskStatus.STOPPED, StopReason.CANCELLED, _why_stopped(agent))
    finally:
        agent.scope = None
        await _end_safely(agent, engine, outcome, round((engine.clock.monotonic() - started) * 1000))


def _why_stopped(agent: Agent) -> str | None:
    """None when a person, or a model by TaskStop, has done it."""
    return f"a hook ended the run: {agent.ended_by_hook}" if agent.ended_by_hook else None


async def _work(agent: Agent, engine: Engine, first: Message | None) -> Outcome:
    try:
        async with engine.slots.hold(_queue(agent)) as agent.slot:
            agent.record(StatusChanged(TaskStatus.RUNNING, agent.background))
            await isolate(agent, engine)
            await agent.recall()
            first = _task(agent, first)
            _add_first(agent, engine, _with_context(first, await at_start(agent, engine, first)))
            return Outcome(TaskStatus.COMPLETED, await with_summaries(agent, engine, lambda: run_loop(agent, engine)))
    except AgentError as error:
        has_failed(agent, engine, error)
        return Outcome(TaskStatus.FAILED, error=str(error))
    except Exception as error:
        logger.exception("the agent %s crashed", agent.id)
        return Outcome(TaskStatus.FAILED, error=f"internal error: {type(error).__name__}; see the server's log")


def _queue(agent: Agent) -> Callable[[int], None]:
    """Tells the agent's place while it waits: the first, the last three, and between them each halving. Every move
    would be a record in its transcript."""
    told: int | None = None

    def moved(place: int) -> None:
        nonlocal told
        if told is None or (place <= LAST_PLACES and place != told) or place * 2 <= told:
            told = place
            agent.record(StatusChanged(TaskStatus.PENDING, agent.background, place))

    return moved


def _task(agent: Agent, first: Message | None) -> Message | None:
    """Of an agent that was interrupted in the queue: what it was launched for."""
    state = agent.log.state
    if first is None and not state.messages and agent.task:
        return user_message(TextBlock(agent.task))
    return first


def _with_context(first: Message | None, added: tuple[str, ...]) -> Message | None:
    """With what hooks add (CTX-6)."""
    if not added:
        return first
    blocks = tuple(TextBlock(text) for text in added)
    return user_message(*blocks, meta=HOOK) if first is None else evolve(first, content=(*first.content, *blocks))


def _add_first(agent: Agent, engine: Engine, first: Message | None) -> None:
    """What the run is about. Calls that an earlier process left open are answered before anything else is said."""
    if unanswered(agent.log.state.messages):
        if first is not None:
            agent.inbox.append(Incoming(first))
        return
    agent.take_inbox()  # it came before
    if first is not None:
        _add_task(agent, engine, first)


def _add_task(agent: Agent, engine: Engine, task: Message) -> None:
    if agent.fork and not agent.log.state.messages:
        text = "\n\n".join(block.text for block in task.content if isinstance(block, TextBlock))
        agent.add_forked(first_message(agent, text, engine.clock.now().date().isoformat()))
    else:
        agent.add(_with_environment(agent, engine, task))


def _with_environment(agent: Agent, engine: Engine, first: Message) -> Message:
    """Facts that differ between siblings come after the shared prefix, in the first user message (CTX-4)."""
    worktree = agent.log.state.info.worktree
    return evolve(first, content=(TextBlock(environment(agent.place, engine.clock.now(), worktree)), *first.content))


async def _end_safely(agent: Agent, engine: Engine, outcome: Outcome, duration_ms: int) -> None:
    """A fault here must not reach the task group that all agents live in."""
    try:
        await _end(agent, engine, outcome, duration_ms)
    except Exception:
        logger.exception("the end of agent %s could not be recorded", agent.id)


async def _end(agent: Agent, engine: Engine, outcome: Outcome, duration_ms: int) -> None:
    """Answer what is open, let waiters go on, check the hand-off, settle the worktree, write the one terminal event,
    tell the parent.

    In this order (RUN-6), whatever hangs or fails on the way.
    """
    calls = unanswered(agent.log.state.messages)
    if calls and not (outcome.status is TaskStatus.INTERRUPTED and agent.withdrawn):
        text = INTERRUPTED if outcome.status is TaskStatus.INTERRUPTED else STOPPED
        agent.add(user_message(*interrupted_results(calls, (), text, new_message_id()).content))
    if outcome.status in (TaskStatus.STOPPED, TaskStatus.FAILED) and not agent.forgotten:
        agent.take_inbox(only_before_stop=True)  # no turn will come: what was said to it is kept in the conversation
    info = agent.log.state.info
    final = evolve(
        info,
        status=outcome.status,
        stop_reason=outcome.stop_reason,
        ended_at=engine.clock.now(),
        usage=info.usage + Usage(duration_ms=duration_ms),
        pending_permissions=0,
        result=_result(agent, outcome),
        error=outcome.error,
    )
    agent.final = final
    agent.finished.set()
    caution = await warning(agent, engine, final)
    note = await settle(agent, engine)
    result = "\n\n".join(part for part in (caution, final.result, note) if part) or None
    now = agent.log.state.info
    spent = now.usage + Usage(duration_ms=duration_ms)
    worktree = now.worktree if agent.worktree or (now.worktree and now.worktree.by_hook) else None
    agent.record(Ended(evolve(final, usage=spent, background=agent.background, worktree=worktree, result=result)))
    agent.forget()
    engine.ended(agent)
    with anyio.move_on_after(CLEANUP_SECONDS, shield=True), suppress(TranscriptFailed):
        await agent.log.written()
    engine.writer.release(agent.log, agent.files)


def _result(agent: Agent, outcome: Outcome) -> str | None:
    """The last thing that the agent said in its run; what it had found is kept when it fails or is stopped (RES)."""
    said = _last_words(agent, outcome)
    if outcome.stop_reason is StopReason.MAX_TURNS:
        turns = f"(Stopped at the limit of {agent.max_turns} turns, before the task was finished.)"
        return f"{said}\n\n{turns}" if said else turns
    if outcome.status is TaskStatus.COMPLETED:
        return said or NOTHING_SAID
    return said


def _last_words(agent: Agent, outcome: Outcome) -> str | None:
    """Of this run. One that was resumed when all was said already is done with what it had said."""
    state = agent.log.state
    replies = [message for message in state.messages if message.role == "assistant"]
    turns = state.run_turns or (outcome.status is TaskStatus.COMPLETED)
    run = replies[-turns:] if turns else []
    return next((message.text.strip() for message in reversed(run) if message.text.strip()), None)

"""The one way from the engine to hooks: who is concerned, all of them at once, one verdict.

Where no hook is configured for an event nothing is computed and nothing is awaited.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

import anyio
from attrs import evolve

from agent_core.conversations import is_main
from agent_core.events import HookRan
from agent_core.hooks.matching import NOTHING, Verdict, merge, select
from agent_core.hooks.moments import Moment
from agent_core.hooks.values import ENDING, OK, Answer, Hook

if TYPE_CHECKING:
    from agent_core.agent import Agent
    from agent_core.engine import Engine
    from agent_core.loading.configuration import Configuration

logger = logging.getLogger(__name__)


def hooks_of(agent: Agent, engine: Engine, event: str) -> tuple[Hook, ...]:
    """Those of settings and of the agent's own file. Before the folder is trusted none runs in an editor; without one
    those of the person and of the machine do."""
    configuration = agent.project.configuration
    own = configuration.hooks.of(agent.definition)
    if own and not is_main(agent.log.state.info):  # HK-2: its end is that of a sub-agent
        own = tuple(evolve(hook, event="SubagentStop") if hook.event == "Stop" else hook for hook in own)
    found = (*own, *configuration.hooks.active)
    return tuple(hook for hook in found if hook.event == event and runs_here(hook, configuration, engine))


def runs_here(hook: Hook, configuration: Configuration, engine: Engine) -> bool:
    return configuration.trusted or not (engine.interactive or hook.from_project)


async def dispatch(agent: Agent, engine: Engine, moment: Moment) -> Verdict:
    """What the hooks of this moment say together. Each one is recorded; cancellation ends them."""
    hooks = select(hooks_of(agent, engine, moment.event), moment.event, moment.subject)
    if not hooks:
        return NOTHING
    answers = [OK] * len(hooks)
    payload = moment.payload(agent)
    ran: list[int] = []

    async def ask(index: int, hook: Hook) -> None:
        if hook.condition is not None and not await moment.speaks(hook.condition):
            return
        if not engine.hooks.take(agent, hook):
            return
        ran.append(index)
        if hook.detached:
            engine.broker.group.start_soon(_aside, agent, partial(_detached, agent, engine, hook, payload))
        else:
            answers[index] = await engine.hooks.run(agent, engine, hook, payload)

    async with anyio.create_task_group() as group:
        for index, hook in enumerate(hooks):
            group.start_soon(ask, index, hook)
    for index in sorted(ran):
        if not hooks[index].detached:
            record(agent, moment.event, answers[index])
    verdict = merge(answers)
    if verdict.stop is not None and moment.event not in ENDING and not agent.idle.is_set():
        agent.end_by_hook(verdict.stop)
    return verdict


def observe(agent: Agent, engine: Engine, moment: Moment) -> None:
    """For events whose hooks decide nothing: nobody waits for them."""
    if hooks_of(agent, engine, moment.event):
        engine.broker.group.start_soon(_aside, agent, partial(_observed, agent, engine, moment))


async def _observed(agent: Agent, engine: Engine, moment: Moment) -> None:
    await dispatch(agent, engine, moment)
    close_transcript(agent, engine)


def close_transcript(agent: Agent, engine: Engine) -> None:
    """After hooks of an agent that has ended: what they did is recorded, and its file is given back once more."""
    if agent.idle.is_set():
        agent.forget()
        engine.writer.release(agent.log, agent.files)


def record(agent: Agent, event: str, answer: Answer) -> None:
    agent.record(HookRan(event, answer.outcome, answer.message))


async def _detached(agent: Agent, engine: Engine, hook: Hook, payload: dict[str, object]) -> None:
    """What an `async` hook says does not count; that it failed is told while the agent works."""
    answer = await engine.hooks.run(agent, engine, hook, payload)
    if not agent.forgotten:
        record(agent, hook.event, Answer(answer.outcome if answer.outcome in _FAULTS else "ok", answer.message))


async def _aside(agent: Agent, work: Callable[[], Awaitable[object]]) -> None:
    """In the runtime's group, which no fault may reach; a stop of the agent ends it."""
    with anyio.CancelScope() as scope:
        agent.detached.add(scope)
        try:
            await work()
        except Exception:
            logger.exception("hooks of agent %s failed inside", agent.id)
        finally:
            agent.detached.discard(scope)


_FAULTS = ("error", "timeout")

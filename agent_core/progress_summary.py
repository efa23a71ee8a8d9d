"""One line on what a background agent does, kept up to date beside its run (RUN-11, the setting `progressSummaries`).

A request for it is the agent's own prompt up to a message that was answered already, which is cached therefore, and one
further user message behind the last breakpoint. It is sent only when the agent has got further since the last one, and
leaves no trace in the agent's conversation: what the agent sends next reads the same cache entries (I7).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio
from attrs import evolve

from agent_core.agent import Agent, user_message
from agent_core.budget import check_budget
from agent_core.engine import Engine
from agent_core.errors import AgentError
from agent_core.events import StatusChanged, UsageReported
from agent_core.messages import StopReason, TextBlock, Usage
from agent_core.model.aliases import context_limit
from agent_core.model.messages_api import call_model
from agent_core.model.prices import cost
from agent_core.model.prompt import Prompt, render_message
from agent_core.ports import ModelRequest
from agent_core.task import TERMINAL

logger = logging.getLogger(__name__)

EVERY_SECONDS = 20.0
QUESTION = (
    "A question aside, for a progress display: in one line of at most ten words, what are you doing right now? "
    "Answer with that line only, and call no tool."
)
_MAX_TOKENS, _MAX_CHARACTERS = 100, 120


async def with_summaries(agent: Agent, engine: Engine, work: Callable[[], Awaitable[StopReason]]) -> StopReason:
    """What `work` gives or raises; meanwhile the agent's line is kept up to date, where that is wanted."""
    if not agent.project.configuration.settings.progress_summaries or agent.parent is None:
        return await work()
    reason: StopReason | Exception
    async with anyio.create_task_group() as group:
        group.start_soon(_keep, agent, engine)
        try:
            reason = await work()
        except Exception as error:  # noqa: BLE001 - raised below, outside of the group, which would wrap it
            reason = error
        group.cancel_scope.cancel()
    if isinstance(reason, Exception):
        raise reason
    return reason


async def _keep(agent: Agent, engine: Engine) -> None:
    """A fault of a summary is none of the agent's."""
    told = 0
    while True:
        await anyio.sleep(EVERY_SECONDS)
        length = _answered(agent.prompt)
        if not agent.background or length <= told:
            continue
        told = length
        try:
            check_budget(agent, engine)
            await _tell(agent, engine, length)
        except AgentError as error:
            logger.info("no summary of agent %s: %s", agent.id, error)


def _answered(prompt: Prompt) -> int:
    """The number of messages up to the last one of the user that has an answer: what the service has in its cache."""
    roles = [message["role"] for message in prompt.messages]
    last = max((index for index, role in enumerate(roles) if role == "assistant"), default=0)
    return last if last and roles[last - 1] == "user" else 0


async def _tell(agent: Agent, engine: Engine, length: int) -> None:
    reply = await call_model(
        engine.client,
        _request(agent, length),
        clock=engine.clock,
        max_attempts=1,
        on_delta=lambda delta: None,
        on_retry=lambda retry: None,
    )
    spent = cost(agent.model, reply.usage, agent.project.configuration.settings.prices)
    usage = agent.log.state.info.usage + evolve(reply.usage, turns=0) + Usage(cost_usd=spent)
    agent.record(UsageReported(usage, reply.usage.total_tokens, context_limit(agent.model)))
    line = " ".join(reply.message.text.split())[:_MAX_CHARACTERS]
    if line and agent.status not in TERMINAL:
        agent.record(StatusChanged(agent.status, agent.background, summary=line))


def _request(agent: Agent, length: int) -> ModelRequest:
    """Tools and thinking stay as they are: to change either would be another prefix."""
    prompt = evolve(agent.prompt, messages=agent.prompt.messages[:length])
    thinking = prompt.thinking or {}
    request = prompt.request(agent.model, _MAX_TOKENS + int(thinking.get("budget_tokens", 0)))
    question = render_message(user_message(TextBlock(QUESTION)))
    return evolve(request, messages=[*request.messages, question])

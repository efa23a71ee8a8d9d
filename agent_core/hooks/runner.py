"""One hook, one answer: chooses by its kind, ends it when its time is over, and reports every failure (HK-4)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, assert_never

import anyio
from attrs import define, field

from agent_core.errors import AgentError
from agent_core.hooks.command import run_command
from agent_core.hooks.http import post
from agent_core.hooks.model import ask_model
from agent_core.hooks.values import Answer, Command, Hook, Http, McpTool, Question, failed
from agent_core.ids import ConversationId

if TYPE_CHECKING:
    from agent_core.agent import Agent
    from agent_core.engine import Engine

logger = logging.getLogger(__name__)

CallMcpTool = Callable[["Agent", McpTool, Mapping[str, Any]], Awaitable[Answer]]

_SECONDS = 600.0
_OF_KIND = {False: 30.0, True: 60.0}
_OF_EVENT = {"UserPromptSubmit": 30.0, "SessionEnd": 1.5}


@define(eq=False)
class HookRunner:
    """`mcp_tool` calls a tool of a connected MCP server; None while there are none. `sessions` are the conversations
    whose SessionStart was told, with an agent of each; `spent` the `once` hooks that have run."""

    mcp_tool: CallMcpTool | None = None
    sessions: dict[ConversationId, Agent] = field(factory=dict)
    _spent: list[tuple[ConversationId, Hook]] = field(factory=list)

    def take(self, agent: Agent, hook: Hook) -> bool:
        """False for a `once` hook that has run in this conversation."""
        key = (agent.log.state.info.conversation_id, hook)
        if hook.once and key in self._spent:
            return False
        if hook.once:
            self._spent.append(key)
        return True

    async def run(self, agent: Agent, engine: Engine, hook: Hook, payload: Mapping[str, Any]) -> Answer:
        """Never raises but for cancellation, which ends what the hook has started."""
        answer = Answer("timeout", "it did not answer in time, so it decides nothing")
        seconds = seconds_of(hook)
        try:
            with anyio.move_on_after(seconds + _GRACE):
                answer = await self._run(agent, engine, hook, payload, seconds)
        except AgentError as error:
            answer = failed(str(error))
        except Exception as error:
            logger.exception("a hook of %s failed inside", hook.event)
            answer = failed(f"internal error: {type(error).__name__}; see the server's log")
        if answer.outcome in ("error", "timeout"):
            logger.warning("a hook of %s in %s: %s", hook.event, hook.source, answer.outcome)
        return answer

    async def _run(
        self, agent: Agent, engine: Engine, hook: Hook, payload: Mapping[str, Any], seconds: float
    ) -> Answer:
        match hook.handler:
            case Command() as command:
                project = agent.project.project.root
                cwd = agent.place.cwd
                return await run_command(engine.processes, command, payload, cwd=cwd, project=project, timeout=seconds)
            case Http() as http:
                return await post(http, payload, env=engine.env, timeout=seconds)
            case McpTool() as tool:
                if self.mcp_tool is None:
                    return failed(f"no MCP server is connected, so {tool.server}/{tool.tool} was not called")
                return await self.mcp_tool(agent, tool, payload)
            case Question() as question:
                with anyio.move_on_after(seconds):
                    return await ask_model(agent, engine, question, payload)
                return Answer("timeout", f"the model did not answer within {seconds:g} s, so it decides nothing")
            case handler:
                assert_never(handler)


_GRACE = 10.0
"""Seconds for ending what does not obey."""


def seconds_of(hook: Hook) -> float:
    if hook.timeout is not None:
        return min(hook.timeout, 1.5) if hook.event == "SessionEnd" else hook.timeout
    own = _OF_KIND[hook.handler.tools] if isinstance(hook.handler, Question) else _SECONDS
    return min(own, _OF_EVENT.get(hook.event, own))

"""How an agent talks to others of its conversation: by id or name, whether they work or have ended (MSG-1, MSG-2)."""

from __future__ import annotations

import builtins

import anyio
from attrs import define

from agent_core.agent import STOP_SECONDS, Agent, Incoming, user_message
from agent_core.background import background_disabled, summary
from agent_core.engine import Engine
from agent_core.errors import ToolError, UnknownAgent, UserError
from agent_core.events import AgentInfo
from agent_core.ids import MAIN
from agent_core.launching import answer_of, result_of
from agent_core.messages import TextBlock
from agent_core.spawning import refuse_denied
from agent_core.task import TaskStatus
from agent_core.text import harmless, shortened_in_the_middle
from agent_core.tool import ToolResult

_TAIL = 2_000
"""Characters of what a working agent has said, for one who asks how far it is."""


@define(eq=False)
class AgentMessenger:
    """The Messenger of one call of `sender`. `limit`: of what an agent said, in characters."""

    sender: Agent
    engine: Engine
    tool_use_id: str
    limit: int

    async def send(self, to: str, message: str) -> ToolResult:
        agent = await self._find(to)
        if agent is self.sender:
            raise ToolError("That is you. Do it yourself.")
        if not agent.idle.is_set():
            agent.inbox.append(Incoming(user_message(TextBlock(self._signed(message)), meta="message")))
            return ToolResult.ok(f"Delivered: {agent.id} reads it at its next turn.")
        if agent.parent is None:
            raise ToolError(f"{to} is the conversation with the user; it does not work now. Answer instead.")
        self._may_resume(agent)
        if agent.parent is not self.sender:
            self.engine.resume(agent, message, True)
            return ToolResult.ok(f"{agent.id} goes on. Its own parent is told when it ends; TaskOutput waits for it.")
        agent.tool_use_id = self.tool_use_id
        self.engine.resume(agent, message, not background_disabled(self.engine.env))
        return await answer_of(self.sender, self.engine, agent, "", self.limit)

    async def output(self, to: str, wait_seconds: float) -> ToolResult:
        agent = await self._find(to)
        if agent is self.sender or agent.parent is None:
            raise ToolError("There is nothing to wait for: that is you, or the conversation that you work for.")
        if not agent.finished.is_set() and not agent.idle.is_set() and wait_seconds:
            await self._wait(agent, wait_seconds)
        final = agent.log.state.info if agent.idle.is_set() else agent.final
        if final is not None:
            builtin = agent.definition.source == "builtin"
            return result_of(final, builtin, "", self.limit, by_model=agent.stopped_by_model)
        return ToolResult.ok(_progress(agent))

    async def stop(self, to: str) -> ToolResult:
        agent = await self._find(to)
        if agent.idle.is_set():
            raise ToolError(f"{to} does not work: {summary(agent.log.state.info)}.")
        if agent is self.sender or agent.parent is None:
            raise ToolError("You can stop agents that were launched, not the conversation that you are in.")
        agent.parent_stopped_it = agent.parent is self.sender and not agent.stop_asked
        agent.stop(by_model=True)
        with anyio.move_on_after(STOP_SECONDS):
            await agent.idle.wait()
        info = agent.log.state.info
        said = shortened_in_the_middle(harmless(info.result or ""), self.limit)[0]
        return ToolResult.ok(f"Stopped {info.id}." + (f" What it had said last:\n{said}" if said else ""))

    async def list(self) -> ToolResult:
        agents = [agent for agent in self._conversation() if agent.parent is not None and agent is not self.sender]
        return ToolResult.ok("\n".join(_line(agent.log.state.info) for agent in agents) or "No agent was launched yet.")

    async def _wait(self, agent: Agent, seconds: float) -> None:
        """A parent that only waits holds no slot."""
        assert self.sender.slot is not None, "only a running agent waits for others"
        async with self.sender.slot.lent():
            with anyio.move_on_after(seconds):
                await agent.finished.wait()

    def _may_resume(self, agent: Agent) -> None:
        info = agent.log.state.info
        if info.status is TaskStatus.STOPPED and not agent.stopped_by_model:
            how = f"This agent did not finish: {info.error}" if info.error else "The user stopped this agent"
            raise ToolError(f"{how}. It goes on only when the user sends it a message.")
        try:
            refuse_denied(agent.project, info.agent_type)
        except UserError as error:
            raise ToolError(f"The message was not sent: {error}") from error

    def _signed(self, message: str) -> str:
        info = self.sender.log.state.info
        return f"Message from {info.name or info.agent_type} ({info.id}):\n{message}"

    def _conversation(self) -> builtins.list[Agent]:
        root = self.sender.log.state.info.root_id
        return [agent for agent in self.engine.agents.values() if agent.log.state.info.root_id == root]

    async def _find(self, to: str) -> Agent:
        """By id, of an earlier process too; by name the agent that it reached first (MSG-1)."""
        known = self._conversation()
        if to == MAIN:
            return next(agent for agent in known if agent.parent is None)
        if found := next((agent for agent in known if agent.id == to), None):
            return found
        named = [agent for agent in known if agent.log.state.info.name == to]
        if not named and (earlier := await self._earlier(to)):
            return earlier
        if not named:
            names = [agent.log.state.info.name or agent.id for agent in known if agent.parent is not None]
            raise ToolError(f"There is no agent {to!r} here. There are: {', '.join(names) or 'none'}.")
        first = self.sender.addressed.setdefault(to, named[-1].id)
        if first != named[-1].id:
            raise ToolError(
                f"The name {to!r} has moved on: you talked to {first}, and a newer agent, {named[-1].id}, has it now. "
                "Send to the id that you mean."
            )
        return named[-1]

    async def _earlier(self, agent_id: str) -> Agent | None:
        try:
            agent = await self.engine.reach(agent_id)
        except UnknownAgent:
            return None
        except UserError as error:
            raise ToolError(f"{agent_id} cannot be reached: {error}") from error
        return agent if agent in self._conversation() else None


def _progress(agent: Agent) -> str:
    """For one who asks how far an agent is: what it does, and the end of what it has said."""
    info = agent.log.state.info
    said = [message.text for message in agent.log.state.messages if message.role == "assistant" and message.text]
    usage = info.usage
    lines = [f"{info.id} is {info.status}: {usage.turns} turns, {usage.tool_uses} tool uses so far."]
    if info.last_tool:
        lines.append(f"Last tool: {info.last_tool}")
    if said:
        lines.append(f"It said last:\n{harmless(said[-1][-_TAIL:])}")
    lines.append("You are told when it ends.")
    return "\n".join(lines)


def _line(info: AgentInfo) -> str:
    name = f" {info.name}" if info.name else ""
    return f"- {info.id}{name} ({info.agent_type}): {info.description}: {info.status}"

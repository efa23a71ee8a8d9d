"""Runs the tool calls of one assistant message: announce, check, ask, run, record.

Neighbouring calls that read, or that launch agents, run side by side; everything else runs alone and in order. A
failing tool is a result, never an exception. After a cancellation the calls that had ended keep their results (E8).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, Literal

import anyio
from attrs import define, evolve, field

from agent_core.agent import Agent, locations
from agent_core.engine import Engine
from agent_core.errors import ToolError
from agent_core.events import FilesChanged, ToolCalled, ToolEnded, ToolOutput
from agent_core.hooks.occasions import after_tool
from agent_core.hooks.tasks import HookedTasks
from agent_core.launching import AgentLauncher
from agent_core.messages import TextBlock, ToolResultBlock, ToolUseBlock
from agent_core.messenger import AgentMessenger
from agent_core.permissions.gate import Permitted, hidden_files, permit
from agent_core.permissions.types import ToolKind
from agent_core.result_limits import TELLING, result_limit
from agent_core.task_list import TaskFile
from agent_core.tool import Tool, ToolContext, ToolResult
from agent_core.tool_input import invalid

logger = logging.getLogger(__name__)


@define(eq=False)
class ToolBatch:
    """`results` and `comments` fill as calls end, so that a cancelled batch still knows what was done."""

    agent: Agent
    engine: Engine
    calls: tuple[ToolUseBlock, ...]
    results: dict[str, ToolResultBlock] = field(factory=dict)
    comments: list[str] = field(factory=list)
    _ran: dict[str, tuple[Tool, Mapping[str, Any], ToolContext]] = field(factory=dict)

    async def run(self) -> None:
        for call in self.calls:
            self._announce(call)
        await self.agent.log.written()
        for together in _groups(self.calls, self.agent.tools):
            await self._files_are_there(together)
            async with anyio.create_task_group() as group:
                for call in together:
                    group.start_soon(self._one, call)

    async def _files_are_there(self, calls: list[ToolUseBlock]) -> None:
        """The first calls that need files wait for those of the worktree. WorktreeFailed when there will be none."""
        place, checkouts = self.agent.place, self.engine.checkouts
        if not checkouts.is_waiting(place.worktree) or not (waiting := [*filter(self._needs_files, calls)]):
            return
        for call in waiting:
            self.agent.record(ToolOutput(call.id, "Waiting for git to write the files of the worktree ..."))
        await checkouts.ready(place.worktree)
        if place.worktree is not None and not place.cwd.is_dir():
            self.agent.place = evolve(place, cwd=place.worktree)

    def _needs_files(self, call: ToolUseBlock) -> bool:
        """An agent can be launched without any, unless it is to work in a folder that is still to be made."""
        place, tool = self.agent.place, self.agent.tools.get(call.name)
        return tool is not None and (
            tool.kind is not ToolKind.OTHER or "cwd" in call.input or place.cwd != place.worktree
        )

    def _announce(self, call: ToolUseBlock) -> None:
        tool = self.agent.tools.get(call.name)
        kind, title = (tool.kind, _title(tool, call.input)) if tool else (ToolKind.OTHER, call.name)
        path = locations(call.input)
        places = ((self.agent.place.cwd / path, None),) if path else ()
        self.agent.record(ToolCalled(call.id, call.name, kind, title, call.input, places))

    def interrupt(self, text: str) -> None:
        """End the calls that have no result yet, for people; the loop answers them for the model."""
        for call in self.calls:
            if call.id not in self.results:
                self.agent.record(ToolEnded(call.id, "failed", (TextBlock(text),), None, 0))

    async def _one(self, call: ToolUseBlock) -> None:
        started = self.engine.clock.monotonic()
        result = await self._result(call)
        duration = round((self.engine.clock.monotonic() - started) * 1000)
        try:
            result = await self._after(call, result, duration)
        finally:  # a hook that is cut off takes nothing from a call that has ended
            self._end(call, result, duration)

    def _end(self, call: ToolUseBlock, result: ToolResult, duration: int) -> None:
        self.results[call.id] = ToolResultBlock(call.id, result.content, result.is_error)
        status: Literal["completed", "failed"] = "failed" if result.is_error else "completed"
        self.agent.record(ToolEnded(call.id, status, result.content, result.diff, duration))
        if result.changed:
            self.agent.record(FilesChanged(result.changed))

    async def _after(self, call: ToolUseBlock, result: ToolResult, duration: int) -> ToolResult:
        """Hooks after a call that was allowed to run."""
        if call.id not in self._ran:
            return result
        tool, input, context = self._ran[call.id]
        result, notes = await after_tool(self.agent, self.engine, tool, call.id, input, result, duration, context)
        self.comments.extend(notes)
        return result

    async def _result(self, call: ToolUseBlock) -> ToolResult:
        tool = self.agent.tools.get(call.name)
        if tool is None:
            return ToolResult.error(
                f"There is no tool {call.name}. Yours are: {', '.join(self.agent.tools) or 'none'}."
            )
        try:
            return await self._checked(tool, call)
        except ToolError as error:
            return ToolResult.error(str(error))
        except OSError as error:
            return ToolResult.error(f"{error.strerror or error}: {error.filename or ''}".rstrip(": "))
        except Exception:
            logger.exception("the tool %s failed", call.name)
            return ToolResult.error(
                f"The tool {call.name} failed inside; this is a fault of the host, not of your call."
            )

    async def _checked(self, tool: Tool, call: ToolUseBlock) -> ToolResult:
        if problem := invalid(tool, call.input):
            return ToolResult.error(problem)
        context = self._context(call)
        permitted = await permit(self.agent, self.engine, tool, call.id, call.input, context)
        self._keep_comment(permitted)
        self.agent.record(ToolOutput(call.id, ""))
        self._ran[call.id] = (tool, permitted.input, context)
        return await tool.run(permitted.input, context)

    def _keep_comment(self, permitted: Permitted) -> None:
        self.comments.extend(permitted.notes)
        if permitted.edited:
            self.comments.append(f"The user changed the input of the call to: {dict(permitted.input)}")
        if permitted.comment:
            self.comments.append(f"The user allowed the call and says: {permitted.comment}")

    def _context(self, call: ToolUseBlock) -> ToolContext:
        agent, engine = self.agent, self.engine
        limit = result_limit(engine.env, sum(each.name in TELLING for each in self.calls))
        return ToolContext(
            agent_id=agent.id,
            place=agent.place,
            files=engine.files,
            processes=engine.processes,
            read_files=agent.read_files,
            report=lambda text: agent.record(ToolOutput(call.id, text)),
            launcher=AgentLauncher(agent, engine, call.id, limit),
            messenger=AgentMessenger(agent, engine, call.id, limit),
            tasks=HookedTasks(TaskFile(agent.files.transcript.parents[1] / "tasks.json"), agent, engine),
            denied=hidden_files(agent),
        )


def _groups(calls: tuple[ToolUseBlock, ...], tools: Mapping[str, Tool]) -> Iterator[list[ToolUseBlock]]:
    def concurrent(call: ToolUseBlock) -> bool:
        return call.name in tools and tools[call.name].concurrent

    for together, group in groupby(calls, concurrent):
        batch = list(group)
        yield from [batch] if together else ([call] for call in batch)


def _title(tool: Tool, input: Mapping[str, Any]) -> str:
    try:
        return tool.title(input)
    except Exception:  # noqa: BLE001 - an input that was not checked yet must not stop the announcement
        return tool.name


def comment_blocks(comments: list[str]) -> tuple[TextBlock, ...]:
    return tuple(TextBlock(comment) for comment in comments)

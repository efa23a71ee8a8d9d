"""How an agent launches another: choose, start, and in the foreground wait and hand over the answer (RES-1 to RES-7).

Foreground is who waits, not where the work runs: moving an agent to the background only releases its waiter (RUN-4).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
from attrs import define

from agent_core.agent import STOP_SECONDS, Agent
from agent_core.background import background_disabled, launched, runs_in_background, usage_block
from agent_core.budget import check_budget
from agent_core.definitions import AgentDefinition
from agent_core.engine import Engine
from agent_core.errors import ToolError, UserError
from agent_core.events import AgentInfo
from agent_core.forking import build_fork, kind_of
from agent_core.messages import TextBlock
from agent_core.permissions.types import PermissionMode
from agent_core.spawning import SpawnRequest, build_child, check_cwd, check_isolation, select_for
from agent_core.task import TaskStatus
from agent_core.text import harmless, shortened_in_the_middle
from agent_core.tool import ToolResult

ONE_SHOT = frozenset({"Explore", "Plan"})
"""Built-ins whose answer is all that anybody wants of them (RES-6)."""


@define(eq=False)
class AgentLauncher:
    """The Launcher of one Agent call of `parent`. `limit`: of the answer, in characters."""

    parent: Agent
    engine: Engine
    tool_use_id: str
    limit: int

    async def launch(self, input: Mapping[str, Any]) -> ToolResult:
        try:
            child, note = await self._prepare(input)
        except UserError as error:
            raise ToolError(f"The agent was not launched: {error}") from error
        child.tool_use_id = self.tool_use_id
        self.engine.begin(child, input["prompt"])
        return await answer_of(self.parent, self.engine, child, note, self.limit)

    async def _prepare(self, input: Mapping[str, Any]) -> tuple[Agent, str]:
        """The child, registered and not started, and what the parent must be told about it."""
        if "cwd" in input and input.get("isolation") == "worktree":
            raise ToolError("cwd and isolation: worktree exclude each other; leave one out.")
        await self.parent.project.refresh()
        check_budget(self.parent, self.engine)
        if kind_of(input, self.parent, self.engine) == "fork":
            return await self._fork(input), ""
        place = self.parent.place
        definition = select_for(self.parent, input.get("subagent_type") or "general-purpose")
        cwd = place.cwd
        if "cwd" in input:
            cwd = check_cwd(place.cwd / input["cwd"], (place.worktree or place.cwd,))
        isolation = input.get("isolation") or definition.isolation or "none"
        await check_isolation(self.engine, self.parent.project, isolation, cwd)
        request = self._request(input, Path(cwd), definition, fork=False)
        child, capped = build_child(self.engine, self.parent, definition, request, isolation)
        note = f"(mode {input['mode']} is wider than the agent may have; it ran with {child.mode}.)" if capped else ""
        return child, note

    async def _fork(self, input: Mapping[str, Any]) -> Agent:
        request = self._request(input, self.parent.place.cwd, None, fork=True)
        return await build_fork(self.engine, self.parent, request, input.get("isolation") or "none")

    def _request(
        self, input: Mapping[str, Any], cwd: Path, definition: AgentDefinition | None, *, fork: bool
    ) -> SpawnRequest:
        settings = self.parent.project.configuration.settings
        asked = input.get("run_in_background")
        return SpawnRequest(
            prompt=input["prompt"],
            cwd=cwd,
            description=input["description"],
            model=input.get("model"),
            permission_mode=PermissionMode(input["mode"]) if "mode" in input else None,
            background=runs_in_background(
                asked, definition, settings, self.engine.env, fork=fork, interactive=self.engine.interactive
            ),
            name=input.get("name"),
        )


async def answer_of(parent: Agent, engine: Engine, child: Agent, note: str, limit: int) -> ToolResult:
    """What `parent` gets for a child that was just started: its answer, or that it works in the background."""
    if not child.background:
        await _wait(parent, engine, child)
    info = child.log.state.info
    if child.background:
        text = launched(info, tuple(name for name in ("Read", "Bash") if name in parent.tools))
        return ToolResult(tuple(TextBlock(part) for part in (text, note) if part))
    return result_of(info, child.definition.source == "builtin", note, limit)


async def _wait(parent: Agent, engine: Engine, child: Agent) -> None:
    """A parent that only waits holds no slot. When it is stopped, so is the child, unless that was released before."""
    assert parent.slot is not None, "only a running agent launches others"
    try:
        async with parent.slot.lent():
            await _ended_or_released(child, _seconds(parent, engine))
    finally:
        if not child.idle.is_set() and not child.released.is_set():
            child.stop()
            with anyio.move_on_after(STOP_SECONDS, shield=True):
                await child.idle.wait()


async def _ended_or_released(child: Agent, seconds: float) -> None:
    async def first(event: anyio.Event) -> None:
        await event.wait()
        group.cancel_scope.cancel()

    with anyio.move_on_after(seconds) as timed:
        async with anyio.create_task_group() as group:
            group.start_soon(first, child.idle)
            group.start_soon(first, child.released)
    if timed.cancelled_caught:
        child.to_background()


def _seconds(parent: Agent, engine: Engine) -> float:
    """How long a parent waits before the agent goes to the background by itself (RUN-4)."""
    milliseconds = parent.project.configuration.settings.auto_background_ms
    return milliseconds / 1000 if milliseconds and not background_disabled(engine.env) else math.inf


def result_of(info: AgentInfo, builtin: bool, note: str, limit: int, by_model: bool = False) -> ToolResult:
    """What the parent reads: the answer, then what it needs to go on with that agent. `by_model`: TaskStop ended it."""
    said, cut = shortened_in_the_middle(harmless(info.result or ""), limit)
    if cut:
        said += f"\n\n(The whole answer is in {info.output_file})"
    parts = [_headline(info, said, by_model), note, *_worktree(info)]
    if not (builtin and info.agent_type in ONE_SHOT) or info.worktree:
        parts.append(f"agentId: {info.id}")
    if not (builtin and info.agent_type in ONE_SHOT):
        parts.append(usage_block(info))
    content = tuple(TextBlock(part) for part in parts if part)
    return ToolResult(content, is_error=info.status is not TaskStatus.COMPLETED)


def _headline(info: AgentInfo, said: str, by_model: bool) -> str:
    if info.status is TaskStatus.COMPLETED:
        return said
    partial = f"\n\nWhat it had said last:\n{said}" if said else ""
    if info.status is TaskStatus.STOPPED and by_model:
        return f"This agent was stopped by TaskStop.{partial}"
    if info.status is TaskStatus.STOPPED and info.error:
        return f"This agent did not finish: {info.error}{partial}"
    if info.status is TaskStatus.STOPPED:
        return f"The user stopped this agent. Don't launch it again unless the user asks for it.{partial}"
    return f"The agent {info.status}: {info.error or 'no reason is known'}{partial}"


def _worktree(info: AgentInfo) -> list[str]:
    if info.worktree is None:
        return []
    branch = f"\nworktreeBranch: {info.worktree.branch}" if info.worktree.branch else ""
    return [f"worktreePath: {info.worktree.path}{branch}"]

"""How an agent launches another in the foreground: choose, start, wait, and hand over the answer (RES-1 to RES-7)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
from attrs import define

from agent_core.agent import Agent
from agent_core.engine import Engine
from agent_core.errors import ToolError, UserError
from agent_core.events import AgentInfo
from agent_core.messages import TextBlock
from agent_core.permissions.types import PermissionMode
from agent_core.repository import require_commit
from agent_core.spawning import SpawnRequest, build_child, check_cwd, select_for
from agent_core.task import TaskStatus
from agent_core.text import shortened_in_the_middle
from agent_core.tool import ToolResult

ONE_SHOT = frozenset({"Explore", "Plan"})
"""Built-ins whose answer is all that anybody wants of them (RES-6)."""

_STOP_SECONDS = 10.0
_MAX_RESULT = 32_000
"""Characters; TASK_MAX_OUTPUT_LENGTH changes it, up to 160,000."""


@define(eq=False)
class AgentLauncher:
    """The Launcher of one parent."""

    parent: Agent
    engine: Engine

    async def launch(self, input: Mapping[str, Any]) -> ToolResult:
        try:
            child, note = await self._prepare(input)
        except UserError as error:
            raise ToolError(f"The agent was not launched: {error}") from error
        self.engine.begin(child, input["prompt"])
        await self._wait(child)
        return result_of(child.log.state.info, child.definition.source == "builtin", note, _limit(self.engine.env))

    async def _prepare(self, input: Mapping[str, Any]) -> tuple[Agent, str]:
        """The child, registered and not started, and what the parent must be told about it."""
        if "cwd" in input and input.get("isolation") == "worktree":
            raise ToolError("cwd and isolation: worktree exclude each other; leave one out.")
        await self.parent.project.refresh()
        place = self.parent.place
        definition = select_for(self.parent, input.get("subagent_type") or "general-purpose")
        cwd = place.cwd
        if "cwd" in input:
            cwd = check_cwd(place.cwd / input["cwd"], (place.worktree or place.cwd,))
        isolation = input.get("isolation") or definition.isolation or "none"
        if isolation == "worktree":
            await require_commit(self.engine.git, cwd)
        request = SpawnRequest(
            prompt=input["prompt"],
            cwd=Path(cwd),
            description=input["description"],
            model=input.get("model"),
            permission_mode=PermissionMode(input["mode"]) if "mode" in input else None,
            name=input.get("name"),
        )
        child, capped = build_child(self.engine, self.parent, definition, request, isolation)
        note = f"(mode {input['mode']} is wider than the agent may have; it ran with {child.mode}.)" if capped else ""
        return child, note

    async def _wait(self, child: Agent) -> None:
        """A parent that only waits holds no slot. When it is stopped, so is the child."""
        assert self.parent.slot is not None, "only a running agent launches others"
        try:
            async with self.parent.slot.lent():
                await child.idle.wait()
        finally:
            if not child.idle.is_set():
                child.stop()
                with anyio.move_on_after(_STOP_SECONDS, shield=True):
                    await child.idle.wait()


def result_of(info: AgentInfo, builtin: bool, note: str, limit: int) -> ToolResult:
    """What the parent reads: the answer, then what it needs to go on with that agent."""
    said, cut = shortened_in_the_middle(info.result or "", limit)
    if cut:
        said += f"\n\n(The whole answer is in {info.output_file})"
    parts = [_headline(info, said), note, *_worktree(info)]
    if not (builtin and info.agent_type in ONE_SHOT) or info.worktree:
        parts.append(f"agentId: {info.id}")
    if not (builtin and info.agent_type in ONE_SHOT):
        parts.append(_usage(info))
    content = tuple(TextBlock(part) for part in parts if part)
    return ToolResult(content, is_error=info.status is not TaskStatus.COMPLETED)


def _headline(info: AgentInfo, said: str) -> str:
    if info.status is TaskStatus.COMPLETED:
        return said
    partial = f"\n\nWhat it had said last:\n{said}" if said else ""
    if info.status is TaskStatus.STOPPED:
        return f"The user stopped this agent. Don't launch it again unless the user asks for it.{partial}"
    return f"The agent {info.status}: {info.error or 'no reason is known'}{partial}"


def _worktree(info: AgentInfo) -> list[str]:
    if info.worktree is None:
        return []
    return [f"worktreePath: {info.worktree.path}\nworktreeBranch: {info.worktree.branch}"]


def _usage(info: AgentInfo) -> str:
    usage = info.usage
    counts = {"total_tokens": usage.total_tokens, "tool_uses": usage.tool_uses, "duration_ms": usage.duration_ms}
    return "<usage>\n" + "".join(f"{name}: {count}\n" for name, count in counts.items()) + "</usage>"


def _limit(env: Mapping[str, str]) -> int:
    text = env.get("TASK_MAX_OUTPUT_LENGTH", "")
    return min(int(text), 160_000) if text.isdecimal() and int(text) > 0 else _MAX_RESULT

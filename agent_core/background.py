"""Foreground or background, and what a parent reads about an agent that it does not wait for (RUN, RES-3). Pure."""

from __future__ import annotations

from collections.abc import Mapping

from agent_core.definitions import AgentDefinition
from agent_core.events import AgentInfo
from agent_core.settings import Settings, env_flag
from agent_core.task import TaskStatus
from agent_core.text import harmless, shortened_in_the_middle

NOTIFICATION = "notification"
"""The `meta` of messages that hold one."""


def background_disabled(env: Mapping[str, str]) -> bool:
    """RUN-3: it wins over everything else."""
    return env_flag(env, "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS")


def no_forks(settings: Settings) -> str | None:
    """Why a fork cannot be had here, None where it can (SEL-4)."""
    if settings.coordinator:
        return "coordinator mode has no forks"
    return "forking is switched off (setting forking)" if settings.forking == "off" else None


def forced(settings: Settings, *, interactive: bool) -> str | None:
    """The setting that makes every agent of a model run in the background (RUN-2, RUN-10, FK-8)."""
    modes = {
        "coordinator": settings.coordinator,
        "assistant": settings.assistant,
        "proactive": settings.proactive,
        "forking: on": settings.forking == "on" and not no_forks(settings) and interactive,
    }
    return next((name for name, on in modes.items() if on), None)


def runs_in_background(
    asked: bool | None,
    definition: AgentDefinition | None,
    settings: Settings,
    env: Mapping[str, str],
    *,
    fork: bool = False,
    interactive: bool = True,
) -> bool:
    """RUN-2. `asked` is the call's `run_in_background`. A fork, which has no definition of its own, runs there unless
    the call says otherwise (FK-8)."""
    if background_disabled(env):
        return False
    if (definition is not None and definition.background) or forced(settings, interactive=interactive):
        return True
    return asked if asked is not None else fork or settings.default_background


def launched(info: AgentInfo, readers: tuple[str, ...]) -> str:
    """`async_launched` (RES-3). `readers` are tools of the parent that can read the output file."""
    lines = [
        "Launched in the background. You are told when it ends; until then neither poll nor guess its result.",
        f"agentId: {info.id}",
        f"outputFile: {info.output_file}",
    ]
    if readers:
        lines.append(f"If the user asks how far it is: {readers[0]} the end of that file.")
    return "\n".join(lines)


def summary(info: AgentInfo) -> str:
    """One line on how it ended."""
    words = {
        TaskStatus.COMPLETED: "is done",
        TaskStatus.STOPPED: f"did not finish: {info.error}" if info.error else "was stopped",
        TaskStatus.INTERRUPTED: "was interrupted",
    }
    how = words.get(info.status) or f"failed: {info.error or 'no reason is known'}"
    return f'Agent "{info.description}" {how}'


def notification(info: AgentInfo, tool_use_id: str | None, limit: int) -> str:
    """The `<task-notification>` of an agent that has ended, with what it had found (RUN-6, RUN-9)."""
    status = TaskStatus.STOPPED if info.status is TaskStatus.INTERRUPTED else info.status
    said, cut = shortened_in_the_middle(harmless(info.result or ""), limit)
    parts = {
        "task-id": info.id,
        "tool-use-id": tool_use_id,
        "output-file": str(info.output_file),
        "status": status.value,
        "summary": summary(info),
        "result": f"{said}\n\n(The whole answer is in {info.output_file})" if cut else said,
    }
    lines = [f"<{tag}>{value}</{tag}>" for tag, value in parts.items() if value]
    if info.worktree:
        lines.append(f"<worktree>{info.worktree.path}</worktree>")
        lines += [f"<branch>{info.worktree.branch}</branch>"] if info.worktree.branch else []
    body = "\n".join([*lines, usage_block(info)])
    return f"<task-notification>\n{body}\n</task-notification>"


def usage_block(info: AgentInfo) -> str:
    usage = info.usage
    counts = {"total_tokens": usage.total_tokens, "tool_uses": usage.tool_uses, "duration_ms": usage.duration_ms}
    return "<usage>\n" + "".join(f"{name}: {count}\n" for name, count in counts.items()) + "</usage>"

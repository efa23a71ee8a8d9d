"""TaskCreate, TaskGet, TaskList, TaskUpdate: the task list of a conversation (MSG-4)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from agent_core.errors import ToolError
from agent_core.task_items import PROGRESS, find, line
from agent_core.tool import TaskStore, Tool, ToolContext, ToolResult
from agent_core.tools.host_tool import HostTool


def _store(ctx: ToolContext) -> TaskStore:
    if ctx.tasks is None:
        raise ToolError("There is no task list here.")
    return ctx.tasks


async def _create(ctx: ToolContext, input: Mapping[str, Any]) -> ToolResult:
    store = _store(ctx)
    task = await store.create(input)
    return ToolResult.ok(f"Created {line(task, await store.all())}")


async def _get(ctx: ToolContext, input: Mapping[str, Any]) -> ToolResult:
    store = _store(ctx)
    tasks = await store.all()
    task = find(tasks, input["task_id"])
    return ToolResult.ok("\n".join(part for part in (line(task, tasks), task.description) if part))


async def _list(ctx: ToolContext, input: Mapping[str, Any]) -> ToolResult:
    store = _store(ctx)
    tasks = await store.all()
    return ToolResult.ok("\n".join(line(task, tasks) for task in tasks) or "There are no tasks.")


async def _update(ctx: ToolContext, input: Mapping[str, Any]) -> ToolResult:
    store = _store(ctx)
    task = await store.update(input["task_id"], {name: value for name, value in input.items() if name != "task_id"})
    return ToolResult.ok(f"Now {line(task, await store.all())}")


_task_tool = partial(HostTool, subject=("task_id", "subject"))
_ID = {"type": "string", "minLength": 1}
_SUBJECT = {"type": "string", "minLength": 1, "description": "What is to be done, in a few words."}
_DESCRIPTION = {"type": "string", "description": "All that whoever does it must know."}
_BLOCKED_BY = {
    "type": "array",
    "items": _ID,
    "description": "Ids of tasks that must be done before. Replaces the list.",
}

TASKS: tuple[Tool, ...] = (
    _task_tool(
        "TaskCreate",
        "Add a task to the list of this conversation. Worth it for work of several steps, not for a single one. The "
        "list outlives your context and a restart.",
        {"subject": _SUBJECT, "description": _DESCRIPTION, "blocked_by": _BLOCKED_BY},
        ("subject",),
        _create,
    ),
    _task_tool("TaskGet", "Read a task with its description.", {"task_id": _ID}, ("task_id",), _get),
    _task_tool("TaskList", "List the tasks and how they stand.", {}, (), _list),
    _task_tool(
        "TaskUpdate",
        "Change a task; what you leave out stays. Set in_progress when the work on it begins, and completed only when "
        "it is done and checked.",
        {
            "task_id": _ID,
            "status": {"type": "string", "enum": list(PROGRESS)},
            "subject": _SUBJECT,
            "description": _DESCRIPTION,
            "owner": {"type": "string", "description": "The agent that does it; empty for nobody."},
            "blocked_by": _BLOCKED_BY,
        },
        ("task_id",),
        _update,
    ),
)
"""For the main thread and roots. They change nothing but the list, which is the conversation's own."""

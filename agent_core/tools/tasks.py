"""TaskCreate, TaskGet, TaskList, TaskUpdate: the task list of a conversation (MSG-4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from attrs import frozen

from agent_core.errors import ToolError
from agent_core.permissions.types import PermissionFacts, ToolKind
from agent_core.task_items import PROGRESS, find, line
from agent_core.tool import TaskStore, Tool, ToolContext, ToolResult


@frozen
class _TaskTool:
    name: str
    description: str
    properties: Mapping[str, Any]
    required: tuple[str, ...]
    act: Callable[[TaskStore, Mapping[str, Any]], Awaitable[str]]

    kind = ToolKind.OTHER
    read_only = True
    concurrent = False

    @property
    def input_schema(self) -> Mapping[str, Any]:
        return {
            "type": "object",
            "properties": self.properties,
            "required": list(self.required),
            "additionalProperties": False,
        }

    def title(self, input: Mapping[str, Any]) -> str:
        return f"{self.name} {input.get('task_id') or input.get('subject') or ''}".rstrip()

    async def facts(self, input: Mapping[str, Any], ctx: ToolContext) -> PermissionFacts:
        return PermissionFacts()

    async def run(self, input: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        if ctx.tasks is None:
            raise ToolError("There is no task list here.")
        return ToolResult.ok(await self.act(ctx.tasks, input))


async def _create(store: TaskStore, input: Mapping[str, Any]) -> str:
    task = await store.create(input)
    return f"Created {line(task, await store.all())}"


async def _get(store: TaskStore, input: Mapping[str, Any]) -> str:
    tasks = await store.all()
    task = find(tasks, input["task_id"])
    return "\n".join(part for part in (line(task, tasks), task.description) if part)


async def _list(store: TaskStore, input: Mapping[str, Any]) -> str:
    tasks = await store.all()
    return "\n".join(line(task, tasks) for task in tasks) or "There are no tasks."


async def _update(store: TaskStore, input: Mapping[str, Any]) -> str:
    task = await store.update(input["task_id"], {name: value for name, value in input.items() if name != "task_id"})
    return f"Now {line(task, await store.all())}"


_ID = {"type": "string", "minLength": 1}
_SUBJECT = {"type": "string", "minLength": 1, "description": "What is to be done, in a few words."}
_DESCRIPTION = {"type": "string", "description": "All that whoever does it must know."}
_BLOCKED_BY = {
    "type": "array",
    "items": _ID,
    "description": "Ids of tasks that must be done before. Replaces the list.",
}

TASKS: tuple[Tool, ...] = (
    _TaskTool(
        "TaskCreate",
        "Add a task to the list of this conversation. Worth it for work of several steps, not for a single one. The "
        "list outlives your context and a restart.",
        {"subject": _SUBJECT, "description": _DESCRIPTION, "blocked_by": _BLOCKED_BY},
        ("subject",),
        _create,
    ),
    _TaskTool("TaskGet", "Read a task with its description.", {"task_id": _ID}, ("task_id",), _get),
    _TaskTool("TaskList", "List the tasks and how they stand.", {}, (), _list),
    _TaskTool(
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

"""The tasks of a conversation as values, and what may be done to them (MSG-4). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from attrs import evolve, frozen

from agent_core.errors import ToolError

Progress = Literal["pending", "in_progress", "completed"]
PROGRESS: tuple[Progress, ...] = get_args(Progress)


@frozen
class TaskItem:
    """`blocked_by` are ids of tasks that come first."""

    id: str
    subject: str
    description: str = ""
    status: Progress = "pending"
    owner: str | None = None
    blocked_by: tuple[str, ...] = ()


Tasks = tuple[TaskItem, ...]


def find(tasks: Tasks, task_id: str) -> TaskItem:
    """ToolError says which there are."""
    found = next((task for task in tasks if task.id == task_id), None)
    if found is None:
        known = ", ".join(task.id for task in tasks) or "none"
        raise ToolError(f"There is no task {task_id!r}. There are: {known}.")
    return found


def created(tasks: Tasks, values: Mapping[str, Any]) -> tuple[Tasks, TaskItem]:
    number = 1 + max((int(task.id) for task in tasks), default=0)
    return _with(tasks, TaskItem(str(number), values["subject"]), values)


def updated(tasks: Tasks, task_id: str, values: Mapping[str, Any]) -> tuple[Tasks, TaskItem]:
    return _with(tasks, find(tasks, task_id), values)


def _with(tasks: Tasks, task: TaskItem, values: Mapping[str, Any]) -> tuple[Tasks, TaskItem]:
    """`values` are the fields that change; an empty owner is nobody."""
    changes = dict(values)
    if "owner" in changes:
        changes["owner"] = changes["owner"] or None
    if "blocked_by" in changes:
        changes["blocked_by"] = tuple(dict.fromkeys(changes["blocked_by"]))
    new = evolve(task, **changes)
    every = {each.id: each for each in (*tasks, new)}
    for blocker in new.blocked_by:
        find(tuple(every.values()), blocker)
    if new.id in _before(new, every):
        raise ToolError(f"Task {new.id} would wait for itself: take it, or what waits for it, out of blocked_by.")
    return tuple(every.values()), new


def _before(task: TaskItem, every: Mapping[str, TaskItem]) -> set[str]:
    """All that must come before it, at any distance."""
    seen: set[str] = set()
    left = list(task.blocked_by)
    while left:
        if (id := left.pop()) not in seen:
            seen.add(id)
            left.extend(every[id].blocked_by)
    return seen


def line(task: TaskItem, tasks: Sequence[TaskItem]) -> str:
    open_ids = {each.id for each in tasks if each.status != "completed"}
    notes = [f"owner: {task.owner}"] if task.owner else []
    if waits := [id for id in task.blocked_by if id in open_ids]:
        notes.append(f"blocked by {', '.join(waits)}")
    return f"{task.id} [{task.status}] {task.subject}" + (f" ({'; '.join(notes)})" if notes else "")

"""The task list of a conversation, with hooks that may refuse a new task, or that one is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import frozen

from agent_core.errors import ToolError
from agent_core.hooks.dispatch import dispatch, hooks_of
from agent_core.hooks.moments import Moment
from agent_core.task_items import TaskItem, Tasks, created, updated

if TYPE_CHECKING:
    from agent_core.agent import Agent
    from agent_core.engine import Engine
    from agent_core.tool import TaskStore


@frozen
class HookedTasks:
    """A TaskStore that asks hooks before it changes `store`."""

    store: TaskStore
    agent: Agent
    engine: Engine

    async def all(self) -> Tasks:
        return await self.store.all()

    async def create(self, values: Mapping[str, Any]) -> TaskItem:
        if self._any("TaskCreated"):
            await self._ask("TaskCreated", created(await self.store.all(), values)[1])
        return await self.store.create(values)

    async def update(self, task_id: str, values: Mapping[str, Any]) -> TaskItem:
        if values.get("status") == "completed" and self._any("TaskCompleted"):
            before = await self.store.all()
            after = updated(before, task_id, values)[1]
            if any(task.id == task_id and task.status != "completed" for task in before):
                await self._ask("TaskCompleted", after)
        return await self.store.update(task_id, values)

    def _any(self, event: str) -> bool:
        return bool(hooks_of(self.agent, self.engine, event))

    async def _ask(self, event: str, task: TaskItem) -> None:
        fields = {"task_id": task.id, "task_subject": task.subject, "task_description": task.description}
        said = await dispatch(self.agent, self.engine, Moment(event, "", fields))
        if said.blocked is not None or said.stop is not None:
            raise ToolError(f"A {event} hook refused this: {said.blocked or said.stop}")

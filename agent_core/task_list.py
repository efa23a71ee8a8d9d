"""The task list of one conversation: a JSON file beside its transcripts, replaced as a whole at each change (MSG-4)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

import anyio
import cattrs
from attrs import frozen

from agent_core.disk import write_atomically
from agent_core.errors import ToolError
from agent_core.task_items import TaskItem, Tasks, created, updated

_ONE_AT_A_TIME = Lock()
"""An agent and its forks write the same list."""


@frozen
class TaskFile:
    """The TaskStore of an agent. A list that cannot be read is a ToolError, and stays as it is."""

    path: Path

    async def all(self) -> Tasks:
        return await anyio.to_thread.run_sync(self._read)

    async def create(self, values: Mapping[str, Any]) -> TaskItem:
        return await self._change(lambda tasks: created(tasks, values))

    async def update(self, task_id: str, values: Mapping[str, Any]) -> TaskItem:
        return await self._change(lambda tasks: updated(tasks, task_id, values))

    async def _change(self, change: Callable[[Tasks], tuple[Tasks, TaskItem]]) -> TaskItem:
        def work() -> TaskItem:
            with _ONE_AT_A_TIME:
                tasks, task = change(self._read())
                self._write(tasks)
            return task

        return await anyio.to_thread.run_sync(work)

    def _read(self) -> Tasks:
        try:
            return tuple(cattrs.structure(json.loads(self.path.read_text("utf-8"))["tasks"], list[TaskItem]))
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, TypeError, KeyError, cattrs.BaseValidationError) as error:
            raise ToolError(f"The task list {self.path} cannot be read: {error}") from error

    def _write(self, tasks: Tasks) -> None:
        text = json.dumps({"tasks": cattrs.unstructure(tasks)}, ensure_ascii=False, indent=1)
        try:
            write_atomically(self.path, text.encode("utf-8", "replace"), mode=0o600)
        except OSError as error:
            raise ToolError(f"The task list {self.path} cannot be written: {error}") from error

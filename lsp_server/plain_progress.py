"""What a plain client sees of running agents: work-done progress that a person may cancel, and a message at the end
(ED-4)."""

from __future__ import annotations

import logging
from typing import Any

from anyio.abc import TaskGroup
from attrs import define, field
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from agent_core.errors import UserError
from agent_core.event_log import EventLog
from agent_core.events import AgentInfo, Ended, StatusChanged, ToolCalled
from agent_core.runtime import Runtime
from agent_core.task import TaskStatus
from lsp_server.outbound import EditorClient

logger = logging.getLogger(__name__)

_LONGEST = 200
"""Characters of an answer in a message; the whole is in the transcript."""


@define(eq=False)
class PlainProgress:
    client: EditorClient
    runtime: Runtime
    group: TaskGroup
    _agents: dict[str, str] = field(factory=dict)
    _runs: int = 0

    async def follow(self, log: EventLog) -> None:
        token: str | None = None
        async for event in log.read(written=True):
            body = event.body
            if isinstance(body, StatusChanged) and body.status is TaskStatus.RUNNING and token is None:
                token = await self._begin(log)
            elif isinstance(body, StatusChanged) and body.status is TaskStatus.WAITING and token:
                self._report(token, "needs your answer")
            elif isinstance(body, ToolCalled) and token:
                self._report(token, body.title)
            elif isinstance(body, Ended):
                if token:
                    self._end(token, str(body.info.status))
                token = None
                self.client.message(summary(body.info), _kind(body.info))

    def cancel(self, params: Any) -> None:
        """`window/workDoneProgress/cancel`."""
        agent_id = self._agents.get(str(params.get("token"))) if isinstance(params, dict) else None
        if agent_id is not None:
            self.group.start_soon(self._stop, agent_id)

    async def _begin(self, log: EventLog) -> str | None:
        if not self.client.support.work_done_progress:
            return None
        self._runs += 1
        token = f"agent-{log.agent_id}-{self._runs}"
        try:
            params = types.WorkDoneProgressCreateParams(token=token)
            await self.client.rpc.call(types.WINDOW_WORK_DONE_PROGRESS_CREATE, params)
        except JsonRpcException as error:
            logger.warning("the editor made no progress token: %s", error.message)
            return None
        self._agents[token] = log.agent_id
        info = log.state.info
        title = f"{info.agent_type}: {info.description}"
        self._send(token, types.WorkDoneProgressBegin(title=title, cancellable=True))
        return token

    def _report(self, token: str, message: str) -> None:
        self._send(token, types.WorkDoneProgressReport(message=message, cancellable=True))

    def _end(self, token: str, message: str) -> None:
        self._agents.pop(token, None)
        self._send(token, types.WorkDoneProgressEnd(message=message))

    def _send(self, token: str, value: Any) -> None:
        self.client.rpc.notify(types.PROGRESS, types.ProgressParams(token=token, value=value))

    async def _stop(self, agent_id: str) -> None:
        try:
            await self.runtime.stop(agent_id)
        except UserError as error:
            logger.info("nothing to stop: %s", error)


def summary(info: AgentInfo) -> str:
    """One line about a run that has ended, and what to do next."""
    said = (info.error or info.result or "").strip().split("\n")[0][:_LONGEST]
    changes = "; agent.review shows its changes" if info.worktree else ""
    return f"{info.agent_type} ({info.description}) {info.status}: {said}{changes}"


def _kind(info: AgentInfo) -> types.MessageType:
    return types.MessageType.Error if info.status is TaskStatus.FAILED else types.MessageType.Info

"""agent/stop: answers once the agent's processes are gone."""

from __future__ import annotations

from lsp_server import convert
from lsp_server import protocol as wire
from lsp_server.session import EditorSession


async def handle(session: EditorSession, params: wire.StopParams) -> wire.AgentResult:
    info = await session.runtime.stop(params.agent_id, params.scope or "agent")
    return wire.AgentResult(convert.agent(info))

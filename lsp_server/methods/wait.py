"""agent/wait: answers when the agent's run has ended; cancelling the request leaves the agent alone."""

from __future__ import annotations

from lsp_server import convert
from lsp_server import protocol as wire
from lsp_server.session import EditorSession


async def handle(session: EditorSession, params: wire.WaitParams) -> wire.AgentResult:
    return wire.AgentResult(convert.agent(await session.runtime.wait(params.agent_id)))

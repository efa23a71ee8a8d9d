"""agent/background: whoever waits for the agent waits no longer."""

from __future__ import annotations

from lsp_server import convert
from lsp_server import protocol as wire
from lsp_server.session import EditorSession


async def handle(session: EditorSession, params: wire.BackgroundParams) -> wire.AgentResult:
    return wire.AgentResult(convert.agent(await session.runtime.background(params.agent_id)))

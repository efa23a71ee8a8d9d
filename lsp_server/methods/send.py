"""agent/send: a message to an agent or to "main"; one that has ended runs again."""

from __future__ import annotations

from agent_core.errors import InvalidParams
from lsp_server import convert
from lsp_server import protocol as wire
from lsp_server.session import EditorSession


async def handle(session: EditorSession, params: wire.SendParams) -> wire.AgentResult:
    if not params.message.strip():
        raise InvalidParams("message", "is empty; say what the agent shall do")
    if params.to == "main":
        session.check_folder()
    return wire.AgentResult(convert.agent(await session.runtime.send(params.to, params.message)))

"""agent/resume: an agent that was interrupted or has ended goes on, of an earlier process too."""

from __future__ import annotations

from agent_core.errors import InvalidParams
from lsp_server import convert
from lsp_server import protocol as wire
from lsp_server.session import EditorSession


async def handle(session: EditorSession, params: wire.ResumeParams) -> wire.AgentResult:
    if params.message is not None and not params.message.strip():
        raise InvalidParams("message", "is empty; leave it out, or say what the agent shall do")
    return wire.AgentResult(convert.agent(await session.runtime.resume(params.agent_id, params.message)))

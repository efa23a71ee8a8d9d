"""agent/list: all agents of this workspace, earlier ones included, the newest first."""

from __future__ import annotations

from lsp_server import convert
from lsp_server import protocol as wire
from lsp_server.session import EditorSession


async def handle(session: EditorSession, params: wire.ListParams) -> wire.ListResult:
    wanted = params.conversation_id
    infos = await session.runtime.list()
    return wire.ListResult([convert.agent(info) for info in infos if wanted in (None, info.conversation_id)])

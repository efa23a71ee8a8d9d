"""agent/conversations: the conversations of this workspace, the newest first."""

from __future__ import annotations

from lsp_server import convert
from lsp_server import protocol as wire
from lsp_server.session import EditorSession


async def handle(session: EditorSession, params: wire.ConversationsParams) -> wire.ConversationsResult:
    found = await session.runtime.conversations()
    return wire.ConversationsResult([convert.conversation(each) for each in found])

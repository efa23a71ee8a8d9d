"""agent/conversation: another conversation, or a new one, becomes that of the main thread."""

from __future__ import annotations

from lsp_server import convert
from lsp_server import protocol as wire
from lsp_server.session import EditorSession


async def handle(session: EditorSession, params: wire.ConversationParams) -> wire.ConversationResult:
    return wire.ConversationResult(convert.conversation(await session.runtime.conversation(params.id)))

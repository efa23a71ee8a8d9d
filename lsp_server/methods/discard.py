"""agent/discard: reject what was reviewed; it stays readable under a git ref, and agent/restore opens it again."""

from __future__ import annotations

from lsp_server import protocol as wire
from lsp_server.methods.apply import selection
from lsp_server.session import EditorSession


async def handle(session: EditorSession, params: wire.DiscardParams) -> wire.DiscardResult:
    discarded, ref = await session.runtime.discard(params.agent_id, selection(params.files))
    return wire.DiscardResult([wire.AppliedFile(file.path, list(file.hunks)) for file in discarded], ref)

"""agent/review: what an isolated agent changed, against the files and buffers as they are now."""

from __future__ import annotations

from lsp_server import protocol as wire
from lsp_server.methods.review_values import review
from lsp_server.session import EditorSession


async def handle(session: EditorSession, params: wire.ReviewParams) -> wire.Review:
    shown = params.round or "all"
    found = await session.runtime.review(params.agent_id, shown)
    return review(found, await session.runtime.checkout(params.agent_id), shown)

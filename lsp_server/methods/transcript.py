"""agent/transcript: the durable events after a number, page by page."""

from __future__ import annotations

from agent_core.errors import InvalidParams
from lsp_server import convert
from lsp_server import protocol as wire
from lsp_server.session import EditorSession


async def handle(session: EditorSession, params: wire.TranscriptParams) -> wire.TranscriptResult:
    if params.limit is not None and params.limit < 1:
        raise InvalidParams("limit", f"must be at least 1, not {params.limit}")
    if params.after_seq is not None and params.after_seq < 0:
        raise InvalidParams("afterSeq", f"must be 0 or more, not {params.after_seq}")
    page = await session.runtime.transcript(params.agent_id, params.after_seq or 0, params.limit)
    events = [convert.transcript_event(event) for event in page.events]
    return wire.TranscriptResult(events, page.next_seq, page.complete)

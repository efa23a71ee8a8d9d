"""agent/answer: the answer to an ask by another way than the reply to `agent/permission`."""

from __future__ import annotations

from agent_core.permissions.types import PermissionAnswer
from lsp_server import convert
from lsp_server import protocol as wire
from lsp_server.session import EditorSession


async def handle(session: EditorSession, params: wire.AnswerParams) -> wire.AnswerResult:
    answer = convert.answer(params)
    if answer is None and any(params.request_id == each.id for each in session.runtime.pending_permissions()):
        return wire.AnswerResult(False, "no optionId was given, so nothing is decided; the request stays open")
    reason = session.runtime.answer(params.request_id, answer or PermissionAnswer(""))
    return wire.AnswerResult(reason is None, reason)

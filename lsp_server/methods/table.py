"""All inbound methods, and how they are bound to a session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from lsp_server.methods import (
    answer,
    apply,
    background,
    comment,
    content,
    conversation,
    conversations,
    definitions,
    discard,
    finish,
    list_agents,
    permissions,
    restore,
    resume,
    review,
    send,
    spawn,
    stop,
    transcript,
    trust,
    wait,
)
from lsp_server.methods.documents import register_documents
from lsp_server.methods.lifecycle import register_lifecycle
from lsp_server.methods.plain import register_plain
from lsp_server.session import EditorSession

TABLE: dict[str, Callable[[EditorSession, Any], Awaitable[Any]]] = {
    "agent/spawn": spawn.handle,
    "agent/list": list_agents.handle,
    "agent/send": send.handle,
    "agent/stop": stop.handle,
    "agent/background": background.handle,
    "agent/resume": resume.handle,
    "agent/conversations": conversations.handle,
    "agent/conversation": conversation.handle,
    "agent/wait": wait.handle,
    "agent/trust": trust.handle,
    "agent/transcript": transcript.handle,
    "agent/definitions": definitions.handle,
    "agent/permissions": permissions.handle,
    "agent/answer": answer.handle,
    "agent/review": review.handle,
    "agent/apply": apply.handle,
    "agent/discard": discard.handle,
    "agent/restore": restore.handle,
    "agent/finish": finish.handle,
    "agent/comment": comment.handle,
    "agent/content": content.handle,
}


def register(session: EditorSession) -> None:
    for method, handle in TABLE.items():
        session.rpc.serve(method, _bound(handle, session))
    register_documents(session)
    register_lifecycle(session)
    if not session.support.agent:
        register_plain(session)


def _bound(
    handle: Callable[[EditorSession, Any], Awaitable[Any]], session: EditorSession
) -> Callable[[Any], Awaitable[Any]]:
    async def bound(params: Any) -> Any:
        return await handle(session, params)

    return bound

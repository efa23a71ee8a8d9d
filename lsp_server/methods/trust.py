"""agent/trust: the person's word on a folder, in force at once and kept."""

from __future__ import annotations

from agent_core.errors import InvalidParams, NotAllowed
from lsp_server import protocol as wire
from lsp_server.documents import uri_to_path
from lsp_server.session import EditorSession


async def handle(session: EditorSession, params: wire.TrustParams) -> wire.TrustResult:
    path = uri_to_path(params.uri)
    folder = next((each for each in session.folders if path in (each, each.resolve())), None)
    if folder is None:
        known = ", ".join(each.as_uri() for each in session.folders)
        raise InvalidParams("uri", f"{params.uri!r} is no folder of the workspace; its folders are {known}")
    try:
        await session.trust(folder, params.trusted)
    except OSError as error:
        why = f"the decision on {folder} could not be kept: {error.strerror}; see AGENT_LS_STATE_DIR"
        raise NotAllowed(why) from error
    return wire.TrustResult(params.trusted)

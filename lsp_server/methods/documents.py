"""textDocument/didOpen, didChange, didClose: what the editor holds, so that agents read unsaved text.

didSave: a file that was saved may define an agent.
"""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from lsp_server.documents import uri_to_path
from lsp_server.faults import is_configuration
from lsp_server.session import EditorSession


def register_documents(session: EditorSession) -> None:
    def saved(params: Any) -> None:
        path = uri_to_path(params["textDocument"]["uri"])
        if path is not None and is_configuration(path, session.runtime):
            session.look_for_faults()

    session.rpc.listeners |= {
        types.TEXT_DOCUMENT_DID_OPEN: session.documents.opened,
        types.TEXT_DOCUMENT_DID_CHANGE: session.documents.changed,
        types.TEXT_DOCUMENT_DID_CLOSE: session.documents.closed,
        types.TEXT_DOCUMENT_DID_SAVE: saved,
    }

"""textDocument/didOpen, didChange, didClose: what the editor holds, so that agents read unsaved text."""

from __future__ import annotations

from lsprotocol import types

from lsp_server.session import EditorSession


def register_documents(session: EditorSession) -> None:
    session.rpc.listeners |= {
        types.TEXT_DOCUMENT_DID_OPEN: session.documents.opened,
        types.TEXT_DOCUMENT_DID_CHANGE: session.documents.changed,
        types.TEXT_DOCUMENT_DID_CLOSE: session.documents.closed,
    }

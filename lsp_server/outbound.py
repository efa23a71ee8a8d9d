"""What we say to one editor: notify, ask, apply an edit, show something."""

from __future__ import annotations

import asyncio
import logging

from attrs import define, field
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lsp_server import protocol as wire
from lsp_server.client_support import ClientSupport
from lsp_server.documents import OpenDocument
from lsp_server.edits import document_edit
from lsp_server.rpc import AgentProtocol

logger = logging.getLogger(__name__)


@define(eq=False)
class EditorClient:
    """One message request is open at a time: editors show them one over the other, or block on each."""

    rpc: AgentProtocol
    support: ClientSupport
    _one_question: asyncio.Lock = field(factory=asyncio.Lock)

    def progress(self, params: wire.ProgressParams) -> None:
        self.rpc.tell(wire.PROGRESS, params)

    async def permission(self, params: wire.PermissionParams) -> wire.PermissionResult:
        """JsonRpcException when the client answers with an error, or with something that is no answer."""
        result: wire.PermissionResult = await self.rpc.call(wire.PERMISSION, params)
        return result

    async def choose(self, text: str, labels: list[str], kind: types.MessageType) -> str | None:
        """`window/showMessageRequest`: the label chosen, None when dismissed. JsonRpcException as above."""
        actions = [types.MessageActionItem(title=label) for label in labels]
        params = types.ShowMessageRequestParams(type=kind, message=text, actions=actions)
        async with self._one_question:
            chosen = await self.rpc.call(types.WINDOW_SHOW_MESSAGE_REQUEST, params)
        return chosen.get("title") if isinstance(chosen, dict) else None

    def message(self, text: str, kind: types.MessageType = types.MessageType.Info) -> None:
        self.rpc.notify(types.WINDOW_SHOW_MESSAGE, types.ShowMessageParams(type=kind, message=text))

    async def edit(self, document: OpenDocument, text: str) -> str | None:
        """Make an open document's text the given one. None when the editor says it did, else why not."""
        if not self.support.apply_edit:
            return "it does not support workspace/applyEdit"
        edit = document_edit(document.uri, document.version, document.text, text, self.support.encoding)
        if not self.support.document_changes:
            edit = {"changes": {document.uri: edit["documentChanges"][0]["edits"]}}
        try:
            params = {"label": "Agent changes", "edit": edit}
            answer = await self.rpc.call(types.WORKSPACE_APPLY_EDIT, params)
        except JsonRpcException as error:
            return str(error.message)
        applied = isinstance(answer, dict) and answer.get("applied") is True
        return None if applied else str((answer or {}).get("failureReason") or "no reason was given")

    async def show(self, uri: str) -> bool:
        """Open a document in the editor, without taking the focus; False when it cannot."""
        if not self.support.show_document:
            return False
        try:
            answer = await self.rpc.call(types.WINDOW_SHOW_DOCUMENT, types.ShowDocumentParams(uri=uri))
        except JsonRpcException:
            return False
        return isinstance(answer, dict) and answer.get("success") is True

"""initialized, settings and folders: what keeps the runtime's idea of the workspace up to date."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from lsp_server.documents import uri_to_path
from lsp_server.session import EditorSession


def register_lifecycle(session: EditorSession) -> None:
    def initialized(params: Any) -> None:
        from lsp_server.server import load_sdks

        load_sdks()
        session.group.start_soon(session.pull_settings)

    def settings(params: Any) -> None:
        """Clients that push send the settings here; the others are asked again."""
        given = (params or {}).get("settings")
        own = given.get("agentLs") if isinstance(given, dict) else None
        if isinstance(own, dict):
            session.runtime.client_settings = own
        else:
            session.group.start_soon(session.pull_settings)

    def folders(params: Any) -> None:
        removed = {uri_to_path(folder["uri"]) for folder in params["event"].get("removed", [])}
        added = [uri_to_path(folder["uri"]) for folder in params["event"].get("added", [])]
        left = [folder for folder in session.runtime.folders if folder not in removed]
        new = [path for path in added if path is not None and path not in left]
        session.runtime.folders = (*left, *new) or session.runtime.folders

    session.rpc.listeners |= {
        types.INITIALIZED: initialized,
        types.WORKSPACE_DID_CHANGE_CONFIGURATION: settings,
        types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: folders,
    }

"""What the connected client supports, read once from `initialize` and frozen."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from lsp_server.capabilities import agent_capabilities, position_encoding


@frozen
class ClientSupport:
    """`agent` is True for a client that negotiated `experimental.agent` version 1; the next three are its flags."""

    agent: bool
    progress: bool
    text_deltas: bool
    permission: bool
    encoding: str
    apply_edit: bool
    show_document: bool
    work_done_progress: bool
    configuration: bool
    document_changes: bool
    watched_files: bool
    relative_patterns: bool

    @classmethod
    def of(cls, params: dict[str, Any]) -> ClientSupport:
        client = params.get("capabilities") or {}
        own = agent_capabilities(client)
        window, workspace = _section(client, "window"), _section(client, "workspace")
        return cls(
            agent=bool(own),
            progress=own.get("progress") is True,
            text_deltas=own.get("textDeltas") is True,
            permission=own.get("permission") is True,
            encoding=position_encoding(client),
            apply_edit=workspace.get("applyEdit") is True,
            show_document=_section(window, "showDocument").get("support") is True,
            work_done_progress=window.get("workDoneProgress") is True,
            configuration=workspace.get("configuration") is True,
            document_changes=_section(workspace, "workspaceEdit").get("documentChanges") is True,
            watched_files=_section(workspace, "didChangeWatchedFiles").get("dynamicRegistration") is True,
            relative_patterns=_section(workspace, "didChangeWatchedFiles").get("relativePatternSupport") is True,
        )


def _section(parent: dict[str, Any], name: str) -> dict[str, Any]:
    value = parent.get(name)
    return value if isinstance(value, dict) else {}

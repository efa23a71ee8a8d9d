"""initialized, settings and folders: what keeps the runtime's idea of the workspace up to date."""

from __future__ import annotations

import gc
import importlib
import logging
import threading
from typing import Any

import anyio
from lsprotocol import types

from lsp_server.documents import uri_to_path
from lsp_server.session import EditorSession

logger = logging.getLogger(__name__)


_FIRST_ANSWERS = 0.1
"""Seconds that the requests right behind `initialized` have for themselves before the imports compete with them."""


async def _begin(session: EditorSession) -> None:
    """With the editor's settings; the answer to them comes first."""
    await session.pull_settings()
    await anyio.sleep(_FIRST_ANSWERS)
    await session.begin_watching()


async def _pull_again(session: EditorSession) -> None:
    await session.pull_settings()
    session.look_for_faults()


async def _load_sdks_soon() -> None:
    await anyio.sleep(_FIRST_ANSWERS)
    threading.Thread(target=_load_sdks, name="imports", daemon=True).start()


def _load_sdks() -> None:
    """Import what the first agent needs, aside: it takes seconds and must not delay an answer."""
    for name in ("anthropic", "git", "jsonschema"):
        try:
            importlib.import_module(name)
        except ImportError:
            logger.exception("%s cannot be imported", name)
    gc.freeze()  # a full collection that walks through them takes 100 ms, and holds up every agent


def register_lifecycle(session: EditorSession) -> None:
    def initialized(params: Any) -> None:
        session.group.start_soon(_load_sdks_soon)
        session.group.start_soon(_begin, session)

    def settings(params: Any) -> None:
        """Clients that push send the settings here; the others are asked again."""
        given = (params or {}).get("settings")
        own = given.get("agentLs") if isinstance(given, dict) else None
        if isinstance(own, dict):
            session.settings = own
            session.tell_workspace()
            session.look_for_faults()
        else:
            session.group.start_soon(_pull_again, session)

    def folders(params: Any) -> None:
        removed, added = (
            [path for folder in params["event"].get(side, []) if (path := uri_to_path(folder["uri"])) is not None]
            for side in ("removed", "added")
        )
        session.change_folders(set(removed), added)
        session.look_for_faults()

    def files(params: Any) -> None:
        session.look_for_faults()

    session.rpc.listeners |= {
        types.INITIALIZED: initialized,
        types.WORKSPACE_DID_CHANGE_CONFIGURATION: settings,
        types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: folders,
        types.WORKSPACE_DID_CHANGE_WATCHED_FILES: files,
    }

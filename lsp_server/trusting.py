"""A folder whose own files want more than they may yet: the person is told once, or asked by a plain client.

A client that gave its word on the folder is not asked: it has its own way to trust.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from agent_core.loading.configuration import state_dir
from agent_core.loading.trust import decided_before

if TYPE_CHECKING:
    from lsp_server.session import EditorSession

logger = logging.getLogger(__name__)

TRUST, NOT_NOW, NEVER = "Trust this folder", "Not now", "Never"


async def offer_trust(session: EditorSession, folder: Path) -> None:
    """Never fails; an answer that does not come changes nothing."""
    try:
        await _offer(session, folder)
    except JsonRpcException as error:
        logger.info("the editor did not say whether %s is trusted: %s", folder, error.message)
    except OSError as error:
        logger.warning("whether %s is trusted could not be kept: %s", folder, error)


async def _offer(session: EditorSession, folder: Path) -> None:
    project = await session.runtime.project(folder)
    waiting = project.configuration.waiting
    known = session.trusts.get(folder, session.trusted)
    if known is not None or not waiting or decided_before(project.project.main, state_dir(session.runtime.env)):
        return
    text = f"{folder} is not trusted, so some of what its files say waits: {', '.join(waiting)}."
    if session.support.agent:
        session.client.message(f"{text} Look at them, then trust the folder if you agree.", types.MessageType.Warning)
        return
    chosen = await session.client.choose(text, [TRUST, NOT_NOW, NEVER], types.MessageType.Warning)
    if chosen in (TRUST, NEVER):
        await session.trust(folder, chosen == TRUST)

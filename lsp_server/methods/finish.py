"""agent/finish: an agent's work as its branch, as one commit, or merged into the branch that is checked out."""

from __future__ import annotations

from lsp_server import protocol as wire
from lsp_server.session import EditorSession


async def handle(session: EditorSession, params: wire.FinishParams) -> wire.FinishResult:
    done = await session.runtime.finish(params.agent_id, params.as_, params.message, params.branch)
    conflicts = [wire.FinishConflict(each.path, each.reason) for each in done.conflicts]
    return wire.FinishResult(conflicts, done.commit, done.branch)

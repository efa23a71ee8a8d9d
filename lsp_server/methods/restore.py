"""agent/restore: undo an apply or a discard by its recovery ref; what has changed since is left as it is."""

from __future__ import annotations

from lsp_server import protocol as wire
from lsp_server.session import EditorSession


async def handle(session: EditorSession, params: wire.RestoreParams) -> wire.RestoreResult:
    paths = None if params.files is None else [file.path for file in params.files]
    restored = await session.runtime.restore(params.agent_id, params.recover_ref, paths)
    conflicts = [wire.ApplyConflict(each.path, each.reason, each.hunk) for each in restored.conflicts]
    return wire.RestoreResult(list(restored.paths), conflicts)

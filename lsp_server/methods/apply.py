"""agent/apply: take over what was reviewed, whole, per file or per hunk; answers with what is really there now."""

from __future__ import annotations

from agent_core.applying import Applied, Selection
from lsp_server import protocol as wire
from lsp_server.session import EditorSession


async def handle(session: EditorSession, params: wire.ApplyParams) -> wire.ApplyResult:
    chosen = selection(params.files)
    return result(await session.runtime.apply(params.agent_id, chosen, bool(params.dry_run)))


def result(applied: Applied) -> wire.ApplyResult:
    return wire.ApplyResult(
        applied=[wire.AppliedFile(file.path, list(file.hunks)) for file in applied.applied],
        conflicts=[wire.ApplyConflict(each.path, each.reason, each.hunk) for each in applied.conflicts],
        remaining=applied.remaining,
        failure_reason=applied.failure,
        recover_ref=applied.recover_ref,
    )


def selection(files: list[wire.FileSelection] | None) -> list[Selection] | None:
    """None: everything."""
    if files is None:
        return None
    return [Selection(file.path, None if file.hunks is None else tuple(file.hunks)) for file in files]

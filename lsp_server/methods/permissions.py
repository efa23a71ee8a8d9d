"""agent/permissions: every pending ask, for a view that came late."""

from __future__ import annotations

from lsp_server import convert
from lsp_server import protocol as wire
from lsp_server.session import EditorSession


async def handle(session: EditorSession, params: wire.PermissionsParams) -> wire.PermissionsResult:
    encoding = session.support.encoding
    requests = session.runtime.pending_permissions()
    return wire.PermissionsResult([convert.permission(request, encoding) for request in requests])

"""agent/content and workspace/textDocumentContent: the documents behind our URIs (protocol.md, Settled details)."""

from __future__ import annotations

from typing import Literal
from urllib.parse import unquote, urlsplit

from agent_core.errors import InvalidParams
from agent_core.text_file import decode
from agent_core.transcript.readable import render_all
from lsp_server import protocol as wire
from lsp_server.session import EditorSession

_LANGUAGES = {"py": "python", "ts": "typescript", "js": "javascript", "md": "markdown", "lua": "lua", "json": "json"}


async def handle(session: EditorSession, params: wire.ContentParams) -> wire.ContentResult:
    scheme, agent_id, path = _parts(params.uri)
    if scheme == "agent-transcript":
        page = await session.runtime.transcript(agent_id.removesuffix(".md"))
        return wire.ContentResult(render_all(page.events), "markdown")
    side: Literal["base", "worktree"] = "base" if scheme == "agent-base" else "worktree"
    data = await session.runtime.content(agent_id, side, path)
    return wire.ContentResult(decode(data).text, _LANGUAGES.get(path.rpartition(".")[2]))


def _parts(uri: str) -> tuple[str, str, str]:
    """(scheme, agent id, path); the path is empty for a transcript."""
    parts = urlsplit(uri)
    agent_id, _, path = unquote(parts.path, errors="surrogateescape").lstrip("/").partition("/")
    if parts.scheme not in wire.SCHEMES or not agent_id or (parts.scheme != "agent-transcript" and not path):
        raise InvalidParams(
            "uri", f"{uri!r} is none of {', '.join(f'{scheme}:/<agentId>/…' for scheme in wire.SCHEMES)}"
        )
    if "\0" in path or any(name in ("", ".", "..") for name in path.split("/") if path):
        raise InvalidParams("uri", f"{uri!r} does not name a file inside the repository")
    return parts.scheme, agent_id, path

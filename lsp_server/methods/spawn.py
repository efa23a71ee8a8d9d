"""agent/spawn: register a root agent and start it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from agent_core.errors import InvalidParams, NotAllowed
from agent_core.permissions.types import PermissionMode
from agent_core.runtime import SpawnRequest
from lsp_server import convert
from lsp_server import protocol as wire
from lsp_server.documents import uri_to_path
from lsp_server.session import EditorSession

_NAME = re.compile(r"\w[\w .-]{0,63}")
"""An address for messages, and a word in lists: one line, and nothing like a path."""
_SEVERITIES = {1: "error", 2: "warning", 3: "information", 4: "hint"}


async def handle(session: EditorSession, params: wire.SpawnParams) -> wire.AgentResult:
    info = await session.runtime.spawn(request(session, params))
    return wire.AgentResult(convert.agent(info))


def request(session: EditorSession, params: wire.SpawnParams) -> SpawnRequest:
    """InvalidParams for a bad value, NotAllowed for what this version does not have."""
    if not params.prompt.strip():
        raise InvalidParams("prompt", "is empty; say what the agent shall do")
    if params.max_turns is not None and params.max_turns < 1:
        raise InvalidParams("maxTurns", f"must be at least 1, not {params.max_turns}")
    if params.name == "main":
        raise InvalidParams("name", "is taken by the main thread; choose another")
    if params.name is not None and not _NAME.fullmatch(params.name):
        raise InvalidParams("name", f"must be letters, digits, `-`, `_`, `.` and blanks, not {params.name!r}")
    if params.team_name:
        raise NotAllowed("teamName: this version of the server does not offer it; leave it out")
    if params.isolation == "remote":
        raise NotAllowed("isolation: remote is not configured; use 'worktree' or 'none'")
    return SpawnRequest(
        prompt=params.prompt,
        cwd=working_directory(session, params),
        description=params.description,
        agent_type=params.agent_type,
        model=params.model,
        permission_mode=PermissionMode(params.permission_mode) if params.permission_mode else None,
        isolation=params.isolation,
        background=bool(params.background),
        fork=bool(params.fork),
        parent_id=params.parent_id,
        name=params.name,
        max_turns=params.max_turns,
        context=context_text(session, params.context) if params.context else None,
    )


def working_directory(session: EditorSession, params: wire.SpawnParams) -> Path:
    """`cwd` (a path, or a file URI), else the workspace folder of `context.uri`, else the first folder (L1)."""
    if params.cwd is not None:
        return uri_to_path(params.cwd) or Path(params.cwd)
    session.check_folder()
    folders = session.folders
    path = uri_to_path(params.context.uri) if params.context and params.context.uri else None
    inside = [folder for folder in folders if path is not None and path.is_relative_to(folder)]
    return max(inside, key=lambda folder: len(folder.parts)) if inside else folders[0]


def context_text(session: EditorSession, context: wire.SpawnContext) -> str | None:
    """What the user looks at, in words for the model; None when it is no file."""
    path = uri_to_path(context.uri) if context.uri else None
    if path is None:
        return None
    lines = [f"The user is looking at {path}."]
    if context.range is not None:
        first, last = context.range.start.line + 1, context.range.end.line + 1
        lines = [f"The user is looking at {path}, lines {first} to {last}."]
    lines += [_diagnostic(each) for each in context.diagnostics or []]
    return "<editor-context>\n" + "\n".join(lines) + "\n</editor-context>"


def _diagnostic(found: dict[str, Any]) -> str:
    try:
        line = int(found["range"]["start"]["line"]) + 1
    except (KeyError, TypeError, ValueError):
        line = 1
    severity = _SEVERITIES.get(found.get("severity", 1), "error")
    return f"Diagnostic, line {line}, {severity}: {found.get('message', '')}"

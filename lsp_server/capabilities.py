"""What the server can do, as the `initialize` result. Standard library only: the bootstrap answers with it at once.

pygls' own computation is replaced by this one, so that the early answer and the live server cannot differ.
"""

from __future__ import annotations

NAME = "agent-ls"
VERSION = "0.1.0"

METHODS = (
    "agent/answer",
    "agent/apply",
    "agent/background",
    "agent/comment",
    "agent/content",
    "agent/conversation",
    "agent/conversations",
    "agent/definitions",
    "agent/discard",
    "agent/finish",
    "agent/list",
    "agent/permissions",
    "agent/restore",
    "agent/resume",
    "agent/review",
    "agent/send",
    "agent/spawn",
    "agent/stop",
    "agent/transcript",
    "agent/trust",
    "agent/wait",
)
"""Repeats the keys of `protocol.INBOUND`, which costs 100 ms to import; a test holds them equal."""

COMMANDS = tuple(
    f"agent.{name.removeprefix('agent/')}"
    for name in METHODS
    if name not in ("agent/content", "agent/comment", "agent/conversation", "agent/conversations", "agent/definitions")
)
ENCODINGS = ("utf-8", "utf-16", "utf-32")
INCREMENTAL_SYNC = 2


def position_encoding(client: dict) -> str:  # type: ignore[type-arg]
    """The client's first choice that we know; utf-16 when it names none (LSP 3.17)."""
    offered = (client.get("general") or {}).get("positionEncodings") or []
    return next((encoding for encoding in offered if encoding in ENCODINGS), "utf-16")


def agent_capabilities(client: dict) -> dict:  # type: ignore[type-arg]
    """The client's `experimental.agent`, empty when it has none or one of another version."""
    experimental = client.get("experimental")
    agent = experimental.get("agent") if isinstance(experimental, dict) else None
    return agent if isinstance(agent, dict) and agent.get("version") == 1 else {}


def initialize_result(params: dict) -> dict:  # type: ignore[type-arg]
    """The whole result for the params of `initialize`. A client with `experimental.agent` gets no commands and no code
    actions of ours: it brings its own."""
    client = params.get("capabilities") or {}
    capabilities: dict[str, object] = {
        "positionEncoding": position_encoding(client),
        "textDocumentSync": {"openClose": True, "change": INCREMENTAL_SYNC, "save": True},
        "workspace": {
            "workspaceFolders": {"supported": True, "changeNotifications": True},
            "textDocumentContent": {"schemes": ["agent-base", "agent-worktree", "agent-transcript"]},
        },
        "experimental": {
            "agent": {
                "version": 1,
                "methods": list(METHODS),
                "forking": True,
                "background": True,
                "isolation": ["none", "worktree"],
            }
        },
    }
    if not agent_capabilities(client):
        capabilities["executeCommandProvider"] = {"commands": list(COMMANDS)}
        capabilities["codeActionProvider"] = True
    return {"capabilities": capabilities, "serverInfo": {"name": NAME, "version": VERSION}}

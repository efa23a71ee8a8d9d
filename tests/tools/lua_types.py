"""Method names and wire types of `lsp_server.protocol` for the Neovim plugin, as Lua with type annotations.

`python -m tests.tools.lua_types` writes the file again; tests/editors/test_neovim_types.py fails when it is stale.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from lsp_server import protocol
from tests.tools.wire_types import interfaces

FILE = Path(__file__).parents[2] / "editors" / "nvim" / "lua" / "agent_ls" / "protocol.lua"
_FIELD = re.compile(r"^  (\w+\??): (.*);$")
_WORD = re.compile(r'"[^"]*"|Record<string, unknown>|\w+')
_NAMES = {"string": "string", "number": "number", "boolean": "boolean", "unknown": "any"}
_HEAD = """\
-- Generated from lsp_server/protocol.py by `python -m tests.tools.lua_types`; don't edit.

--- Names and types of the wire protocol, see protocol.md.
local M = {}
"""


def module() -> str:
    """The whole file."""
    parts = [
        _HEAD,
        f"M.VERSION = {protocol.VERSION}\n",
        "--- Requests of the client.",
        _table("methods", protocol.INBOUND),
        "--- Requests of the server.",
        _table("server_requests", protocol.OUTBOUND_REQUESTS),
        "--- Notifications of the server.",
        _table("notifications", protocol.OUTBOUND_NOTIFICATIONS),
        *(_class(name, block) for name, block in interfaces().items()),
        "return M\n",
    ]
    return "\n".join(parts)


def _table(name: str, methods: Iterable[str]) -> str:
    rows = [f'  {method.rpartition("/")[2]} = "{method}",' for method in methods]
    return "\n".join([f"M.{name} = {{", *rows, "}\n"])


def _class(name: str, block: str) -> str:
    fields = [match.groups() for line in block.splitlines() if (match := _FIELD.match(line))]
    rows = [f"---@field {field} {_type(hint)}" for field, hint in fields]
    return "\n".join([f"---@class agent_ls.{name}", *rows, ""])


def _type(hint: str) -> str:
    return _WORD.sub(_word, hint).replace(" | ", "|")


def _word(match: re.Match[str]) -> str:
    word = match[0]
    if word.startswith('"'):
        return word
    if word.startswith("Record"):
        return "table<string, any>"
    return _NAMES.get(word) or f"agent_ls.{word}"


if __name__ == "__main__":
    FILE.write_text(module(), encoding="utf-8")

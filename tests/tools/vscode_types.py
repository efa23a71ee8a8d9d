"""Method names and wire types of `lsp_server.protocol` for the VS Code extension, as TypeScript.

`python -m tests.tools.vscode_types` writes the file again; tests/editors/test_vscode_types.py fails when it is stale.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lsp_server import protocol
from tests.tools.wire_types import interfaces

FILE = Path(__file__).parents[2] / "editors" / "vscode" / "src" / "protocol.ts"
_HEAD = """\
// Generated from lsp_server/protocol.py by `python -m tests.tools.vscode_types`; don't edit.
// The names and types of the wire protocol, see protocol.md.
"""


def module() -> str:
    """The whole file."""
    parts = [
        _HEAD,
        f"export const VERSION = {protocol.VERSION};\n",
        _table("methods", protocol.INBOUND, "Requests of the client."),
        _table("serverRequests", protocol.OUTBOUND_REQUESTS, "Requests of the server."),
        _table("notifications", protocol.OUTBOUND_NOTIFICATIONS, "Notifications of the server."),
        _calls(),
        *(f"export {block}\n" for block in interfaces().values()),
    ]
    return "\n".join(parts)


def _table(name: str, methods: Iterable[str], comment: str) -> str:
    rows = [f'  {method.rpartition("/")[2]}: "{method}",' for method in methods]
    return "\n".join([f"/** {comment} */", f"export const {name} = {{", *rows, "} as const;\n"])


def _calls() -> str:
    """What each request takes and gives, by its short name."""
    rows = [
        f"  {method.rpartition('/')[2]}: {{ params: {params.__name__}; result: {result.__name__} }};"
        for method, (params, result) in protocol.INBOUND.items()
    ]
    return "\n".join(["/** What each request takes and gives. */", "export interface Calls {", *rows, "}\n"])


if __name__ == "__main__":
    FILE.write_text(module(), encoding="utf-8")

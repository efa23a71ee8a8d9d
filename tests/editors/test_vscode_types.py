"""The names and types of the VS Code extension are those of the server."""

from __future__ import annotations

from tests.tools.vscode_types import FILE, module


def test_the_types_of_the_vscode_extension_are_not_stale() -> None:
    assert FILE.read_text("utf-8") == module(), "run: python -m tests.tools.vscode_types"

"""The Neovim plugin's names and types are those of the server."""

from __future__ import annotations

from tests.tools.lua_types import FILE, module


def test_the_types_of_the_neovim_plugin_are_not_stale() -> None:
    assert FILE.read_text("utf-8") == module(), "run: python -m tests.tools.lua_types"

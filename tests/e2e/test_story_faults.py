"""Faults of agent and settings files as diagnostics: at the start, when files change, and gone when they are mended."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lsp_server.demo.script import say
from tests.e2e.conftest import StartServer
from tests.e2e.desk import Desk
from tests.e2e.lsp_client import LspClient

pytestmark = pytest.mark.anyio
PUBLISHED = "textDocument/publishDiagnostics"
NAMELESS = "---\nname: nameless\n---\nx\n"
MISSING = "description is missing: say in a sentence when to use this agent"
WATCHING = {"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True}}}


def agent_file(folder: Path, name: str, text: str) -> Path:
    path = folder / ".claude" / "agents" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


async def told(client: LspClient, path: Path) -> list[tuple[int, int, str]]:
    """(line, severity, message) of the diagnostics of this file that come next."""
    params = await client.expect(PUBLISHED, lambda params: params["uri"] == path.as_uri(), 10)
    assert all(each["source"] == "agent-ls" for each in params["diagnostics"])
    return [(each["range"]["start"]["line"], each["severity"], each["message"]) for each in params["diagnostics"]]


@pytest.mark.spec("SEL-7")
@pytest.mark.parametrize(
    "capabilities", [{}, {"experimental": {"agent": {"version": 1, "progress": True}}}], ids=["plain", "agent"]
)
async def test_m1_faults_are_told_at_the_start_and_cleared_when_a_saved_file_is_mended(
    server: StartServer, workspace: Path, capabilities: Mapping[str, Any]
):
    broken = agent_file(workspace, "broken", "---\nname: broken\ndescription: [unclosed\n---\nx\n")
    agent_file(workspace, "good", "\ufeff---\nname: good\ndescription: Good.\n---\nBe good.\n")
    settings = workspace / ".claude" / "settings.json"
    settings.write_text('{\n  "permissions": [,]\n}\n')
    client = await server()
    await client.initialize(root=workspace, capabilities=capabilities)
    yaml = "the front matter is not valid YAML: expected ',' or ']', but got '<stream end>'"
    assert await told(client, broken) == [(3, 1, yaml)]
    assert [(line, severity) for line, severity, _ in await told(client, settings)] == [(1, 1)]

    broken.write_text(NAMELESS)
    client.notify("textDocument/didSave", {"textDocument": {"uri": broken.as_uri()}})
    assert await told(client, broken) == [(0, 1, MISSING)]
    broken.unlink()
    client.notify("textDocument/didSave", {"textDocument": {"uri": (workspace / "app.py").as_uri()}})
    client.notify("textDocument/didSave", {"textDocument": {"uri": settings.as_uri()}})
    assert await told(client, broken) == []
    assert {Path(params["uri"].removeprefix("file://")).name for params in client.received(PUBLISHED)} == {
        "broken.md",
        "settings.json",
    }


async def test_m1_an_editor_that_watches_files_is_asked_to_and_its_word_counts_at_once(
    server: StartServer, workspace: Path, server_env: Mapping[str, str]
):
    client = await server()
    client.hold("client/registerCapability")
    await client.initialize(root=workspace, capabilities=WATCHING)
    held = await client.held("client/registerCapability")
    held.reply(None)
    [registration] = held.params["registrations"]
    assert registration["method"] == "workspace/didChangeWatchedFiles"
    patterns = [each["globPattern"] for each in registration["registerOptions"]["watchers"]]
    home = (Path(server_env["HOME"]) / ".claude").as_uri()
    assert "**/.claude/agents/**/*.md" in patterns and {"baseUri": home, "pattern": "agents/**/*.md"} in patterns

    path = agent_file(workspace, "late", NAMELESS)
    changed = {"changes": [{"uri": path.as_uri(), "type": 1}]}
    client.notify("workspace/didChangeWatchedFiles", changed)
    assert await told(client, path) == [(0, 1, MISSING)]
    own = agent_file(Path(server_env["HOME"]), "mine", NAMELESS)
    client.notify("workspace/didChangeWatchedFiles", changed)
    assert await told(client, own) == [(0, 1, MISSING)]
    assert len(client.received(PUBLISHED)) == 2, "what did not change is not told again"


async def test_m1_an_editor_that_refuses_to_watch_is_served_all_the_same(server: StartServer, workspace: Path):
    client = await server()
    client.hold("client/registerCapability")
    await client.initialize(root=workspace, capabilities=WATCHING)
    (await client.held("client/registerCapability")).fail(-32601, "not me")
    path = agent_file(workspace, "late", NAMELESS)
    client.notify("textDocument/didSave", {"textDocument": {"uri": path.as_uri()}})
    assert await told(client, path) == [(0, 1, MISSING)]


async def test_m1_a_file_that_was_changed_behind_the_editor_is_told_at_its_next_use(desk: Desk):
    path = agent_file(desk.repo.path, "late", NAMELESS)
    desk.says(say("done"))
    await desk.run()
    assert await told(desk.client, path) == [(0, 1, MISSING)]
    path.write_text("---\nname: late\ndescription: Late.\n---\nx\n")
    os.utime(path)
    desk.says(say("done"))
    await desk.run()
    assert await told(desk.client, path) == []
    path.unlink()


async def test_m1_what_is_told_of_a_folder_is_cleared_when_it_leaves_the_workspace(
    server: StartServer, workspace: Path, tmp_path: Path
):
    other = tmp_path / "other"
    path = agent_file(other, "broken", NAMELESS)
    folder = {"uri": other.as_uri(), "name": "other"}
    client = await server()
    await client.initialize(root=workspace, capabilities={"workspace": {"workspaceFolders": True}})
    for side, faults in (("added", [(0, 1, MISSING)]), ("removed", [])):
        event = {"added": [], "removed": [], side: [folder]}
        client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
        assert await told(client, path) == faults

"""A folder that nobody has trusted yet: its own rules wait, the person is told why, and says yes or no."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lsp_server.demo.model_server import ModelServer
from lsp_server.demo.script import Script, conversation, say, use
from tests.e2e.conftest import StartServer
from tests.e2e.desk import CLIENTS, until
from tests.e2e.lsp_client import LspClient
from tests.e2e.wire import ResponseError

pytestmark = pytest.mark.anyio
ASK = "window/showMessageRequest"
WAITS = "is not trusted, so some of what its files say waits: 1 allow rule, settings (maxDepth)."
MAKE = use("Bash", command="sh -c 'touch made'")


@pytest.fixture
def folder(workspace: Path) -> Path:
    path = workspace / ".claude" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"permissions": {"allow": ["Bash(sh -c 'touch made')"]}, "maxDepth": 2}))
    return workspace


async def made_unasked(client: LspClient, model: ModelServer, folder: Path) -> bool:
    """Whether the folder's own rule counts: else the call is asked for, and refused here."""
    model.set_script(Script((conversation(say(MAKE), say("done")),)), reset=True)
    client.on("agent/permission", lambda params: {"optionId": "rejectOnce"})
    agent = (await client.request("agent/spawn", {"prompt": "go"}, timeout=30))["agent"]
    await client.request("agent/wait", {"agentId": agent["id"]}, timeout=30)
    found = (folder / "made").exists()
    (folder / "made").unlink(missing_ok=True)
    return found


async def opened(server: StartServer, folder: Path, kind: str, options: Any = None) -> LspClient:
    client = await server()
    await client.initialize(root=folder, capabilities=CLIENTS[kind].capabilities, options=options or {})
    return client


@pytest.mark.spec("ED-1", "PM-2")
async def test_a_rich_editor_is_told_once_and_grants_it_live_and_for_later(
    server: StartServer, model: ModelServer, folder: Path
) -> None:
    client = await opened(server, folder, "trusted")
    told = await client.expect("window/showMessage", lambda params: WAITS in params["message"], timeout=20)
    assert told["type"] == 2 and str(folder) in told["message"]
    assert not await made_unasked(client, model, folder)
    with pytest.raises(ResponseError, match="is no folder of the workspace") as caught:
        await client.request("agent/trust", {"uri": folder.parent.as_uri(), "trusted": True})
    assert caught.value.code == -32602
    assert await client.request("agent/trust", {"uri": folder.as_uri(), "trusted": True}) == {"trusted": True}
    assert await made_unasked(client, model, folder)
    await client.close()
    client = await opened(server, folder, "trusted")
    client.forbid("window/showMessage")
    assert await made_unasked(client, model, folder)
    await client.request("agent/trust", {"uri": folder.as_uri(), "trusted": False})
    assert not await made_unasked(client, model, folder)


async def test_a_plain_editor_asks(server: StartServer, model: ModelServer, folder: Path) -> None:
    client = await server()
    client.on("window/workDoneProgress/create", lambda params: None)
    asked: list[Any] = []

    def answer(params: Any) -> Any:
        asked.append(params)
        return {"title": "Trust this folder"}

    client.on(ASK, answer)
    await client.initialize(root=folder, capabilities=CLIENTS["plain"].capabilities)
    await until(lambda: asked, 20)
    assert WAITS in asked[0]["message"]
    assert [action["title"] for action in asked[0]["actions"]] == ["Trust this folder", "Not now", "Never"]


async def test_an_editor_with_its_own_trust_is_not_asked(server: StartServer, model: ModelServer, folder: Path) -> None:
    client = await opened(server, folder, "trusted", {"trusted": False})
    client.forbid("window/showMessage")
    assert not await made_unasked(client, model, folder)

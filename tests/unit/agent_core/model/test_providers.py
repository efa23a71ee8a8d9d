"""The clouds, through their own clients of the SDK, over real HTTP; and what is said when something is not set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_core.errors import MissingCredentials
from agent_core.model.aliases import ALIASES
from agent_core.model.messages_api import MessagesApi
from agent_core.model.providers import Credentials, credentials, open_client
from lsp_server.demo.model_server import ModelServer
from lsp_server.demo.script import Script, conversation, say
from tests.unit.agent_core.model.test_messages_api import Service
from tests.unit.agent_core.workshop import import_sdk, open_shop

pytestmark = pytest.mark.anyio
SONNET = ALIASES["sonnet"]
BEDROCK = {"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_REGION": "eu-west-1", "AWS_BEARER_TOKEN_BEDROCK": "secret"}
VERTEX = {
    "CLAUDE_CODE_USE_VERTEX": "1",
    "CLOUD_ML_REGION": "us-east5",
    "ANTHROPIC_VERTEX_PROJECT_ID": "shop",
    "CLAUDE_CODE_SKIP_VERTEX_AUTH": "1",
}
FOUNDRY = {
    "CLAUDE_CODE_USE_FOUNDRY": "1",
    "ANTHROPIC_FOUNDRY_API_KEY": "secret",
    "ANTHROPIC_FOUNDRY_RESOURCE": "shop",
}


@pytest.mark.spec("MD-6")
@pytest.mark.parametrize(
    ("env", "path", "model"),
    [
        (BEDROCK, "/v1/messages", f"anthropic.{SONNET}"),
        (VERTEX, f"/projects/shop/locations/us-east5/publishers/anthropic/models/{SONNET}:streamRawPredict", None),
        (FOUNDRY, "/v1/messages", SONNET),
        ({"ANTHROPIC_API_KEY": "secret"}, "/v1/messages", SONNET),
    ],
)
async def test_each_is_asked_in_its_own_way(env: Mapping[str, str], path: str, model: str | None) -> None:
    import_sdk()
    async with ModelServer(Script((conversation(say("ok")),), models=(".*",))) as server:
        found = credentials(env, api_key=None, base_url=server.url)
        client = MessagesApi(lambda: found)
        reply = await Service(server, client).call()
        await client.aclose()
        (entry,) = [entry for entry in server.log if entry.method == "POST"]
        assert (reply.message.text, entry.path) == ("ok", path)
        assert entry.json.get("model") == model
        assert "secret" not in repr(found) + found.described


@pytest.mark.parametrize(
    ("env", "endpoint"),
    [
        (BEDROCK, "https://bedrock-mantle.eu-west-1.api.aws/anthropic"),
        (VERTEX, "https://us-east5-aiplatform.googleapis.com/v1"),
        ({**VERTEX, "CLOUD_ML_REGION": "global"}, "https://aiplatform.googleapis.com/v1"),
        (FOUNDRY, "https://shop.services.ai.azure.com/anthropic/"),
        ({"ANTHROPIC_API_KEY": "k"}, "https://api.anthropic.com"),
    ],
)
async def test_where_it_goes_without_a_base_url(env: Mapping[str, str], endpoint: str) -> None:
    """As the SDK has it: `doctor` tries the same place."""
    import_sdk()
    found = credentials(env, api_key=None, base_url=None)
    async with open_client(found, None) as client:
        assert str(client.base_url).rstrip("/") == endpoint.rstrip("/")
    assert endpoint.startswith(found.endpoint)


@pytest.mark.parametrize(
    ("env", "missing"),
    [
        ({"CLAUDE_CODE_USE_BEDROCK": "1"}, "bedrock: no region; set AWS_REGION"),
        ({"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_REGION": "r"}, "bedrock: no credentials; set AWS_BEARER_TOKEN_BEDROCK"),
        ({"CLAUDE_CODE_USE_VERTEX": "1"}, "vertex: set CLOUD_ML_REGION and ANTHROPIC_VERTEX_PROJECT_ID"),
        ({"CLAUDE_CODE_USE_FOUNDRY": "1"}, "foundry: set ANTHROPIC_FOUNDRY_API_KEY"),
        (
            {"CLAUDE_CODE_USE_FOUNDRY": "1", "ANTHROPIC_FOUNDRY_API_KEY": "k"},
            "foundry: set ANTHROPIC_FOUNDRY_RESOURCE",
        ),
    ],
)
def test_what_is_not_set_is_named(env: Mapping[str, str], missing: str) -> None:
    with pytest.raises(MissingCredentials, match=missing):
        credentials(env, api_key=None, base_url=None)


def test_the_setting_wins_over_the_environment() -> None:
    env = {**BEDROCK, "ANTHROPIC_API_KEY": "k"}
    assert credentials(env, api_key=None, base_url=None, provider="anthropic") == Credentials("k", None, None)


async def test_a_launch_is_refused_when_the_provider_that_the_setting_names_lacks_something(tmp_path: Path) -> None:
    async with open_shop(tmp_path, env=FOUNDRY, settings={"provider": "bedrock"}) as shop:
        with pytest.raises(MissingCredentials, match="bedrock: no region"):
            await shop.run()
        assert await shop.runtime.list() == []

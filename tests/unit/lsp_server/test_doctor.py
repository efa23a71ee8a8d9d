"""`agent-ls doctor`: the models behind the aliases, held against what the service lists."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from lsp_server.demo.catalogue import NAMES
from lsp_server.demo.model_server import ModelServer
from lsp_server.demo.script import Script
from lsp_server.doctor import examine

pytestmark = pytest.mark.anyio
UNCHECKED = ("ok", "model aliases were not checked: the service lists no models")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def aliases(place: Path, monkeypatch: pytest.MonkeyPatch, env: Mapping[str, str]) -> list[tuple[str, str]]:
    own = {"HOME": str(place), "AGENT_LS_STATE_DIR": str(place / "state"), "ANTHROPIC_API_KEY": "test"}
    for name in ("ANTHROPIC_AUTH_TOKEN", *(f"ANTHROPIC_DEFAULT_{each}_MODEL" for each in ("OPUS", "SONNET", "HAIKU"))):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**own, **env}.items():
        monkeypatch.setenv(name, value)
    return [
        (each.level, each.text) async for each in examine(place) if each.text.startswith(("model aliases", "the alias"))
    ]


@pytest.mark.spec("MD-6")
async def test_each_alias_stands_for_a_model_that_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ModelServer(Script(())) as server:
        found = await aliases(tmp_path, monkeypatch, {"ANTHROPIC_BASE_URL": server.url})
        assert [entry.path for entry in server.log] == ["/v1/models"]
    assert found == [("ok", "model aliases: opus, sonnet, haiku, fable are listed by the service")]


async def test_one_that_is_not_listed_is_a_warning_with_its_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dated = tuple(f"{name}-20260101" if "sonnet" in name else name for name in NAMES)
    monkeypatch.setattr("lsp_server.demo.catalogue.NAMES", dated)
    async with ModelServer(Script(())) as server:
        env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_DEFAULT_OPUS_MODEL": "claude-opus-9-9[1m]"}
        found = await aliases(tmp_path, monkeypatch, env)
    words = "the alias opus stands for claude-opus-9-9, which the service does not list"
    assert found == [("warning", f"{words}; set ANTHROPIC_DEFAULT_OPUS_MODEL to one that it lists")]


@pytest.mark.parametrize("key", ["test", "", "wrong"])
async def test_a_service_that_does_not_say_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """Unreachable, no credentials, refused."""
    async with ModelServer(Script((), invalid_keys=("wrong",))) as server:
        url = server.url if key == "wrong" else "http://127.0.0.1:9"
        found = await aliases(tmp_path, monkeypatch, {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": key})
    assert found == [UNCHECKED]

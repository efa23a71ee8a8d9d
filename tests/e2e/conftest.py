"""The real server as a process, a scripted model over HTTP, a real repository."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from lsp_server.demo.model_server import ModelServer
from lsp_server.demo.script import Script
from tests.e2e.lsp_client import LspClient
from tests.git_helpers import clean_git, init

__all__ = ["clean_git"]  # a fixture that `workspace` uses

ROOT = Path(__file__).parents[2]
FILES = {
    "README.md": "# Example\n",
    "app.py": "def add(a, b):\n    return a - b\n",
    "docs/notes.txt": "one\ntwo\nthree\n",
}
KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
StartServer = Callable[..., Awaitable[LspClient]]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> object:
    report = yield
    setattr(item, f"report_{report.when}", report)
    return report


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    """Runs in the test's loop, with an empty script: call `model.set_script`. Its problems fail the test."""
    async with ModelServer(Script(())) as server:
        yield server
        assert server.problems == []


@pytest.fixture
def workspace(tmp_path: Path, clean_git: None) -> Path:
    """A git repository with one commit of FILES."""
    return init(tmp_path / "workspace", FILES).path


@pytest.fixture
def server_env(tmp_path: Path, model: ModelServer) -> dict[str, str]:
    """An environment that reaches nothing but the test's folders and the model server."""
    home = tmp_path / "home"
    home.mkdir()
    places = {
        "HOME": home,
        "XDG_CONFIG_HOME": home / "config",
        "XDG_STATE_HOME": home / "state",
        "XDG_CACHE_HOME": home / "cache",
        "XDG_DATA_HOME": home / "data",
        "AGENT_LS_STATE_DIR": tmp_path / "agent-state",
        "PYTHONPATH": ROOT,
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    access = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "test", "GIT_CONFIG_NOSYSTEM": "1"}
    return {**kept, **{name: str(place) for name, place in places.items()}, **access}


@pytest.fixture
async def server(
    request: pytest.FixtureRequest, workspace: Path, server_env: dict[str, str]
) -> AsyncIterator[StartServer]:
    """`client = await server(args=("serve",), env={...}, cwd=...)`; `env` is added to `server_env`, None removes one.
    Every client that the test did not end itself is closed, with all its checks, when the test passed."""
    clients: list[LspClient] = []

    async def start(
        args: tuple[str, ...] = ("serve",), env: Mapping[str, str | None] | None = None, cwd: Path | None = None
    ) -> LspClient:
        wanted = {name: value for name, value in {**server_env, **(env or {})}.items() if value is not None}
        command = [sys.executable, "-m", "lsp_server", *args]
        clients.append(await LspClient.start(command, env=wanted, cwd=cwd or workspace))
        return clients[-1]

    yield start
    passed = getattr(request.node, "report_call", None) is not None and request.node.report_call.passed
    for client in clients:
        if client.closed:
            continue
        await (client.close() if passed else client.kill())

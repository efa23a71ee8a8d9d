"""The real server as a process, a scripted model over HTTP, a real repository.

`desk` is what most stories need: one server for all of them, and a checkout for each. `server`, `own_desk` and `model`
are for stories that end a server, or start it in another way.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from attrs import define, field

from lsp_server.demo.model_server import ModelServer
from lsp_server.demo.script import Script
from tests.e2e.desk import CLIENTS, Desk
from tests.e2e.lsp_client import LspClient
from tests.git_helpers import Repo, clean_git, init

__all__ = ["clean_git"]  # a fixture that `workspace` uses

ROOT = Path(__file__).parents[2]
SERVER = (sys.executable, "-m", "lsp_server")
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


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """For the whole session, so that a server can serve several tests."""
    return "asyncio"


def environment(place: Path, cache: Path, url: str) -> dict[str, str]:
    """Of a server: it reaches nothing but folders in `place` and the model server. Code that was compiled once is kept
    in `cache`, as in a user's home."""
    home = place / "home"
    home.mkdir(parents=True)
    places = {
        "HOME": home,
        "XDG_CONFIG_HOME": home / "config",
        "XDG_STATE_HOME": home / "state",
        "XDG_CACHE_HOME": cache,
        "XDG_DATA_HOME": home / "data",
        "AGENT_LS_STATE_DIR": place / "agent-state",
        "PYTHONPATH": ROOT,
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    access = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "test", "GIT_CONFIG_NOSYSTEM": "1"}
    return {**kept, **{name: str(place) for name, place in places.items()}, **access}


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


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
def server_env(tmp_path: Path, cache: Path, model: ModelServer) -> dict[str, str]:
    return environment(tmp_path, cache, model.url)


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
        clients.append(await LspClient.start([*SERVER, *args], env=wanted, cwd=cwd or workspace))
        return clients[-1]

    yield start
    for client in clients:
        if client.closed:
            continue
        await (client.close() if passed(request) else client.kill())


@pytest.fixture
def alone(tmp_path: Path, cache: Path, workspace: Path) -> tuple[dict[str, str], Path]:
    """Environment and folder of a server that never speaks to a model."""
    return environment(tmp_path, cache, "http://127.0.0.1:9"), workspace


@pytest.fixture
async def own_desk(server: StartServer, model: ModelServer, workspace: Path) -> Desk:
    """A desk with a server of its own, which the test may end."""
    client = await server()
    trusted = CLIENTS["trusted"]
    await client.initialize(root=workspace, capabilities=trusted.capabilities, options=trusted.options)
    return Desk(client, model, Repo(workspace))


@define
class Servers:
    """Servers that all tests share, by kind (a key of CLIENTS): starting one takes seconds. The one whose test failed
    is not used again."""

    place: Path
    cache: Path
    _open: dict[str, Desk] = field(factory=dict)

    async def get(self, kind: str) -> Desk:
        if kind not in self._open:
            self._open[kind] = await self._start(kind, Path(tempfile.mkdtemp(dir=self.place)))
        return self._open[kind]

    async def _start(self, kind: str, place: Path) -> Desk:
        model = await ModelServer(Script(())).__aenter__()
        environ = {**environment(place, self.cache, model.url), **CLIENTS[kind].env}
        client = await LspClient.start([*SERVER, "serve"], env=environ, cwd=place)
        home = Repo(place / "home")
        known = CLIENTS[kind]
        answer = await client.initialize(root=home.path, capabilities=known.capabilities, options=known.options)
        return Desk(client, model, home, answer["capabilities"]["positionEncoding"])

    async def drop(self, kind: str) -> None:
        desk = self._open.pop(kind)
        await desk.client.kill()
        await desk.model.__aexit__()

    async def close(self) -> None:
        for desk in self._open.values():
            await desk.client.close()
            await desk.model.__aexit__()


@pytest.fixture(scope="session")
async def servers(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> AsyncIterator[Servers]:
    found = Servers(tmp_path_factory.mktemp("servers"), cache)
    yield found
    await found.close()


@pytest.fixture
async def desk(request: pytest.FixtureRequest, servers: Servers, workspace: Path) -> AsyncIterator[Desk]:
    """In this test's own checkout, with the trusted editor that knows everything of `agent/*`."""
    async with at_work(request, servers, "trusted", workspace) as found:
        yield found


@pytest.fixture
async def strangers_desk(request: pytest.FixtureRequest, servers: Servers, workspace: Path) -> AsyncIterator[Desk]:
    """The same for an editor that does not trust the folder, wants no text deltas, counts in UTF-8 and has the key."""
    async with at_work(request, servers, "stranger", workspace) as found:
        yield found


@pytest.fixture
async def plain_desk(request: pytest.FixtureRequest, servers: Servers, workspace: Path) -> AsyncIterator[Desk]:
    """The same for an editor that has never heard of `agent/*`."""
    async with at_work(request, servers, "plain", workspace) as found:
        yield found


@pytest.fixture(params=["trusted", "stranger"], ids=["utf-16", "utf-8"])
async def each_desk(request: pytest.FixtureRequest, servers: Servers, workspace: Path) -> AsyncIterator[Desk]:
    """Either of the first two."""
    async with at_work(request, servers, request.param, workspace) as found:
        yield found


@asynccontextmanager
async def at_work(request: pytest.FixtureRequest, servers: Servers, kind: str, workspace: Path) -> AsyncIterator[Desk]:
    """What a test leaves running, unread or unmet fails it; the next one finds a clean desk."""
    desk = await servers.get(kind)
    home = desk.repo
    await desk.move_to(Repo(workspace))
    desk.script()
    yield desk
    if not passed(request):
        await servers.drop(kind)
        return
    left, found = await desk.stop_all(), desk.model.problems
    await desk.move_to(home)
    desk.client.checkpoint()
    assert (left, found) == ([], [])


def passed(request: pytest.FixtureRequest) -> bool:
    report = getattr(request.node, "report_call", None)
    return report is not None and bool(report.passed)

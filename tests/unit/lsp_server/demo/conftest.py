"""The model server in the test's own loop, and the real SDK as its client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest
from anthropic import AsyncAnthropic

from lsp_server.demo.model_server import ModelServer
from lsp_server.demo.script import Script

Serve = Callable[..., object]


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """`server, client = await serve(script, api_key="test")`; both end with the test."""
    async with AsyncExitStack() as stack:

        async def start(script: Script, api_key: str = "test") -> tuple[ModelServer, AsyncAnthropic]:
            server = await stack.enter_async_context(ModelServer(script))
            client = AsyncAnthropic(base_url=server.url, api_key=api_key, max_retries=0)
            return server, await stack.enter_async_context(client)

        yield start

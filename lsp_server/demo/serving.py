"""The model server itself: from an HTTP request to an answer. `model_server` says what it offers."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from lsp_server.demo.answering import Answering
from lsp_server.demo.body import Rendered, render
from lsp_server.demo.cache import PromptCache
from lsp_server.demo.catalogue import model_info, model_list
from lsp_server.demo.control import handle_control
from lsp_server.demo.http_wire import Connection, Request
from lsp_server.demo.loading import ScriptError
from lsp_server.demo.refusals import Invalid
from lsp_server.demo.replies import error_body
from lsp_server.demo.request_log import Entry, without_secrets
from lsp_server.demo.script import Script
from lsp_server.demo.streaming import Sending
from lsp_server.demo.validation import Rules, check_body
from lsp_server.demo.vertex import plain

MESSAGES = "/v1/messages"


class ModelServer:
    """Use as `async with ModelServer(script) as server:` within one event loop. `log` and `problems` may be read there
    at any time; other threads and processes use the HTTP side."""

    def __init__(self, script: Script, port: int = 0) -> None:
        self.script = script
        self.port = port
        self.log: list[Entry] = []
        self.problems: list[str] = []
        self._change = asyncio.Event()
        self._gates: dict[str, asyncio.Event] = {}
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._answering = Answering(PromptCache(script.min_cache_tokens))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> ModelServer:
        loop = asyncio.get_running_loop()
        make = partial(Connection, self._handle, self._connections)
        self._server = await loop.create_server(make, "127.0.0.1", self.port, backlog=512)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server
        self._server.close()
        for connection in list(self._connections):
            connection.transport.abort()
        await asyncio.sleep(0)

    def set_script(self, script: Script, *, reset: bool = False) -> None:
        """`reset` also forgets the log, the problems, the cache, attempts and gates."""
        self.script = script
        if reset:
            self.log.clear()
            self.problems.clear()
            self._gates.clear()
            self._answering = Answering(PromptCache(script.min_cache_tokens))

    def advance(self, seconds: float) -> None:
        """Move the cache's clock."""
        self._answering.clock_offset += seconds

    def gate(self, name: str) -> asyncio.Event:
        """Set it to let the answers pass that wait for this name."""
        return self._gates.setdefault(name, asyncio.Event())

    async def wait_for(self, count: int, timeout: float = 10, conversation: str | None = None) -> Entry:
        """The `count`-th message request (1-based), of one conversation if named. TimeoutError after `timeout` s."""
        await self.wait_until(lambda: len(self.requests(conversation)) >= count, timeout)
        return self.requests(conversation)[count - 1]

    async def wait_until(self, holds: Callable[[], bool], timeout: float = 10) -> None:
        """Until `holds()`, which is asked whenever a request arrived or a client went early. TimeoutError."""
        async with asyncio.timeout(timeout):
            while not holds():
                await self._change.wait()

    def requests(self, conversation: str | None = None) -> list[Entry]:
        """The message requests so far, of one conversation if named."""
        return [e for e in self.log if e.path == MESSAGES and conversation in (None, e.conversation)]

    def _handle(self, request: Request, connection: Connection) -> None:
        if request.path.startswith("/_"):
            return handle_control(self, request, connection)
        entry = self._record(request)
        connection.on_gone = partial(self._gone, entry)
        headers = {"request-id": f"req_{entry.number:06}"}
        try:
            request = plain(request)
            self._authorize(request)
            self._route(request, connection, entry, headers)
        except Invalid as error:
            _refuse(connection, entry, error, headers)
        except ScriptError as error:
            self.problems.append(f"request {entry.number}: {error}")
            refusal = Invalid(f"Fault of the script: {error}", status=500, type="api_error")
            _refuse(connection, entry, refusal, {**headers, "x-should-retry": "false"})
        return self._changed()

    def _gone(self, entry: Entry) -> None:
        entry.closed_early_ns = time.monotonic_ns()
        self._changed()

    def _changed(self) -> None:
        self._change.set()
        self._change = asyncio.Event()

    def _record(self, request: Request) -> Entry:
        entry = Entry(
            number=len(self.log) + 1,
            method=request.method,
            path=request.path,
            headers=without_secrets(request.headers),
            body=request.body,
            arrived_ns=time.monotonic_ns(),
            wall=time.time(),
        )
        self.log.append(entry)
        return entry

    def _authorize(self, request: Request) -> None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        key = request.headers.get("x-api-key") or (token if scheme.lower() == "bearer" else "")
        if not key:
            raise Invalid("x-api-key header is required", status=401, type="authentication_error")
        if key in self.script.invalid_keys:
            raise Invalid("invalid x-api-key", status=401, type="authentication_error")
        if "anthropic-version" not in request.headers:
            raise Invalid("anthropic-version: header is required")

    def _route(self, request: Request, connection: Connection, entry: Entry, headers: dict[str, str]) -> None:
        match request.method, request.path:
            case "POST", "/v1/messages":
                body, rendered = _checked(request, self.script)
                plan = self._answering.plan(self.script, body, rendered, entry)
                gate = self.gate(plan.gate) if plan.gate else None
                Sending(plan, connection, entry, headers, gate).send(bool(body.get("stream")))
            case "POST", "/v1/messages/count_tokens":
                _, rendered = _checked(request, self.script, counting=True)
                _finish(connection, entry, {"input_tokens": rendered.size // 4}, headers)
            case "GET", "/v1/models":
                _finish(connection, entry, model_list(), headers)
            case "GET", path if path.startswith("/v1/models/"):
                _finish(connection, entry, model_info(path.removeprefix("/v1/models/")), headers)
            case _:
                raise Invalid("Not found", status=404, type="not_found_error")


def _checked(request: Request, script: Script, *, counting: bool = False) -> tuple[Any, Rendered]:
    """The parsed body, which keeps every rule. Raises Invalid."""
    try:
        body = json.loads(request.body, parse_constant=_no_constant)
        check_body(body, Rules(script.models, script.strict_roles), counting=counting)
        return body, render(body)
    except UnicodeEncodeError:
        raise Invalid("The request body is not valid JSON: no low surrogate in string") from None
    except (ValueError, RecursionError) as error:
        raise Invalid(f"The request body is not valid JSON: {error}") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finish(connection: Connection, entry: Entry, value: object, headers: dict[str, str], status: int = 200) -> None:
    entry.status, entry.sent_ns = status, time.monotonic_ns()
    entry.outcome = entry.outcome or "ok"
    connection.json(status, value, headers)


def _refuse(connection: Connection, entry: Entry, error: Invalid, headers: dict[str, str]) -> None:
    entry.outcome = error.type
    _finish(connection, entry, error_body(error.type, str(error), headers["request-id"]), headers, error.status)

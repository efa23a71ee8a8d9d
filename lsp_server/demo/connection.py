"""A small JSON-RPC client over the stdio of a language server that it starts itself."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, Self

from lsp_server.framing import BadFrame, content_length, frame

METHOD_NOT_FOUND, CANCELLED, INTERNAL = -32601, -32800, -32603
RequestHandler = Callable[[Any], Awaitable[Any]]
NotificationHandler = Callable[[Any], None]
PATIENCE = 10.0  # seconds for the server to end in order


class RequestFailed(Exception):
    """The server answered with an error; `data` is its `data` object."""

    def __init__(self, method: str, error: Mapping[str, Any]) -> None:
        super().__init__(f"{method}: {error.get('message')}")
        self.code = error.get("code")
        self.data = error.get("data")


class ServerEnded(Exception):
    """The server's output ended or broke; the text has the last line of its stderr."""


class Connection:
    """`async with await Connection.start(...)`: leaving it ends the server by shutdown and exit, in the end by kill.

    `requests` and `notifications` map method names to handlers. A request handler is a task of its own; when the server
    withdraws the request ($/cancelRequest) the task is cancelled. Methods without a handler: error, or ignored.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.requests: dict[str, RequestHandler] = {}
        self.notifications: dict[str, NotificationHandler] = {}
        self._process = process
        self._ids = itertools.count(1)
        self._pending: dict[int, tuple[str, asyncio.Future[Any]]] = {}
        self._running: dict[int | str, asyncio.Task[None]] = {}
        self._stderr = b""
        self._ended: str | None = None
        self._readers = (asyncio.ensure_future(self._read()), asyncio.ensure_future(self._read_stderr()))

    @classmethod
    async def start(cls, command: Sequence[str], env: Mapping[str, str], cwd: Path) -> Self:
        pipe = asyncio.subprocess.PIPE
        return cls(
            await asyncio.create_subprocess_exec(
                *command, env=env, cwd=cwd, stdin=pipe, stdout=pipe, stderr=pipe, limit=1 << 26
            )
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in list(self._running.values()):
            task.cancel()
        try:
            async with asyncio.timeout(PATIENCE):
                await self._end_in_order()
        except TimeoutError:
            self._process.kill()
        await self._process.wait()
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)

    async def _end_in_order(self) -> None:
        if self._ended is None:
            with suppress(RequestFailed, ServerEnded):
                await self.request("shutdown")
            self.notify("exit")
        await self._process.wait()

    @property
    def pid(self) -> int:
        """Of the server."""
        return self._process.pid

    async def request(self, method: str, params: Any = None) -> Any:
        """The result. RequestFailed, ServerEnded."""
        if self._ended is not None:
            raise ServerEnded(self._ended)
        number = next(self._ids)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[number] = (method, future)
        self._send({"id": number, "method": method, **({} if params is None else {"params": params})})
        try:
            return await future
        finally:
            self._pending.pop(number, None)

    def notify(self, method: str, params: Any = None) -> None:
        self._send({"method": method, **({} if params is None else {"params": params})})

    async def ended(self) -> NoReturn:
        """Returns never; raises ServerEnded when the server has ended by itself."""
        await asyncio.shield(self._readers[0])
        raise ServerEnded(self._ended)

    def _send(self, body: Mapping[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(frame({"jsonrpc": "2.0", **body}))

    async def _read(self) -> None:
        reason = "the language server ended"
        try:
            while (body := await self._read_message()) is not None:
                self._receive(body)
        except (BadFrame, ValueError, asyncio.IncompleteReadError) as error:
            reason = f"the language server wrote something that is no message: {error}"
        await asyncio.sleep(0.05)  # the last words on stderr
        *_, words = ["", *self._stderr.decode(errors="replace").splitlines()]
        self._ended = f"{reason}; its last words: {words}" if words else reason
        for _, future in self._pending.values():
            if not future.done():
                future.set_exception(ServerEnded(self._ended))

    async def _read_message(self) -> Any:
        assert self._process.stdout
        headers = []
        while line := (await self._process.stdout.readline()).rstrip(b"\r\n"):
            headers.append(line)
        if not headers:
            return None
        return json.loads(await self._process.stdout.readexactly(content_length(headers)))

    async def _read_stderr(self) -> None:
        assert self._process.stderr
        while data := await self._process.stderr.read(65536):
            self._stderr = (self._stderr + data)[-65536:]

    def _receive(self, body: Any) -> None:
        method, number = body.get("method"), body.get("id")
        if method is None:
            self._settle(body)
        elif method == "$/cancelRequest":
            if task := self._running.get(body["params"]["id"]):
                task.cancel()
        elif number is not None:
            self._running[number] = asyncio.ensure_future(self._answer(method, number, body.get("params")))
        elif handler := self.notifications.get(method):
            handler(body.get("params"))

    def _settle(self, body: Any) -> None:
        method, future = self._pending.get(body.get("id"), ("", None))
        if future is None or future.done():
            return
        if "error" in body:
            future.set_exception(RequestFailed(method, body["error"]))
        else:
            future.set_result(body.get("result"))

    async def _answer(self, method: str, number: int | str, params: Any) -> None:
        try:
            if method not in self.requests:
                raise RequestFailed(method, {"code": METHOD_NOT_FOUND, "message": f"unknown method {method}"})
            answer = {"result": await self.requests[method](params)}
        except RequestFailed as error:
            answer = {"error": {"code": error.code, "message": str(error)}}
        except asyncio.CancelledError:
            answer = {"error": {"code": CANCELLED, "message": "cancelled"}}
        finally:
            self._running.pop(number, None)
        self._send({"id": number, **answer})

"""HTTP/1.1 on asyncio, as much as a test server needs: keep-alive, Content-Length bodies, chunked answers.

Requests of one connection are answered one after another. A handler is called inside the loop's read callback, so a
quick answer costs no task switch; what takes time runs as `connection.work`, which is cancelled when the client goes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from attrs import frozen

MAX_BODY = 32 * 1024 * 1024


@frozen
class Request:
    """Header names are lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


class Connection(asyncio.Protocol):
    """`handle(request, connection)` answers with `json`, or `start`, `chunk` ... `end`. `on_gone` is called when the
    client closes before the answer's end."""

    def __init__(self, handle: Callable[[Request, Connection], None], alive: set[Connection]) -> None:
        self._handle = handle
        self._alive = alive
        self._buffer = bytearray()
        self._busy = False
        self._work: asyncio.Task[None] | None = None
        self.on_gone: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._alive.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._alive.discard(self)
        if self._busy and self.on_gone:
            self.on_gone()
        if self._work:
            self._work.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next()

    def _next(self) -> None:
        if self._busy or (request := self._take()) is None:
            return
        self._busy = True
        self._handle(request, self)

    def _take(self) -> Request | None:
        head, blank, _ = self._buffer.partition(b"\r\n\r\n")
        if not blank:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        length = int(headers.get("content-length", 0))
        if length > MAX_BODY or "transfer-encoding" in headers:
            self.transport.write(b"HTTP/1.1 413 Payload Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            self.transport.close()
            return None
        end = len(head) + 4 + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[len(head) + 4 : end])
        del self._buffer[:end]
        method, target, *_ = first.split(" ")
        parts = urlsplit(target)
        return Request(method, parts.path, dict(parse_qsl(parts.query)), headers, body)

    def work(self, job: Coroutine[Any, Any, None]) -> None:
        """Run `job` for the present request; it must end the answer."""
        self._work = asyncio.get_running_loop().create_task(job)

    def json(self, status: int, value: object, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(value, ensure_ascii=False).encode()
        extra = {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})}
        self.transport.write(_head(status, extra) + data)
        self._done()

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Begin a chunked answer."""
        self.transport.write(_head(status, {**headers, "transfer-encoding": "chunked"}))

    def chunk(self, *parts: bytes) -> None:
        self.transport.write(b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts))

    def end(self) -> None:
        self.transport.write(b"0\r\n\r\n")
        self._done()

    def drop(self) -> None:
        """Close without an end of the answer."""
        self.on_gone = None
        self.transport.abort() if not self.transport.get_write_buffer_size() else self.transport.close()

    def _done(self) -> None:
        self._busy, self.on_gone, self._work = False, None, None
        if self._buffer:
            asyncio.get_running_loop().call_soon(self._next)


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = "Overloaded"
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

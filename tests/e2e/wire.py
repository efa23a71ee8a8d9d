"""Messages and frames of the base protocol, read strictly."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from attrs import define


class ResponseError(Exception):
    """An error answer; a handler may raise it to give one."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{code}: {message}" + (f" ({data})" if data is not None else ""))
        self.code, self.message, self.data = code, message, data


@define
class Message:
    """`direction` is "in" (from the server) or "out"; `at` is time.monotonic(); `body` the whole JSON-RPC message.
    `read`: an expectation took it; `handled`: a handler or a hold did."""

    direction: str
    at: float
    body: dict[str, Any]
    read: bool = False
    handled: bool = False

    @property
    def method(self) -> str | None:
        return self.body.get("method")

    @property
    def is_request(self) -> bool:
        return "method" in self.body and "id" in self.body

    @property
    def params(self) -> Any:
        return self.body.get("params")


def must_be_read(message: Message) -> bool:
    if message.direction == "out" or message.read or message.handled:
        return False
    return message.is_request or (message.method == "window/showMessage" and message.params["type"] == 1)


class NotAFrame(Exception):
    """Bytes on stdout that are not the protocol's."""


def frame(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


async def read_frame(stream: asyncio.StreamReader) -> dict[str, Any] | None:
    """One message, None at the end of the stream between two. NotAFrame for anything else."""
    length = None
    while True:
        line = await stream.readline()
        if not line and length is None:
            return None
        if line == b"\r\n" and length is not None:
            break
        name, colon, value = line.rstrip(b"\r\n").partition(b":")
        if not colon or not line.endswith(b"\r\n") or name.lower() not in (b"content-length", b"content-type"):
            raise NotAFrame(f"expected a header, got {line + await stream.read(200)!r}")
        if name.lower() == b"content-length":
            length = int(value)
    try:
        body = json.loads(await stream.readexactly(length))
    except (asyncio.IncompleteReadError, ValueError) as error:
        raise NotAFrame(f"a broken message: {error}") from None
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0":
        raise NotAFrame(f"no JSON-RPC 2.0 message: {body!r}"[:500])
    return body

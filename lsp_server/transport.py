"""Bytes in and out: an own read loop and a writer thread, so that neither side can stall the agents.

pygls' stock loop blocks on a slow client, hangs on SIGINT and loses the stream at a lower-case header.
"""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from lsp_server.framing import BadFrame, content_length

_LIMIT = 1 << 26
_LATE_SECONDS = 2.0


class QueueWriter:
    """pygls' Writer: `write` never blocks. A thread drains the queue; a client that has gone ends it quietly (K6)."""

    def __init__(self, output: int) -> None:
        self._output = output
        self._queue: deque[bytes] = deque()
        self._ready = threading.Condition()
        self._closed = False
        self.pending_bytes = 0
        self._thread = threading.Thread(target=self._drain, name="writer", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        with self._ready:
            if self._closed:
                return
            self._queue.append(data)
            self.pending_bytes += len(data)
            self._ready.notify()

    def close(self) -> None:
        """Write what is queued, for a short while, then let go."""
        with self._ready:
            self._closed = True
            self._ready.notify()
        self._thread.join(_LATE_SECONDS)

    def _drain(self) -> None:
        while True:
            with self._ready:
                while not self._queue and not self._closed:
                    self._ready.wait()
                if not self._queue:
                    return
                data = b"".join(self._queue)
                self._queue.clear()
            try:
                self._write_all(data)
            except OSError:
                with self._ready:
                    self._closed = True
                    self._queue.clear()
                    self.pending_bytes = 0
                return
            with self._ready:
                self.pending_bytes -= len(data)

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._output, view) :]


class AnsweredFilter:
    """Drops the one reply that the bootstrap has sent already, by its id."""

    def __init__(self, writer: QueueWriter, answered: object) -> None:
        self._writer, self._answered = writer, answered

    @property
    def pending_bytes(self) -> int:
        return self._writer.pending_bytes

    def is_answered(self, message_id: object) -> bool:
        if self._answered is None or message_id != self._answered:
            return False
        self._answered = None
        return True

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    def close(self) -> None:
        self._writer.close()


async def open_reader(received: bytes, source: int) -> asyncio.StreamReader:
    """What was read already, then `source`. Files and terminals cannot be watched by the loop: a thread reads them."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LIMIT)
    reader.feed_data(received)
    kind = os.fstat(source).st_mode
    if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind):
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(source, "rb", 0))
    else:
        threading.Thread(target=_feed, args=(loop, reader, source), name="reader", daemon=True).start()
    return reader


def _feed(loop: asyncio.AbstractEventLoop, reader: asyncio.StreamReader, source: int) -> None:
    try:
        while data := os.read(source, 1 << 16):
            loop.call_soon_threadsafe(reader.feed_data, data)
        loop.call_soon_threadsafe(reader.feed_eof)
    except (OSError, RuntimeError):
        return


async def read_messages(
    reader: asyncio.StreamReader, handle: Callable[[bytes], Any], *, stop: Callable[[], bool]
) -> None:
    """Give every body to `handle` until the stream ends, `stop` says so, or BadFrame.

    The pause after each message lets its handler start before the next one, so that requests start in order.
    """
    while not stop():
        try:
            headers = await _headers(reader)
            if headers is None:
                return
            body = await reader.readexactly(content_length(headers))
        except (asyncio.IncompleteReadError, ConnectionError):  # a client that was killed is one that has gone
            return
        handle(body)
        await asyncio.sleep(0)


async def _headers(reader: asyncio.StreamReader) -> list[bytes] | None:
    """The header lines of the next frame; None at the end of the stream."""
    lines: list[bytes] = []
    while True:
        try:
            line = await reader.readline()
        except ValueError as error:
            raise BadFrame("a header line is too long") from error
        if not line.endswith(b"\n"):
            return None
        if not line.strip():
            if lines:
                return lines
            continue
        lines.append(line.strip())

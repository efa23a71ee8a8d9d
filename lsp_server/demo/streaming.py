"""Sends a planned answer, with its delays and its fault."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from attrs import frozen

from lsp_server.demo.answering import Plan
from lsp_server.demo.http_wire import Connection
from lsp_server.demo.loading import ScriptError
from lsp_server.demo.replies import encode_event, error_body, stream_events
from lsp_server.demo.request_log import Entry
from lsp_server.demo.script import Fault

SSE = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
BROKEN = b'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, "delta": {"ty\n\n'


@frozen
class Sending:
    """One answer on its way. `gate` is the event to wait for first, if any."""

    plan: Plan
    connection: Connection
    entry: Entry
    headers: dict[str, str]
    gate: asyncio.Event | None

    def send(self, stream: bool) -> None:
        """Answers within this call when nothing has to be waited for. ScriptError when the fault needs a stream."""
        turn, fault = self.plan.turn, self.plan.fault
        if fault and not stream and fault.kind not in ("status", "drop", "hang"):
            raise ScriptError(f"the fault {fault.kind!r} needs a stream, but the request asks for none")
        waits = self.gate or turn.first_byte_ms or turn.per_delta_ms or (fault and fault.kind in ("ping", "hang"))
        if waits:
            self.connection.work(self._send_slowly(stream))
        elif not self._refused_or_dropped():
            self._begin(stream)
            if stream:
                self.connection.chunk(*self._chunks())
            self._finish(stream)

    async def _send_slowly(self, stream: bool) -> None:
        if self.gate:
            await self.gate.wait()
        await asyncio.sleep(self.plan.turn.first_byte_ms / 1000)
        if self._refused_or_dropped():
            return
        fault = self.plan.fault
        if stream or not fault:
            self._begin(stream)
        for chunk in self._chunks() if stream else ():
            self.connection.chunk(chunk)
            await asyncio.sleep(self.plan.turn.per_delta_ms / 1000)
        if fault and fault.kind in ("ping", "hang"):
            await self._never_end(fault, stream)
        self._finish(stream)

    def _refused_or_dropped(self) -> bool:
        fault = self.plan.fault
        if fault and fault.kind == "status":
            self._close_entry(fault.type, fault.status)
            body = error_body(fault.type, fault.message, self.headers["request-id"])
            self.connection.json(fault.status, body, {**self.headers, **fault.headers})
            return True
        if fault and fault.kind == "drop" and not fault.after_events:
            self._close_entry("drop")
            self.connection.drop()
            return True
        return False

    def _begin(self, stream: bool) -> None:
        self.plan.lookup.begin()
        self.entry.begun_ns = time.monotonic_ns()
        if stream:
            self.connection.start(200, {**SSE, **self.headers})

    def _chunks(self) -> Iterable[bytes]:
        events = [encode_event(event) for event in stream_events(self.plan.answer, self.plan.turn.chunk)]
        fault = self.plan.fault
        if fault is None:
            return events
        if fault.kind == "no_stop":
            return events[:-2]
        before = events[: fault.after_events]
        if fault.kind == "malformed":
            return [*before, BROKEN, *events[fault.after_events :]]
        if fault.kind == "error_event":
            return [*before, encode_event(error_body(fault.type, fault.message))]
        return before

    async def _never_end(self, fault: Fault, stream: bool) -> None:
        self.entry.outcome = fault.kind
        while True:
            await asyncio.sleep(fault.every_ms / 1000)
            if stream and fault.kind == "ping":
                self.connection.chunk(encode_event({"type": "ping"}))

    def _finish(self, stream: bool) -> None:
        fault = self.plan.fault
        self._close_entry(fault.kind if fault else "ok", 200)
        if fault and fault.kind == "drop":
            self.connection.drop()
        elif stream:
            self.connection.end()
        else:
            self.connection.json(200, self.plan.answer.message(), self.headers)

    def _close_entry(self, outcome: str, status: int | None = None) -> None:
        self.entry.outcome, self.entry.status = outcome, status
        self.entry.sent_ns = time.monotonic_ns()

"""One thread that writes all transcripts and output files, in order, in batches.

Disks can stall; the loop must not. A durable event counts as written only after the operating system has taken it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path

from attrs import define, field, frozen

from agent_core.event_log import EventLog
from agent_core.events import Event
from agent_core.transcript.codec import encode
from agent_core.transcript.readable import render

_LOCK_TRIES, _LOCK_SECONDS = 20, 0.005


@frozen
class TranscriptFiles:
    """`transcript` is the JSONL log, `output` the readable text that grows beside it (RES-8)."""

    transcript: Path
    output: Path


@frozen
class _Item:
    log: EventLog
    files: TranscriptFiles
    event: Event | None
    """None closes the files."""


@define
class TranscriptWriter:
    """Start it on the loop that owns the logs; `put` never blocks; `close` returns when everything is on disk."""

    _loop: asyncio.AbstractEventLoop
    _queue: queue.SimpleQueue[_Item | None] = field(factory=queue.SimpleQueue)
    _handles: dict[Path, int] = field(factory=dict)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._work, name="transcripts", daemon=True)
        self._thread.start()

    def put(self, log: EventLog, files: TranscriptFiles, event: Event) -> None:
        self._queue.put(_Item(log, files, event))

    def release(self, log: EventLog, files: TranscriptFiles) -> None:
        """Close the agent's files once everything before is written."""
        self._queue.put(_Item(log, files, None))

    def close(self, timeout: float = 5.0) -> None:
        self._queue.put(None)
        if self._thread is not None:
            self._thread.join(timeout)

    def _work(self) -> None:
        running = True
        while running:
            batch = [self._queue.get()]
            while not self._queue.empty():
                batch.append(self._queue.get())
            running = None not in batch
            self._write([item for item in batch if item is not None])
        for handle in self._handles.values():
            _close(handle)

    def _write(self, batch: list[_Item]) -> None:
        reports: list[Callable[[], None]] = []
        for item in batch:
            try:
                reports.append(self._one(item))
            except OSError as error:
                reports.append(_failed(item.log, f"{error.strerror}: {error.filename or item.files.transcript}"))
        if reports and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_call_all, reports)

    def _one(self, item: _Item) -> Callable[[], None]:
        if item.event is None:
            for path in (item.files.transcript, item.files.output):
                if (handle := self._handles.pop(path, None)) is not None:
                    _close(handle)
            return lambda: None
        _append(self._handle(item.files.transcript), encode(item.event))
        if text := render(item.event):
            _append(self._handle(item.files.output), text.encode("utf-8", "replace"))
        return _written(item.log, item.event.seq)

    def _handle(self, path: Path) -> int:
        if path not in self._handles:
            self._handles[path] = _open(path)
        return self._handles[path]


def _open(path: Path) -> int:
    """The lock lasts as long as we write: it tells another process that this agent lives here."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    _lock(handle)
    return handle


def _lock(handle: int) -> None:
    """One who lists agents holds each file for a moment, to see whether it is locked; that must not cost us ours."""
    for _ in range(_LOCK_TRIES):
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(_LOCK_SECONDS)


def _append(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


def _close(handle: int) -> None:
    os.close(handle)


def _written(log: EventLog, seq: int) -> Callable[[], None]:
    return lambda: log.mark_written(seq)


def _failed(log: EventLog, reason: str) -> Callable[[], None]:
    return lambda: log.fail(reason)


def _call_all(reports: list[Callable[[], None]]) -> None:
    for report in reports:
        report()

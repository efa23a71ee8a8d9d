"""One thread that writes all transcripts and output files, in order, in batches.

Disks can stall; the loop must not. A durable event counts as written only after the operating system has taken it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
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

_LOCK_TRIES, _CLAIM_TRIES, _LOCK_SECONDS = 200, 20, 0.005


@frozen
class TranscriptFiles:
    """`transcript` is the JSONL log, `output` the readable text that grows beside it (RES-8)."""

    transcript: Path
    output: Path

    def head(self, name: str) -> Path:
        """Where the tools and the system prompt of that name are kept for all agents of the session."""
        return self.transcript.parent.parent / "prompts" / f"{name}.json"


@frozen
class _Item:
    log: EventLog | None
    files: TranscriptFiles
    event: Event | None
    """None closes the files."""


@frozen
class _Stored:
    """Bytes that are written once, under a name that is made of them."""

    log: EventLog
    path: Path
    data: bytes


@frozen
class _Claim:
    """Take the lock of a transcript of an earlier process; `answer` is told whether it was free."""

    files: TranscriptFiles
    answer: asyncio.Future[bool]


@define
class TranscriptWriter:
    """Start it on the loop that owns the logs; `put` never blocks; `close` returns when everything is on disk."""

    _loop: asyncio.AbstractEventLoop
    _queue: queue.SimpleQueue[_Item | _Stored | _Claim | None] = field(factory=queue.SimpleQueue)
    _handles: dict[Path, int] = field(factory=dict)
    _left: dict[Path, int] = field(factory=dict)
    """How long each transcript was when we gave it back."""
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._work, name="transcripts", daemon=True)
        self._thread.start()

    def put(self, log: EventLog, files: TranscriptFiles, event: Event) -> None:
        self._queue.put(_Item(log, files, event))

    def release(self, log: EventLog | None, files: TranscriptFiles) -> None:
        """Close the agent's files once everything before is written."""
        self._queue.put(_Item(log, files, None))

    def store(self, log: EventLog, path: Path, data: bytes) -> None:
        """Written before what is put after it; nothing happens when the file exists."""
        self._queue.put(_Stored(log, path, data))

    async def claim(self, files: TranscriptFiles) -> bool:
        """Go on with a transcript of an earlier process. False when another process has it; `release` gives it back."""
        answer: asyncio.Future[bool] = self._loop.create_future()
        self._queue.put(_Claim(files, answer))
        return await answer

    def is_ours(self, files: TranscriptFiles) -> bool:
        """False when another process has written to a transcript that we had given back."""
        left = self._left.get(files.transcript)
        try:
            return left is None or files.transcript in self._handles or files.transcript.stat().st_size == left
        except OSError:
            return True  # that it is gone is found when it is read

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

    def _write(self, batch: list[_Item | _Stored | _Claim]) -> None:
        reports: list[Callable[[], None]] = []
        for item in batch:
            try:
                reports.append(self._do(item))
            except OSError as error:
                reports.append(_failed(item, error))
        if reports and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_call_all, reports)

    def _do(self, item: _Item | _Stored | _Claim) -> Callable[[], None]:
        match item:
            case _Stored(path=path, data=data):
                _write_once(path, data)
                return lambda: None
            case _Claim(files, answer):
                free = self._claimed(files.transcript)
                return lambda: None if answer.done() else answer.set_result(free)
            case _:
                return self._one(item)

    def _claimed(self, path: Path) -> bool:
        if path in self._handles:
            return True
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        if not _lock(handle, _CLAIM_TRIES):
            os.close(handle)
            return False
        self._handles[path] = handle
        return True

    def _one(self, item: _Item) -> Callable[[], None]:
        if item.event is None or item.log is None:
            for path in (item.files.transcript, item.files.output):
                if (handle := self._handles.pop(path, None)) is not None:
                    self._left[path] = os.fstat(handle).st_size
                    _close(handle)
            return lambda: None
        _append(self._handle(item.files.transcript), encode(item.event))
        if text := render(item.event):
            _append(self._handle(item.files.output), text.encode("utf-8", "replace"))
        return _written(item.log, item.event.seq)

    def _handle(self, path: Path) -> int:
        if path not in self._handles:
            self._handles[path] = handle = _open(path)
            if self._left.get(path, size := os.fstat(handle).st_size) != size:
                _close(self._handles.pop(path))
                raise OSError(errno.EBUSY, "another process has gone on with this agent", str(path))
        return self._handles[path]


def _open(path: Path) -> int:
    """The lock lasts as long as we write: it tells another process that this agent lives here."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not _lock(handle, _LOCK_TRIES):
        _close(handle)
        raise OSError(errno.EBUSY, "another process writes to it", str(path))
    return handle


def _lock(handle: int, tries: int) -> bool:
    """One who lists agents holds each file for a moment, to see whether it is locked; that must not cost us ours."""
    for _ in range(tries):
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(_LOCK_SECONDS)
    return False


def _write_once(path: Path, data: bytes) -> None:
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(data)
    part.chmod(0o600)
    part.replace(path)


def _append(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


def _close(handle: int) -> None:
    os.close(handle)


def _written(log: EventLog, seq: int) -> Callable[[], None]:
    return lambda: log.mark_written(seq)


def _failed(item: _Item | _Stored | _Claim, error: OSError) -> Callable[[], None]:
    if isinstance(item, _Claim):
        return lambda: None if item.answer.done() else item.answer.set_exception(error)
    path = item.path if isinstance(item, _Stored) else item.files.transcript
    reason, log = f"{error.strerror}: {error.filename or path}", item.log
    return lambda: log.fail(reason) if log is not None else None


def _call_all(reports: list[Callable[[], None]]) -> None:
    for report in reports:
        report()

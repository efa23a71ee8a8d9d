"""Transcripts back into memory: whole, to go on with an agent, and by the page, to show one of any size."""

from __future__ import annotations

import re
from pathlib import Path
from typing import BinaryIO

import anyio
from anyio.lowlevel import RunVar

from agent_core.errors import TranscriptFailed
from agent_core.events import Event
from agent_core.transcript.codec import BadRecord, decode
from agent_core.transcript.repair import Recovered, recover

_SEQ, _HEAD = re.compile(rb'"seq":(\d+)'), 400
"""The number stands near the beginning of each line."""
_one_at_a_time: RunVar[anyio.CapacityLimiter] = RunVar("_one_at_a_time")


async def load(path: Path) -> Recovered:
    """The intact events of a transcript and the state that they fold to. TranscriptFailed when it cannot be read.

    One at a time: an editor that attaches late replays all agents at once, and shall not bring all of them back into
    memory, nor keep tools from their threads.
    """
    try:
        limiter = _one_at_a_time.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(1)
        _one_at_a_time.set(limiter)
    return await anyio.to_thread.run_sync(_load, path, limiter=limiter)


async def read_page(path: Path, after: int, limit: int | None) -> tuple[list[Event], bool]:
    """The events with a `seq` above `after`, at most `limit`, and whether there are more. TranscriptFailed.

    What stands before them is not read.
    """
    return await anyio.to_thread.run_sync(_read_page, path, after, limit)


def _read_page(path: Path, after: int, limit: int | None) -> tuple[list[Event], bool]:
    events: list[Event] = []
    try:
        with path.open("rb") as file:
            file.seek(_offset(file, path.stat().st_size, after))
            for line in file:
                if limit is not None and len(events) == limit:
                    return events, line.endswith(b"\n")
                events.append(decode(line))
    except BadRecord:
        return events, False
    except OSError as error:
        raise TranscriptFailed(f"the transcript {path} cannot be read: {error.strerror}") from error
    return events, False


def _offset(file: BinaryIO, size: int, after: int) -> int:
    """Where the first record above `after` begins: records stand in the order of their numbers, so it is halved for."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        start = _line_start(file, middle)
        seq = _seq(file, start) if start < size else None
        if seq is not None and seq <= after:
            low = max(start, middle) + 1
        else:
            high = middle
    return _line_start(file, low)


def _line_start(file: BinaryIO, offset: int) -> int:
    """Of the first line that begins at `offset` or behind it."""
    if offset == 0:
        return 0
    file.seek(offset - 1)
    file.readline()
    return file.tell()


def _seq(file: BinaryIO, start: int) -> int | None:
    file.seek(start)
    found = _SEQ.search(file.read(_HEAD))
    return int(found.group(1)) if found else None


def _load(path: Path) -> Recovered:
    try:
        return recover(path.read_bytes())
    except OSError as error:
        raise TranscriptFailed(f"the transcript {path} cannot be read: {error.strerror}") from error

"""Transcripts back into memory: the one way in which a finished agent's events and messages are loaded again."""

from __future__ import annotations

from pathlib import Path

import anyio
from anyio.lowlevel import RunVar

from agent_core.errors import TranscriptFailed
from agent_core.transcript.repair import Recovered, recover

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


def _load(path: Path) -> Recovered:
    try:
        return recover(path.read_bytes())
    except OSError as error:
        raise TranscriptFailed(f"the transcript {path} cannot be read: {error.strerror}") from error

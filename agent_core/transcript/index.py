"""The agents of earlier runs, read from the first and the last records of their transcripts only (TR-4, F2)."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from attrs import evolve

from agent_core.events import AgentInfo, Ended, Started, UsageReported
from agent_core.task import TERMINAL, TaskStatus
from agent_core.transcript.codec import BadRecord, decode

_HEAD, _TAIL = 1 << 16, 1 << 18
"""Bytes. A record that does not fit is passed over; the agent then shows what its other records say."""


def read_index(sessions: Path) -> list[AgentInfo]:
    """Every agent with a transcript below `sessions`, the newest first. Files that are no transcripts are left out."""
    found = (read_info(path) for path in sessions.glob("*/subagents/agent-*.jsonl"))
    return sorted((info for info in found if info is not None), key=lambda info: info.started_at, reverse=True)


def find_transcript(sessions: Path, agent_id: str) -> Path | None:
    return next(iter(sessions.glob(f"*/subagents/agent-{agent_id}.jsonl")), None) if agent_id.isalnum() else None


def read_info(path: Path) -> AgentInfo | None:
    try:
        with path.open("rb") as file:
            alive = _locked(file.fileno())
            head = file.readline(_HEAD)
            file.seek(max(len(head), path.stat().st_size - _TAIL))
            tail = file.read().split(b"\n")
        first = decode(head).body
    except (OSError, BadRecord):
        return None
    return _latest(first.info, tail, alive) if isinstance(first, Started) else None


def _latest(info: AgentInfo, tail: list[bytes], alive: bool) -> AgentInfo:
    for body in _bodies(tail):
        if isinstance(body, Ended):
            return body.info
        if isinstance(body, UsageReported):
            info = evolve(info, usage=body.usage)
            break
    if alive or info.status in TERMINAL:
        return evolve(info, status=TaskStatus.RUNNING)
    return evolve(info, status=TaskStatus.INTERRUPTED)


def _bodies(lines: list[bytes]) -> Iterator[object]:
    for line in reversed(lines):
        with contextlib.suppress(BadRecord):
            yield decode(line).body


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(handle, fcntl.LOCK_UN)
    except OSError:
        return True
    return False

"""The agents of earlier runs, read from the first and the last records of their transcripts only (TR-4, F2)."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from attrs import define, evolve, field

from agent_core.events import AgentInfo, Ended, HookRan, MessageAdded, Started, StatusChanged, ToolCalled, UsageReported
from agent_core.messages import TextBlock
from agent_core.task import TaskStatus
from agent_core.transcript.codec import BadRecord, decode

_FIRST, _HEAD, _TAIL = 1 << 26, 1 << 16, 1 << 18
"""Bytes: of the first record, which holds the agent's task and may be long (F5), of what follows it, and of the end. A
later record that does not fit is passed over; the agent then shows what its other records say."""

_LONGEST_ID = 64
"""Letters. No file system keeps names of any length."""


@define(eq=False)
class TranscriptIndex:
    """Of one folder. What has ended is read once, as long as its file stays as it is: a list of thousands of agents is
    asked for again and again."""

    sessions: Path
    _ended: dict[str, tuple[object, AgentInfo]] = field(factory=dict)

    def read(self) -> list[AgentInfo]:
        """Every agent with a transcript below the folder, the newest first. Other files are left out."""
        found = (self._read(path) for path in self.sessions.glob("*/subagents/agent-*.jsonl"))
        return sorted((info for info in found if info is not None), key=lambda info: info.started_at, reverse=True)

    def _read(self, path: Path) -> AgentInfo | None:
        try:
            stat = path.stat()
        except OSError:
            return None
        key = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        known, info = self._ended.get(str(path), (None, None))
        if known == key:
            return info
        info = read_info(path)
        if info is not None and info.ended_at is not None:
            self._ended[str(path)] = (key, info)
        return info


def find_transcript(sessions: Path, agent_id: str) -> Path | None:
    if not (agent_id.isascii() and agent_id.isalnum()) or len(agent_id) > _LONGEST_ID:
        return None
    return next(iter(sessions.glob(f"*/subagents/agent-{agent_id}.jsonl")), None)


def first_words(path: Path) -> str:
    """What a person said first, empty when it is not near the beginning."""
    try:
        with path.open("rb") as file:
            lines = _beginning(file)
    except OSError:
        return ""
    for body in _bodies(lines[::-1]):
        if isinstance(body, MessageAdded) and body.message.role == "user" and body.message.meta is None:
            texts = [block.text for block in body.message.content if isinstance(block, TextBlock)]
            return next((text for text in texts if not text.startswith("<environment>")), "")
    return ""


def read_info(path: Path) -> AgentInfo | None:
    try:
        with path.open("rb") as file:
            alive = _locked(file.fileno())
            first, *head = _beginning(file)
            file.seek(max(len(first), path.stat().st_size - _TAIL))
            tail = file.read().split(b"\n")
        started = decode(first).body
    except (OSError, BadRecord):
        return None
    return _latest(started.info, [*head, *tail], alive) if isinstance(started, Started) else None


def _beginning(file: BinaryIO) -> list[bytes]:
    return [file.readline(_FIRST), *file.read(_HEAD).split(b"\n")]


def _latest(info: AgentInfo, lines: list[bytes], alive: bool) -> AgentInfo:
    """As the fold over all of it would have it (`state.apply`). The worktree is told near the start, so that the work
    of a run that was killed can still be reviewed."""
    usage, worktree, tool = None, None, None
    begun = False
    for body in _bodies(lines):
        if isinstance(body, Ended):
            if not begun:
                return body.info
            info = evolve(body.info, stop_reason=None, ended_at=None, result=None, error=None)
            break
        begun = begun or not isinstance(body, HookRan)  # hooks run after the end of a run, too
        if isinstance(body, UsageReported):
            usage = usage or body.usage
        elif isinstance(body, StatusChanged):
            worktree = worktree or body.worktree
        elif isinstance(body, ToolCalled):
            tool = tool or body.name
    return evolve(
        info,
        status=TaskStatus.RUNNING if alive else TaskStatus.INTERRUPTED,
        usage=usage or info.usage,
        worktree=worktree or info.worktree,
        last_tool=tool or info.last_tool,
    )


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

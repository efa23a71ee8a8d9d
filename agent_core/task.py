"""The life of an agent as one table of legal moves.

pending -> running -> waiting -> running -> completed | failed | stopped
any live status -> interrupted (the process ended); a terminal one -> running (sent to, or resumed), by way of pending
when it has to queue
"""

from __future__ import annotations

from enum import StrEnum


class TaskStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"


TERMINAL = frozenset({TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.STOPPED, TaskStatus.INTERRUPTED})

_ENDS = TERMINAL
_AGAIN = frozenset({TaskStatus.PENDING, TaskStatus.RUNNING})
TRANSITIONS: dict[TaskStatus, frozenset[TaskStatus]] = {
    TaskStatus.PENDING: frozenset({TaskStatus.RUNNING}) | _ENDS,
    TaskStatus.RUNNING: frozenset({TaskStatus.WAITING}) | _ENDS,
    TaskStatus.WAITING: frozenset({TaskStatus.RUNNING}) | _ENDS,
    TaskStatus.COMPLETED: _AGAIN,
    TaskStatus.FAILED: _AGAIN,
    TaskStatus.STOPPED: _AGAIN,
    TaskStatus.INTERRUPTED: _AGAIN,
}


def may_move(before: TaskStatus, after: TaskStatus) -> bool:
    return after in TRANSITIONS[before]

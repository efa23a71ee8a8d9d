"""Learns that another process has ended: the editor, or whoever started us (K2)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import anyio

_POLL_SECONDS = 1.0


async def until_ended(process_id: int) -> None:
    """Returns when that process has ended, at once when there is none. A later one with its id is not taken for it."""
    started = start_time(process_id)
    if started is None:
        return
    try:
        handle = os.pidfd_open(process_id)
    except (AttributeError, OSError):
        await _poll(process_id, started)
        return
    try:
        if start_time(process_id) == started:
            await _readable(handle)
    finally:
        os.close(handle)


async def _readable(handle: int) -> None:
    """A pidfd becomes readable when its process ends."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(handle, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(handle)


async def _poll(process_id: int, started: str) -> None:
    while start_time(process_id) == started:  # noqa: ASYNC110 - there is nothing to wait for on such a system
        await anyio.sleep(_POLL_SECONDS)


def start_time(process_id: int) -> str | None:
    """Tells processes with the same id apart; None when there is none, or only a zombie."""
    try:
        fields = Path(f"/proc/{process_id}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except FileNotFoundError:
        return None if Path("/proc/self").exists() else _alive(process_id)
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def _alive(process_id: int) -> str | None:
    """Without /proc only the id is known."""
    try:
        os.kill(process_id, 0)
    except OSError:
        return None
    return "alive"

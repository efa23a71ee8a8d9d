"""Which processes a server started, so that a test can tell whether any is left."""

from __future__ import annotations

import asyncio
import contextlib
import os

import psutil


class ProcessWatch:
    """Knows descendants in two ways: by looking at the tree while the server runs, which finds those with a clean
    environment, and by a variable that children inherit, which finds those that were orphaned between two looks."""

    VARIABLE = "E2E_SERVER_TAG"
    INTERVAL = 0.2  # seconds between two looks

    def __init__(self, pid: int, tag: str) -> None:
        self._tag = tag
        self._root = psutil.Process(pid)
        self._seen: set[psutil.Process] = set()
        self._task = asyncio.ensure_future(self._keep_looking())

    async def _keep_looking(self) -> None:
        while self._root.is_running():
            self.look()
            await asyncio.sleep(self.INTERVAL)

    def look(self) -> None:
        """Notes the descendants of now."""
        with contextlib.suppress(psutil.Error):
            self._seen.update(self._root.children(recursive=True))

    async def left_behind(self, patience: float = 1.0) -> list[str]:
        """One line for each descendant that still runs after `patience` seconds. They are ended."""
        self._task.cancel()
        end = asyncio.get_running_loop().time() + patience
        while (left := self._alive()) and asyncio.get_running_loop().time() < end:  # no event for this
            await asyncio.sleep(0.05)
        lines = [_describe(process) for process in left]
        for process in left:
            _kill(process)
        return lines

    async def kill_all(self) -> None:
        """Ends the server and everything it started."""
        self._task.cancel()
        self.look()
        for process in (self._root, *self._alive()):
            _kill(process)
        await asyncio.sleep(0)

    def _alive(self) -> list[psutil.Process]:
        tagged = {process for process in psutil.process_iter() if self._is_tagged(process)}
        return [process for process in (self._seen | tagged) - {self._root} if _is_alive(process)]

    def _is_tagged(self, process: psutil.Process) -> bool:
        try:
            return process.pid != os.getpid() and process.environ().get(self.VARIABLE) == self._tag
        except (psutil.Error, OSError):
            return False


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _describe(process: psutil.Process) -> str:
    try:
        return f"{process.pid} {' '.join(process.cmdline())[:200]}"
    except psutil.Error:
        return str(process.pid)


def _kill(process: psutil.Process) -> None:
    with contextlib.suppress(psutil.Error):
        process.kill()

"""Lines that a person types, without blocking the event loop."""

from __future__ import annotations

import asyncio
import os
import threading


class Lines:
    """The thread starts with the first `next`. It uses os.read: a thread that is blocked in sys.stdin would hold a lock
    that the interpreter needs to end."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._thread: threading.Thread | None = None

    async def next(self) -> str | None:
        """The next line, without its end; None when there are no more. What a person at a terminal typed before now
        is thrown away: it cannot be an answer to a question that was not shown yet."""
        if self._thread is None:
            loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._read, args=(loop,), daemon=True)
            self._thread.start()
        while os.isatty(self._descriptor) and not self._queue.empty():
            if self._queue.get_nowait() is None:
                return None
        return await self._queue.get()

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        rest = b""
        while data := os.read(self._descriptor, 4096):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._pass_on(loop, line.decode(errors="replace").strip())
        self._pass_on(loop, None)

    def _pass_on(self, loop: asyncio.AbstractEventLoop, line: str | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._queue.put_nowait, line)

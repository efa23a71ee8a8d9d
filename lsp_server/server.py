"""Owns main: one task group around the reader, signals, the parent watch, and the shutdown in order.

The runtime is entered before the first message is read and left after the last: leaving ends agents and their
processes within seconds, so that nothing of ours outlives the editor (K2).
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup
from attrs import define, field

from agent_core.processes import LocalProcesses
from agent_core.repository import GitCommand
from agent_core.runtime import Runtime, open_runtime
from lsp_server.client_support import ClientSupport
from lsp_server.connections import CannotListen, SocketWriter, private_socket
from lsp_server.documents import Buffers, EditorFiles, EditorTarget, OpenDocuments
from lsp_server.framing import BadFrame
from lsp_server.methods.table import register
from lsp_server.process_watch import until_ended
from lsp_server.rpc import AgentProtocol, new_protocol
from lsp_server.session import EditorSession
from lsp_server.transport import AnsweredFilter, QueueWriter, open_reader, read_messages

logger = logging.getLogger(__name__)

_LAG_SECONDS = 0.05
_PR_SET_DUMPABLE = 4
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve_stdio(received: bytes, output: int, answered: object) -> int:
    """Serve the client whose first bytes are `received`; returns the exit code."""
    return _run(lambda: _Server().over_stdio(received, output, answered))


def serve_socket(path: Path) -> int:
    """Serve any number of clients on a private Unix socket, until a signal; returns the exit code."""
    return _run(lambda: _Server().over_socket(path))


def _keep_environment_private() -> None:
    """Commands of agents must not read our credentials from /proc (Linux; root may all the same)."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _run(serve: Callable[[], Coroutine[Any, Any, int]]) -> int:
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    gc.freeze()
    _keep_environment_private()

    async def main() -> int:
        return await serve()

    return asyncio.run(main())


@define(eq=False)
class _Server:
    """One runtime, and the connections to it."""

    exit_code: int = 0
    buffers: Buffers = field(factory=Buffers)
    runtime: Runtime = field(factory=lambda: Runtime(env=dict(os.environ), folders=()))
    _scope: anyio.CancelScope = field(factory=anyio.CancelScope)

    async def over_stdio(self, received: bytes, output: int, answered: object) -> int:
        writer, parent = AnsweredFilter(QueueWriter(output), answered), os.getppid()
        async with self._serving() as group:
            group.start_soon(self._stop_with, parent)
            await self._connection(await open_reader(received, 0), writer, self._stop_with)
            group.cancel_scope.cancel()
        writer.close()
        return self.exit_code

    async def over_socket(self, path: Path) -> int:
        """A client that goes takes no agent along; asks that nobody can answer any more are denied."""
        async with self._serving() as group:

            async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                group.start_soon(self._connected, reader, writer)

            try:
                listening = private_socket(path)
            except CannotListen as error:
                sys.stderr.write(f"agent-ls: {error}\n")
                self.exit_code = 1
                self._scope.cancel()
                return 1
            try:
                async with await asyncio.start_unix_server(connected, sock=listening, limit=1 << 26) as server:
                    await server.serve_forever()
            finally:
                path.unlink(missing_ok=True)
        return self.exit_code

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._connection(reader, SocketWriter(writer), None)
        except Exception:
            logger.exception("a connection failed")
        finally:
            self.exit_code = 0
            writer.close()

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[TaskGroup]:
        """The runtime is there as long as this lasts; signals end it."""
        files, target = EditorFiles(self.buffers), EditorTarget(self.buffers)
        opened = open_runtime(self.runtime, files=files, target=target, processes=LocalProcesses(), git=GitCommand())
        with self._scope:
            async with opened, anyio.create_task_group() as group:
                for number in SIGNALS:
                    asyncio.get_running_loop().add_signal_handler(number, self._scope.cancel)
                group.start_soon(_watch_lag)
                yield group

    async def _connection(self, reader: asyncio.StreamReader, writer: Writer, watch: Watch | None) -> None:
        """Serve one client until its stream ends or it says exit."""
        rpc = new_protocol()
        rpc.set_writer(writer)
        ended = anyio.Event()
        sessions: list[EditorSession] = []

        def leave(code: int) -> None:
            self.exit_code = code
            ended.set()

        rpc.on_exit = leave
        async with anyio.create_task_group() as group:
            rpc.on_initialize = lambda params: self._initialize(params, rpc, group, sessions, watch)
            try:
                await read_messages(reader, rpc.handle_body, stop=ended.is_set)
            except BadFrame as error:
                logger.error("the client's stream cannot be read any further: %s", error)
                self.exit_code = 1
            finally:
                if watch is None and not self._scope.cancel_called:  # else all ends: interrupted, not refused
                    for session in sessions:
                        session.detach()
                        self.buffers.sources.remove(session.documents)
                group.cancel_scope.cancel()

    def _initialize(
        self,
        params: dict[str, Any],
        rpc: AgentProtocol,
        group: TaskGroup,
        sessions: list[EditorSession],
        watch: Watch | None,
    ) -> None:
        if sessions:
            return
        options = params.get("initializationOptions")
        session = EditorSession(rpc, self.runtime, group, OpenDocuments(), ClientSupport.of(params))
        sessions.append(session)
        self.buffers.sources.append(session.documents)
        session.begin(params, options if isinstance(options, dict) else {})
        register(session)
        session.attach()
        editor = params.get("processId")
        if watch is not None and isinstance(editor, int) and editor > 0:
            group.start_soon(watch, editor)

    async def _stop_with(self, process_id: int) -> None:
        await until_ended(process_id)
        self._scope.cancel()


Writer = AnsweredFilter | SocketWriter
Watch = Callable[[int], Coroutine[Any, Any, None]]


async def _watch_lag() -> None:
    """Something blocked the loop: say so, because every agent felt it."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + 1.0
        await anyio.sleep(1.0)
        if (late := loop.time() - due) > _LAG_SECONDS:
            logger.info("the event loop was late by %d ms", round(late * 1000))

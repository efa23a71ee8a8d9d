"""Owns main: one task group around the reader, signals, the parent watch, and the shutdown in order.

The runtime is entered before the first message is read and left after the last: leaving ends agents and their
processes within seconds, so that nothing of ours outlives the editor (K2).
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from typing import Any

import anyio
from attrs import define, field

from agent_core.processes import LocalProcesses
from agent_core.repository import GitCommand
from agent_core.runtime import Runtime, open_runtime
from lsp_server.client_support import ClientSupport
from lsp_server.documents import EditorFiles, EditorTarget, OpenDocument, OpenDocuments
from lsp_server.framing import BadFrame
from lsp_server.methods.table import register
from lsp_server.process_watch import until_ended
from lsp_server.rpc import AgentProtocol, new_protocol
from lsp_server.session import EditorSession, workspace_folders
from lsp_server.transport import AnsweredFilter, QueueWriter, open_reader, read_messages

logger = logging.getLogger(__name__)

_LAG_SECONDS = 0.05
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve_stdio(received: bytes, output: int, answered: object) -> int:
    """Serve the client whose first bytes are `received`; returns the exit code."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    gc.freeze()
    return asyncio.run(_serve(received, output, answered))


async def _serve(received: bytes, output: int, answered: object) -> int:
    return await _Main(output, answered).run(received)


@define(eq=False)
class _Main:
    output: int
    answered: object
    exit_code: int = 0
    documents: OpenDocuments = field(factory=OpenDocuments)
    session: EditorSession | None = None
    _scope: anyio.CancelScope = field(factory=anyio.CancelScope)
    _stopping: bool = False

    async def run(self, received: bytes) -> int:
        rpc = new_protocol()
        rpc.set_writer(AnsweredFilter(QueueWriter(self.output), self.answered))
        runtime = Runtime(env=dict(os.environ), folders=())
        files, target = EditorFiles(self.documents, self._edit), EditorTarget(self.documents, self._edit)
        parent = os.getppid()
        opened = open_runtime(runtime, files=files, target=target, processes=LocalProcesses(), git=GitCommand())
        with self._scope:
            async with opened, anyio.create_task_group() as group:
                self._connect(rpc, runtime, group)
                self._handle_signals()
                group.start_soon(self._watch, parent)
                group.start_soon(_watch_lag)
                await self._read(received, rpc)
                group.cancel_scope.cancel()
        rpc.writer.close()
        return self.exit_code

    def _connect(self, rpc: AgentProtocol, runtime: Runtime, group: Any) -> None:
        def initialize(params: dict[str, Any]) -> None:
            if self.session is not None:
                return
            options = params.get("initializationOptions")
            configure(runtime, params, options if isinstance(options, dict) else {})
            session = EditorSession(rpc, runtime, group, self.documents, ClientSupport.of(params))
            self.session = session
            register(session)
            session.attach()
            editor = params.get("processId")
            if isinstance(editor, int) and editor > 0:
                group.start_soon(self._watch, editor)

        rpc.on_initialize = initialize
        rpc.on_exit = self._exit

    async def _read(self, received: bytes, rpc: AgentProtocol) -> None:
        reader = await open_reader(received, 0)
        try:
            await read_messages(reader, rpc.handle_body, stop=lambda: self._stopping)
        except BadFrame as error:
            logger.error("the client's stream cannot be read any further: %s", error)
            self.exit_code = 1

    def _exit(self, code: int) -> None:
        self.exit_code = code
        self._stop()

    def _stop(self) -> None:
        self._stopping = True
        self._scope.cancel()

    def _handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._stop)

    async def _edit(self, document: OpenDocument, text: str) -> str | None:
        if self.session is None:
            return "no editor is connected"
        return await self.session.client.edit(document, text)

    async def _watch(self, process_id: int) -> None:
        await until_ended(process_id)
        self._stop()


def configure(runtime: Runtime, params: dict[str, Any], options: dict[str, Any]) -> None:
    """What the editor says at the start (protocol.md, initializationOptions). Bad types count as not given."""
    settings, trusted, key = options.get("settings"), options.get("trusted"), options.get("apiKey")
    runtime.folders = workspace_folders(params)
    runtime.client_settings = settings if isinstance(settings, dict) else {}
    runtime.trusted = trusted if isinstance(trusted, bool) else None
    runtime.api_key = key if isinstance(key, str) and key else None


async def _watch_lag() -> None:
    """Something blocked the loop: say so, because every agent felt it."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + 1.0
        await anyio.sleep(1.0)
        if (late := loop.time() - due) > _LAG_SECONDS:
            logger.info("the event loop was late by %d ms", round(late * 1000))

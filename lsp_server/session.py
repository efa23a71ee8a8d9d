"""One connected editor: attaches to the runtime, follows its agents, and is the package's only mutable state."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup
from attrs import define, field
from lsprotocol import types

from agent_core.errors import NotAllowed
from agent_core.event_log import EventLog
from agent_core.runtime import Runtime
from agent_core.text import encodable
from lsp_server import convert
from lsp_server.client_support import ClientSupport
from lsp_server.documents import OpenDocuments, uri_to_path
from lsp_server.faults import ShownFaults, watch_files
from lsp_server.outbound import EditorClient
from lsp_server.plain_progress import PlainProgress
from lsp_server.progress import DeltaMerger
from lsp_server.prompts import EditorAsker
from lsp_server.rpc import AgentProtocol
from lsp_server.trusting import offer_trust

logger = logging.getLogger(__name__)

TICK_SECONDS = 0.05
BACKPRESSURE_BYTES = 1 << 20
"""Above so much unread output deltas are held back and merged, until the client reads again."""


@define(eq=False)
class EditorSession:
    """Lives from `initialize` to the end of the connection; `group` holds the tasks that follow agents."""

    rpc: AgentProtocol
    runtime: Runtime
    group: TaskGroup
    documents: OpenDocuments
    support: ClientSupport
    client: EditorClient = field(init=False)
    asker: EditorAsker = field(init=False)
    plain: PlainProgress = field(init=False)
    faults: ShownFaults = field(init=False)
    folders: tuple[Path, ...] = ()
    settings: dict[str, Any] = field(factory=dict)
    elsewhere: tuple[str, ...] = ()
    """URIs of the folders that the editor has open, when none of them is on this machine."""
    trusted: bool | None = None
    trusts: dict[Path, bool] = field(factory=dict)
    """What the person said of single folders since."""

    def __attrs_post_init__(self) -> None:
        self.client = EditorClient(self.rpc, self.support)
        self.asker = EditorAsker(self.client)
        self.plain = PlainProgress(self.client, self.runtime, self.group)
        self.faults = ShownFaults(self.rpc, self.runtime)
        self.documents.encoding = self.support.encoding
        self.documents.send_edit = self.client.edit

    def begin(self, params: dict[str, Any], options: dict[str, Any]) -> None:
        """What the editor says at the start (protocol.md, initializationOptions). Bad types count as not given."""
        settings, trusted, key = options.get("settings"), options.get("trusted"), options.get("apiKey")
        self.folders, self.elsewhere = workspace_folders(params)
        self.trusted = trusted if isinstance(trusted, bool) and not self.elsewhere else None
        self.settings = settings if isinstance(settings, dict) else {}
        if isinstance(key, str) and key:
            self.runtime.api_key = key
        self.tell_workspace()

    def tell_workspace(self) -> None:
        """Settings and trust are those of this editor's own folders: workspaces in one process share neither."""
        for folder in self.folders:
            self.runtime.open_folder(folder, encodable(self.settings), self.trusts.get(folder, self.trusted))

    def check_folder(self) -> None:
        """Nothing starts in another folder than the one that is open (L3)."""
        if self.elsewhere:
            raise NotAllowed(not_here(self.elsewhere))

    def change_folders(self, removed: set[Path], added: list[Path]) -> None:
        """A workspace without any folder keeps those that it had."""
        left = [folder for folder in self.folders if folder not in removed]
        new = (*left, *(path for path in added if path not in left))
        if new:
            for folder in removed - set(new):
                self.runtime.close_folder(folder)
            self.folders = new
        if added:
            self.elsewhere = ()
        self.tell_workspace()

    def attach(self) -> None:
        self.runtime.attach(self.asker)
        self.runtime.watch(self._watch)
        self.runtime.on_read.append(self.look_for_faults)

    def detach(self) -> None:
        self.runtime.on_read.remove(self.look_for_faults)
        self.runtime.unwatch(self._watch)
        self.runtime.detach(self.asker)

    async def begin_watching(self) -> None:
        """The faults of agent and settings files as they are, and from now on as they come and go."""
        if self.elsewhere:
            self.client.message(f"No agent can start here: {not_here(self.elsewhere)}", types.MessageType.Warning)
        await self.faults.show(self.folders)
        await watch_files(self.rpc, self.support, self.runtime, self.folders)
        for folder in self.folders:
            await offer_trust(self, folder)

    async def trust(self, folder: Path, trusted: bool) -> None:
        self.trusts[folder] = trusted
        await self.runtime.trust(folder, trusted)

    def look_for_faults(self) -> None:
        self.group.start_soon(self.faults.show, self.folders)

    def _watch(self, log: EventLog) -> None:
        self.group.start_soon(self._follow, log)

    async def pull_settings(self) -> None:
        """`workspace/configuration`, section agentLs: the answer replaces what initializationOptions said."""
        if not self.support.configuration:
            return
        params = types.ConfigurationParams(items=[types.ConfigurationItem(section="agentLs")])
        try:
            answer = await self.rpc.call(types.WORKSPACE_CONFIGURATION, params)
        except Exception as error:  # noqa: BLE001 - a client that fails here keeps what it said at the start
            logger.warning("the editor did not answer workspace/configuration: %s", error)
            return
        if isinstance(answer, list) and answer and isinstance(answer[0], dict) and answer[0]:
            self.settings = answer[0]
            self.tell_workspace()

    async def _follow(self, log: EventLog) -> None:
        """Durable events are sent only once they are in the transcript, so that what was sent can be replayed.

        A fault here costs the view of one agent, never the server.
        """
        try:
            if self.support.progress:
                await self._report(log)
            elif not self.support.agent:
                await self.plain.follow(log)
        except Exception:
            logger.exception("the progress of agent %s cannot be shown any more", log.agent_id)

    async def _report(self, log: EventLog) -> None:
        merger = DeltaMerger(self.support.text_deltas)
        async with anyio.create_task_group() as group:
            ticking = anyio.Event()
            group.start_soon(self._tick, log, merger, lambda: ticking)
            async for event in log.read(written=True):
                for each in merger.feed(event):
                    self.client.progress(convert.progress(each, log.state.info))
                if merger.holding:
                    ticking.set()
                    ticking = anyio.Event()
            group.cancel_scope.cancel()

    async def _tick(self, log: EventLog, merger: DeltaMerger, wake: Any) -> None:
        while True:
            await wake().wait()
            await anyio.sleep(TICK_SECONDS)
            while self.rpc.writer.pending_bytes > BACKPRESSURE_BYTES:  # noqa: ASYNC110 - the writer is a thread
                await anyio.sleep(TICK_SECONDS)
            for each in merger.flush():
                self.client.progress(convert.progress(each, log.state.info))


def workspace_folders(params: dict[str, Any]) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """From `workspaceFolders`, else `rootUri`, else `rootPath`; a client that names none works where it was started.
    Then the URIs of folders that are somewhere else, when there is no other."""
    folders = [folder.get("uri", "") for folder in params.get("workspaceFolders") or []]
    uris = folders or [params.get("rootUri") or ""]
    paths = [path for uri in uris if (path := uri_to_path(uri)) is not None]
    if not paths and params.get("rootPath"):
        paths = [Path(params["rootPath"])]
    if paths:
        return tuple(dict.fromkeys(paths)), ()
    return (Path.cwd(),), tuple(uri for uri in uris if uri)


def not_here(uris: tuple[str, ...]) -> str:
    """Why nothing can be done for an editor whose folders are on another machine, and what to do."""
    return (
        f"{', '.join(uris)} is no folder of this machine; start agent-ls where the folder is (with the remote "
        "extension of the editor, or in WSL itself), so that its URI begins with file:///"
    )

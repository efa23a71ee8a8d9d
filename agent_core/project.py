"""One workspace folder: its configuration (read again when a file changed), its conversation, its grants, its state."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
from attrs import define, field

from agent_core.ids import AgentId, ConversationId, new_conversation_id
from agent_core.loading.configuration import (
    Configuration,
    Project,
    config_dir,
    home_dir,
    load,
    settings_files,
    state_dir,
)
from agent_core.loading.layers import Layer, Level
from agent_core.permissions.grants import SessionGrants
from agent_core.permissions.types import Destination
from agent_core.transcript.index import TranscriptIndex
from agent_core.transcript.writer import TranscriptFiles
from agent_core.worktree import project_slug, worktrees_folder

_LEVELS: Mapping[Destination, Level] = {
    "localSettings": "local",
    "projectSettings": "project",
    "userSettings": "user",
}


@define(eq=False)
class ProjectState:
    """`client` are the editor's settings, `trusted` its word on this folder (None: as decided before). `on_read` is
    called when the configuration was read anew."""

    project: Project
    state: Path
    env: Mapping[str, str]
    client: Mapping[str, Any] = field(factory=dict)
    trusted: bool | None = None
    cli_agents: Mapping[str, Any] = field(factory=dict)
    cli_settings: Layer | None = None
    on_read: Callable[[], None] = lambda: None
    conversation: ConversationId = field(factory=new_conversation_id)
    _grants: dict[ConversationId, SessionGrants] = field(factory=dict)
    _loaded: tuple[object, Configuration] | None = None
    _settings_key: object = None
    _index: TranscriptIndex | None = None

    @property
    def home(self) -> Path:
        return home_dir(self.env)

    @property
    def sessions(self) -> Path:
        return self.state / "projects" / project_slug(self.project.root)

    @property
    def index(self) -> TranscriptIndex:
        if self._index is None:
            self._index = TranscriptIndex(self.sessions)
        return self._index

    @property
    def worktrees(self) -> Path:
        location = self.configuration.settings.worktree_location
        root = self.project.root
        return location / project_slug(root) if location else worktrees_folder(self.state, root)

    @property
    def loaded(self) -> bool:
        return self._loaded is not None

    @property
    def configuration(self) -> Configuration:
        """As last loaded; `refresh` comes first."""
        assert self._loaded is not None, "refresh() was not awaited"
        return self._loaded[1]

    @property
    def destinations(self) -> tuple[Destination, ...]:
        """Where an answer may be stored so that it counts: files that are read, trusted and not broken (B4). An allow
        rule of a project file waits for trust."""
        configuration = self.configuration
        if configuration.settings.policy.managed_rules_only:
            return ("session",)
        sound = {layer.level for layer in configuration.layers if layer.state == "read"}
        found = [name for name, level in _LEVELS.items() if level in sound]
        own = [name for name in found if name == "userSettings" or configuration.trusted]
        return ("session", *own)

    def settings_file(self, destination: Destination | None) -> Path | None:
        """None for the session."""
        level = _LEVELS.get(destination) if destination else None
        return next((path for path, _, each in settings_files(self.project, self.env) if each == level), None)

    def grants_of(self, conversation: ConversationId) -> SessionGrants:
        if conversation not in self._grants:
            self._grants[conversation] = SessionGrants.load(self.sessions / conversation / "grants.json")
        return self._grants[conversation]

    def files_of(self, agent_id: AgentId, conversation: ConversationId | None = None) -> TranscriptFiles:
        folder = self.sessions / (conversation or self.conversation) / "subagents"
        return TranscriptFiles(folder / f"agent-{agent_id}.jsonl", folder / f"agent-{agent_id}.md")

    async def refresh(self) -> Configuration:
        """Read the files again if one of them, or what the editor said, has changed."""
        before = self._loaded
        await anyio.to_thread.run_sync(self._refresh)
        if self._loaded is not before:
            self.on_read()
        return self.configuration

    async def refresh_settings(self) -> Configuration:
        """The same when a settings file has changed, for use before each decision: looking costs microseconds."""
        if self._settings_key != _stats([path for path, _, _ in settings_files(self.project, self.env)]):
            return await self.refresh()
        return self.configuration

    def _refresh(self) -> None:
        settings_key = _stats([path for path, _, _ in settings_files(self.project, self.env)])
        key = (settings_key, _signature(self.project, self.env), repr(self.client), self.trusted)
        if self._loaded is None or self._loaded[0] != key:
            loaded = load(
                self.project,
                env=self.env,
                client=self.client,
                trusted=self.trusted,
                cli_agents=self.cli_agents,
                cli_settings=self.cli_settings,
                earlier=self._loaded[1] if self._loaded else None,
            )
            self._loaded = (key, loaded)
        self._settings_key = settings_key


def find_project(root: Path) -> Project:
    """`top` is the nearest folder upwards that has a `.git` entry, for finding configuration only."""
    top = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
    return Project(root, top, main_checkout(top))


def main_checkout(top: Path) -> Path | None:
    """The main checkout of the linked worktree `top`, None of anything else. The folder itself only claims to be one:
    it counts when the repository knows of it as well (gitrepository-layout(5))."""
    link = top / ".git"
    try:
        if not link.is_file():
            return None
        own = _named(link, "gitdir: ")
        if own.parent.name != "worktrees" or _named(own / "gitdir").resolve() != link.resolve():
            return None
        common = own.parent.parent
        return common.parent if common.name == ".git" and common.is_dir() else None
    except (OSError, ValueError):
        return None


def _named(file: Path, prefix: str = "") -> Path:
    """The path that a small file of git's holds, which may be relative to it."""
    return (file.parent / os.fsdecode(file.read_bytes()).strip().removeprefix(prefix)).resolve()


def _signature(project: Project, env: Mapping[str, str]) -> object:
    """Of the agents' files, and of where trust is written."""
    home = config_dir(env)
    files = [home_dir(env) / ".claude.json", state_dir(env) / "trust.json"]
    folders = [project.root, *project.root.parents]
    for folder in folders[: folders.index(project.top) + 1]:
        files += sorted((folder / ".claude" / "agents").rglob("*.md"))
    files += sorted((home / "agents").rglob("*.md"))
    return _stats(files)


def _stats(files: Sequence[Path]) -> object:
    return tuple(_stat(path) for path in files)


def _stat(path: Path) -> object:
    """A change of rights counts too, and one by renaming within a tick of the clock."""
    try:
        stat = path.stat()
    except OSError as error:
        return (str(path), error.errno)
    return (str(path), stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino)

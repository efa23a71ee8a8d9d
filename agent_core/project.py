"""One workspace folder: its configuration (read again when a file changed), its conversation, its grants, its state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
from attrs import define, field

from agent_core.ids import AgentId, ConversationId, new_conversation_id
from agent_core.loading.configuration import Configuration, Project, config_dir, home_dir, load
from agent_core.permissions.grants import SessionGrants
from agent_core.transcript.writer import TranscriptFiles
from agent_core.worktree import project_slug, worktrees_folder


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
    on_read: Callable[[], None] = lambda: None
    conversation: ConversationId = field(factory=new_conversation_id)
    _grants: dict[ConversationId, SessionGrants] = field(factory=dict)
    _loaded: tuple[object, Configuration] | None = None

    @property
    def home(self) -> Path:
        return home_dir(self.env)

    @property
    def sessions(self) -> Path:
        return self.state / "projects" / project_slug(self.project.root)

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
    def local_settings(self) -> Path:
        return self.project.top / ".claude" / "settings.local.json"

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

    def _refresh(self) -> None:
        key = (_signature(self.project, self.env), repr(self.client), self.trusted)
        if self._loaded is None or self._loaded[0] != key:
            cli = self.cli_agents
            loaded = load(self.project, env=self.env, client=self.client, trusted=self.trusted, cli_agents=cli)
            self._loaded = (key, loaded)


def find_project(root: Path) -> Project:
    """`top` is the nearest folder upwards that has a `.git` entry, for finding configuration only."""
    top = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
    return Project(root, top)


def _signature(project: Project, env: Mapping[str, str]) -> tuple[tuple[str, int, int], ...]:
    home = config_dir(env)
    files = [project.top / ".claude" / name for name in ("settings.json", "settings.local.json")]
    files += [home / "settings.json", home_dir(env) / ".claude.json"]
    folders = [project.root, *project.root.parents]
    for folder in folders[: folders.index(project.top) + 1]:
        files += sorted((folder / ".claude" / "agents").rglob("*.md"))
    files += sorted((home / "agents").rglob("*.md"))
    return tuple((str(path), stat.st_mtime_ns, stat.st_size) for path in files if (stat := _stat(path)))


def _stat(path: Path) -> Any:
    try:
        return path.stat()
    except OSError:
        return None

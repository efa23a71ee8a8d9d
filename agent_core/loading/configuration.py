"""Everything that the files around one project say, read in one go: the entry point of this package."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from agent_core.definitions import Definitions, Problem
from agent_core.guidance.builtin_agents import builtin_definitions
from agent_core.loading.agent_files import merge, read_folder, read_mapping
from agent_core.loading.hook_settings import HookSettings, read_hooks
from agent_core.loading.layers import Layer, Level, read_layer
from agent_core.loading.settings_files import combine
from agent_core.loading.trust import trusted_before, waiting
from agent_core.permissions.types import PermissionRule
from agent_core.settings import Settings

MANAGED = Path("/etc/claude-code/managed-settings.json")
"""No variable and no option names another place: what policy says is not up to those whom it restricts."""


@frozen
class Project:
    """`root` is the workspace folder, `top` the repository's root or the folder itself outside a repository. `main` is
    the main checkout when `top` is a linked worktree of it: the word of the person on it, and its local settings,
    count in its worktrees too."""

    root: Path
    top: Path
    linked_to: Path | None = None

    @property
    def main(self) -> Path:
        return self.linked_to or self.top


@frozen
class Configuration:
    """`layers` are the settings as they were read, highest first; `idle` are rules that are not in force, each with the
    reason."""

    settings: Settings
    definitions: Definitions
    problems: tuple[Problem, ...]
    trusted: bool
    layers: tuple[Layer, ...] = ()
    idle: tuple[tuple[PermissionRule, str], ...] = ()
    waiting: tuple[str, ...] = ()
    """What the folder's own files want, in words, while it is not trusted."""
    hooks: HookSettings = field(factory=HookSettings)


def load(
    project: Project,
    *,
    env: Mapping[str, str],
    client: Mapping[str, Any],
    trusted: bool | None,
    cli_agents: Mapping[str, Any] | None = None,
    cli_settings: Layer | None = None,
    earlier: Configuration | None = None,
) -> Configuration:
    """Never raises for what files say. `trusted` None: as the person decided for this folder before. What `earlier`
    read of a file that is broken now goes on."""
    problems: list[Problem] = []
    home = config_dir(env)
    if trusted is None:
        trusted = trusted_before(project.main, state_dir(env), home_dir(env))
    layers = _layers(project, env, client, cli_settings, earlier, problems)
    combined = combine(layers, env, home_dir(env), trusted, problems)
    settings = combined.settings
    hooks = read_hooks(layers, settings.policy, problems)
    folders = [read_folder(folder / ".claude" / "agents", "project") for folder in _upward(project)]
    cli = read_mapping(cli_agents or {}, Path("--agents"), "cli")
    groups = [cli, *folders, read_folder(home / "agents", "user"), (builtin_definitions(settings.explore_model), [])]
    definitions = merge(groups)
    found = (*problems, *definitions.problems)
    waits = () if trusted else waiting(layers, definitions)
    return Configuration(settings, definitions, found, trusted, layers, combined.idle, waits, hooks)


def settings_files(project: Project, env: Mapping[str, str]) -> tuple[tuple[Path, Path, Level], ...]:
    """(file, where its rules' `/path` starts, level), highest first."""
    claude, home = project.top / ".claude", config_dir(env)
    return (
        (MANAGED, Path("/"), "managed"),
        (project.main / ".claude" / "settings.local.json", project.root, "local"),
        (claude / "settings.json", project.top, "project"),
        (home / "settings.json", home, "user"),
    )


def _layers(
    project: Project,
    env: Mapping[str, str],
    client: Mapping[str, Any],
    cli_settings: Layer | None,
    earlier: Configuration | None,
    problems: list[Problem],
) -> tuple[Layer, ...]:
    known = {layer.name: layer for layer in earlier.layers} if earlier else {}
    managed, *others = (
        read_layer(path, anchor, level, problems, known.get(str(path)))
        for path, anchor, level in settings_files(project, env)
    )
    own = Layer("the editor's settings", client, project.root, "client")
    return (managed, *((cli_settings,) if cli_settings else ()), own, *others)


def config_dir(env: Mapping[str, str]) -> Path:
    return Path(env["CLAUDE_CONFIG_DIR"]) if env.get("CLAUDE_CONFIG_DIR") else home_dir(env) / ".claude"


def home_dir(env: Mapping[str, str]) -> Path:
    return Path(env["HOME"]) if env.get("HOME") else Path.home()


def state_dir(env: Mapping[str, str]) -> Path:
    """Never inside a repository: AGENT_LS_STATE_DIR, else XDG_STATE_HOME/agent-ls."""
    if override := env.get("AGENT_LS_STATE_DIR"):
        return Path(override)
    state = env.get("XDG_STATE_HOME")
    return (Path(state) if state else home_dir(env) / ".local" / "state") / "agent-ls"


def _upward(project: Project) -> list[Path]:
    """The working folder and its parents up to the repository root, the nearest first."""
    folders = [project.root, *project.root.parents]
    return folders[: folders.index(project.top) + 1] if project.top in folders else [project.root]

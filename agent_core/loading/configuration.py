"""Everything that the files around one project say, read in one go: the entry point of this package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from agent_core.definitions import Definitions, Problem
from agent_core.guidance.builtin_agents import builtin_definitions
from agent_core.loading.agent_files import merge, read_folder, read_mapping
from agent_core.loading.hook_settings import HookSettings, read_hooks
from agent_core.loading.settings_files import Layer, combine, read_layer
from agent_core.settings import Settings

MANAGED = Path("/etc/claude-code/managed-settings.json")


@frozen
class Project:
    """`root` is the workspace folder, `top` the repository's root or the folder itself outside a repository."""

    root: Path
    top: Path


@frozen
class Configuration:
    settings: Settings
    definitions: Definitions
    problems: tuple[Problem, ...]
    trusted: bool
    hooks: HookSettings = field(factory=HookSettings)


def load(
    project: Project,
    *,
    env: Mapping[str, str],
    client: Mapping[str, Any],
    trusted: bool | None,
    cli_agents: Mapping[str, Any] | None = None,
) -> Configuration:
    """Never raises for what files say. `trusted` None: as the person decided for this folder before."""
    problems: list[Problem] = []
    home = config_dir(env)
    if trusted is None:
        trusted = _trusted_before(project, env)
    claude = project.top / ".claude"
    layers = [
        read_layer(MANAGED, Path("/"), False, problems),
        Layer("the editor's settings", client, project.root, False),
        read_layer(claude / "settings.local.json", project.root, True, problems),
        read_layer(claude / "settings.json", project.top, True, problems),
        read_layer(home / "settings.json", home, False, problems),
    ]
    settings = combine(layers, env, trusted, problems)
    hooks = read_hooks(layers[0], layers[1], layers[2:], trusted, problems)
    folders = [read_folder(folder / ".claude" / "agents", "project") for folder in _upward(project)]
    cli = read_mapping(cli_agents or {}, Path("--agents"), "cli")
    groups = [cli, *folders, read_folder(home / "agents", "user"), (builtin_definitions(settings.explore_model), [])]
    definitions = merge(groups)
    return Configuration(settings, definitions, (*problems, *definitions.problems), trusted, hooks)


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


def _trusted_before(project: Project, env: Mapping[str, str]) -> bool:
    try:
        known = json.loads((home_dir(env) / ".claude.json").read_text("utf-8-sig"))
        entry = known["projects"][str(project.top)]
        return entry["hasTrustDialogAccepted"] is True
    except (OSError, ValueError, KeyError, TypeError):
        return False

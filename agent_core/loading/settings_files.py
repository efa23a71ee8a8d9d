"""Settings files to `Settings` and permission rules, highest first: managed, client, local, project, user.

A broken file or entry is skipped and named. Deny and ask rules of every file hold, everything else of project files
waits for trust; `baseUrl` is never taken from project files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from attrs import frozen

from agent_core.definitions import Problem
from agent_core.model.providers import PROVIDERS
from agent_core.permissions.rules import parse_rule
from agent_core.permissions.types import Behavior, PermissionMode, PermissionRule
from agent_core.settings import BadSetting, Settings, dollars, env_flag, flag, one_of, prices, string, whole

_BEHAVIORS: tuple[Behavior, ...] = ("deny", "ask", "allow")
_MODES = ("default", "acceptEdits", "plan", "dontAsk", "bubble", "inherit")


Level = Literal["managed", "command line", "client", "local", "project", "user"]


@frozen
class Layer:
    """One source. `name` is its path, or what people call it; `anchor` is where its rules' `/path` starts."""

    name: str
    values: Mapping[str, Any]
    anchor: Path
    level: Level

    @property
    def from_project(self) -> bool:
        """What it frees waits for trust."""
        return self.level in ("local", "project")


def read_layer(path: Path, anchor: Path, level: Level, problems: list[Problem]) -> Layer:
    """An absent file is an empty layer; a broken one too, and it is reported."""
    values: Any = {}
    try:
        values = json.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        pass
    except json.JSONDecodeError as error:
        problems.append(Problem(path, error.lineno - 1, 1, f"not valid JSON, so the file is skipped: {error.msg}"))
    except (OSError, UnicodeDecodeError) as error:
        problems.append(Problem(path, 0, 1, f"cannot be read: {error}"))
    if not isinstance(values, dict):
        problems.append(Problem(path, 0, 1, "must hold a JSON object; the file is skipped"))
        values = {}
    return Layer(str(path), values, anchor, level)


def combine(layers: list[Layer], env: Mapping[str, str], trusted: bool, problems: list[Problem]) -> Settings:
    """`layers` highest first. BadSetting never leaves: the entry is reported and the next layer's value counts."""
    values: dict[str, Any] = {}
    for layer in reversed(layers):
        if layer.from_project and not trusted:
            continue  # its deny and ask rules hold all the same, see `_rules`
        hidden = {"baseUrl", "provider", "apiKeyHelper"} if layer.from_project else set()
        values.update(_checked({k: v for k, v in layer.values.items() if k not in hidden}, layer, problems))
    rules = tuple(rule for layer in layers for rule in _rules(layer, trusted, problems))
    return _settings(values, env, rules, _default_mode(layers, trusted, problems))


def _checked(values: dict[str, Any], layer: Layer, problems: list[Problem]) -> dict[str, Any]:
    good: dict[str, Any] = {}
    for name, value in values.items():
        try:
            _settings({name: value}, {}, (), None)
        except BadSetting as error:
            problems.append(Problem(Path(layer.name), 0, 2, str(error)))
        else:
            good[name] = value
    return good


def _settings(
    values: Mapping[str, Any], env: Mapping[str, str], rules: tuple[PermissionRule, ...], mode: PermissionMode | None
) -> Settings:
    worktree = values.get("worktree") or {}
    if not isinstance(worktree, dict):
        raise BadSetting(f"the setting worktree must be an object, not {worktree!r}")
    location = string(worktree, "location", None)
    return Settings(
        model=string(values, "model", env.get("ANTHROPIC_MODEL") or "sonnet") or "sonnet",
        agent=string(values, "agent", None),
        base_url=string(values, "baseUrl", None),
        provider=one_of(values, "provider", "environment", ("environment", *PROVIDERS)),
        default_permission_mode=one_of(values, "defaultPermissionMode", "acceptEdits", _MODES),
        max_concurrent_agents=_env_whole(env, "CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS")
        or whole(values, "maxConcurrentAgents", 20, 1),
        max_depth=_env_whole(env, "CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH") or whole(values, "maxDepth", 1, 0),
        worktree_base=one_of(worktree, "base", "head", ("head",)),
        worktree_location=Path(location).expanduser() if location else None,
        explore_model=string(values, "exploreModel", "haiku") or "haiku",
        thinking_for_agents=flag(values, "thinkingForAgents", False),
        thinking_tokens=_env_whole(env, "MAX_THINKING_TOKENS"),
        forking=_forking(env) or one_of(values, "forking", "explicit", ("explicit", "on", "off")),
        default_background=flag(values, "defaultBackground", False),
        auto_background_ms=whole(values, "autoBackgroundMs", 120_000, 0),
        stagger_ms=whole(values, "staggerMs", 5_000, 0),
        agent_list_attachment=flag(values, "agentListAttachment", False),
        parallel_guidance=flag(values, "parallelGuidance", True),
        progress_summaries=flag(values, "progressSummaries", False),
        coordinator=env_flag(env, "CLAUDE_CODE_COORDINATOR_MODE") or flag(values, "coordinator", False),
        assistant=flag(values, "assistant", False),
        proactive=flag(values, "proactive", False),
        max_retries=_env_whole(env, "CLAUDE_CODE_MAX_RETRIES") if "CLAUDE_CODE_MAX_RETRIES" in env else 10,
        max_output_tokens=_env_whole(env, "CLAUDE_CODE_MAX_OUTPUT_TOKENS") or 32_000,
        prices=prices(values, "prices"),
        budget_usd=dollars(values, "budgetUsd"),
        rules=rules,
        default_mode=mode,
    )


def _env_whole(env: Mapping[str, str], name: str) -> int:
    text = env.get(name, "")
    return int(text) if text.isdecimal() else 0


def _forking(env: Mapping[str, str]) -> str | None:
    """SEL-4: the variable decides for every kind of session, where it is set."""
    if not env.get("CLAUDE_CODE_FORK_SUBAGENT"):
        return None
    return "on" if env_flag(env, "CLAUDE_CODE_FORK_SUBAGENT") else "off"


def _rules(layer: Layer, trusted: bool, problems: list[Problem]) -> list[PermissionRule]:
    permissions = layer.values.get("permissions") or {}
    if not isinstance(permissions, dict):
        problems.append(Problem(Path(layer.name), 0, 1, "permissions must be an object; it is skipped"))
        return []
    rules: list[PermissionRule] = []
    for behavior in _BEHAVIORS:
        entries = permissions.get(behavior, [])
        for entry in entries if isinstance(entries, list) else [entries]:
            rule = parse_rule(entry, behavior, layer.name, layer.anchor) if isinstance(entry, str) else None
            if rule is None:
                text = f"permissions.{behavior} holds {entry!r}, which is no rule; write Tool or Tool(specifier)"
                problems.append(Problem(Path(layer.name), 0, 2, text))
            elif behavior != "allow" or trusted or not layer.from_project:
                rules.append(rule)
    return rules


def _default_mode(layers: list[Layer], trusted: bool, problems: list[Problem]) -> PermissionMode | None:
    for layer in layers:
        permissions = layer.values.get("permissions")
        value = permissions.get("defaultMode") if isinstance(permissions, dict) else None
        if value is None:
            continue
        try:
            mode = PermissionMode("default" if value == "manual" else value)
        except ValueError:
            problems.append(Problem(Path(layer.name), 0, 2, f"permissions.defaultMode {value!r} is no permission mode"))
            continue
        narrow = mode in (PermissionMode.DEFAULT, PermissionMode.PLAN, PermissionMode.DONT_ASK)
        if narrow or trusted or not layer.from_project:
            return mode
    return None

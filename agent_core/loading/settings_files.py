"""Layers of settings to one `Settings`, highest first: managed, command line, client, local, project, user.

A broken file or entry is skipped and named. Deny and ask rules of every file hold, everything else of project files
waits for trust; `baseUrl` is never taken from project files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from agent_core.definitions import BASES, BaseKind, Problem
from agent_core.loading.layers import Layer
from agent_core.loading.permission_settings import additional_directories, default_mode, policy_of, rules_of
from agent_core.model.providers import PROVIDERS
from agent_core.permissions.types import PermissionRule
from agent_core.settings import (
    BadSetting,
    Furnishing,
    Settings,
    dollars,
    env_flag,
    flag,
    one_of,
    prices,
    string,
    texts,
    whole,
)

_MODES = ("default", "acceptEdits", "plan", "dontAsk", "bubble", "inherit")


@frozen
class Combined:
    """`idle` are rules that are not in force, each with the reason."""

    settings: Settings
    idle: tuple[tuple[PermissionRule, str], ...]


def combine(
    layers: Sequence[Layer], env: Mapping[str, str], home: Path, trusted: bool, problems: list[Problem]
) -> Combined:
    """`layers` highest first. BadSetting never leaves: the entry is reported and the next layer's value counts."""
    values: dict[str, Any] = {}
    for layer in reversed(layers):
        if layer.from_project and not trusted:
            continue  # its deny and ask rules hold all the same
        hidden = {"baseUrl", "provider", "apiKeyHelper"} if layer.from_project else set()
        values.update(_checked({k: v for k, v in layer.values.items() if k not in hidden}, layer, problems))
    policy = policy_of(layers, trusted, problems)
    permissions = rules_of(layers, policy, trusted, problems)
    settings = evolve(
        _settings(values, env),
        rules=tuple(permissions.rules),
        default_mode=default_mode(layers, policy, trusted, problems),
        additional_directories=additional_directories(layers, home, trusted, problems),
        policy=policy,
    )
    return Combined(settings, tuple(permissions.idle))


def _checked(values: dict[str, Any], layer: Layer, problems: list[Problem]) -> dict[str, Any]:
    good: dict[str, Any] = {}
    for name, value in values.items():
        try:
            _settings({name: value}, {})
        except BadSetting as error:
            problems.append(layer.problem(str(error), name))
        else:
            good[name] = value
    return good


def _settings(values: Mapping[str, Any], env: Mapping[str, str]) -> Settings:
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
        worktree_base=_base(worktree),
        worktree_location=Path(location).expanduser() if location else None,
        furnishing=Furnishing(
            texts(worktree, "symlinkDirectories"),
            texts(worktree, "sparsePaths"),
            submodules=flag(worktree, "submodules", False),
        ),
        cleanup_days=whole(values, "cleanupPeriodDays", 30, 1),
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
        classify_handoff=flag(values, "classifyHandoff", False),
        coordinator=env_flag(env, "CLAUDE_CODE_COORDINATOR_MODE") or flag(values, "coordinator", False),
        assistant=flag(values, "assistant", False),
        proactive=flag(values, "proactive", False),
        max_retries=_env_whole(env, "CLAUDE_CODE_MAX_RETRIES") if "CLAUDE_CODE_MAX_RETRIES" in env else 10,
        max_output_tokens=_env_whole(env, "CLAUDE_CODE_MAX_OUTPUT_TOKENS") or 32_000,
        prices=prices(values, "prices"),
        budget_usd=dollars(values, "budgetUsd"),
    )


def _base(worktree: Mapping[str, Any]) -> BaseKind:
    """`baseRef` is what other tools call it."""
    name = "base" if "base" in worktree else "baseRef"
    chosen = one_of(worktree, name, "head", BASES)
    return next(each for each in BASES if each == chosen)


def _env_whole(env: Mapping[str, str], name: str) -> int:
    text = env.get(name, "")
    return int(text) if text.isdecimal() else 0


def _forking(env: Mapping[str, str]) -> str | None:
    """SEL-4: the variable decides for every kind of session, where it is set."""
    if not env.get("CLAUDE_CODE_FORK_SUBAGENT"):
        return None
    return "on" if env_flag(env, "CLAUDE_CODE_FORK_SUBAGENT") else "off"

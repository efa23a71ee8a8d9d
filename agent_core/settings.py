"""The product's own settings as one frozen value (protocol.md, settings table); layers are merged in `loading`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from agent_core.definitions import BaseKind
from agent_core.model.prices import Price
from agent_core.permissions.types import PermissionMode, PermissionRule


class BadSetting(ValueError):
    """Names the setting, the value and what is allowed."""


@frozen
class Policy:
    """What whoever manages the machine forbids. `bypass_disabled` may come from any file, since it only restricts;
    `hooks_disabled` speaks of managed hooks too."""

    bypass_disabled: bool = False
    managed_rules_only: bool = False
    hooks_disabled: bool = False
    managed_hooks_only: bool = False


@frozen
class Furnishing:
    """What a new worktree gets besides the files of git, and which of those: with `sparse`, the files at the top and
    what is in these folders. `linked` are folders relative to the checkout, too; `include`: whether its
    `.worktreeinclude` counts."""

    linked: tuple[str, ...] = ()
    sparse: tuple[str, ...] = ()
    include: bool = True
    submodules: bool = False


@frozen
class Settings:
    """Defaults are those of the table. `max_retries` counts further attempts after the first; `auto_background_ms` and
    `stagger_ms` are off at 0."""

    model: str = "sonnet"
    agent: str | None = None
    base_url: str | None = None
    provider: str = "environment"
    default_permission_mode: str = "acceptEdits"
    max_concurrent_agents: int = 20
    max_depth: int = 1
    worktree_base: BaseKind = "head"
    worktree_location: Path | None = None
    furnishing: Furnishing = Furnishing()
    cleanup_days: int = 30
    explore_model: str = "haiku"
    thinking_for_agents: bool = False
    thinking_tokens: int = 0
    forking: str = "explicit"
    default_background: bool = False
    auto_background_ms: int = 120_000
    stagger_ms: int = 5_000
    agent_list_attachment: bool = False
    parallel_guidance: bool = True
    progress_summaries: bool = False
    classify_handoff: bool = False
    coordinator: bool = False
    assistant: bool = False
    proactive: bool = False
    max_retries: int = 10
    max_output_tokens: int = 32_000
    prices: Mapping[str, Price] = field(factory=dict)
    budget_usd: float | None = None
    rules: tuple[PermissionRule, ...] = ()
    default_mode: PermissionMode | None = None
    additional_directories: tuple[Path, ...] = ()
    policy: Policy = Policy()


def string(values: Mapping[str, Any], name: str, default: str | None) -> str | None:
    value = values.get(name)
    if value is None:
        return default
    if not isinstance(value, str) or not value.strip():
        raise BadSetting(f"the setting {name} must be a text, not {value!r}")
    return value.strip()


def dollars(values: Mapping[str, Any], name: str) -> float | None:
    value = values.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value <= 0):
        raise BadSetting(f"the setting {name} must be a number of US dollars above 0, not {value!r}")
    return value


def prices(values: Mapping[str, Any], name: str) -> dict[str, Price]:
    """`{"opus": {"input": 5, "output": 25}}`, dollars for a million tokens; `cacheRead`, `cacheWrite` are a tenth and
    five quarters of the input where they are left out."""
    found = values.get(name) or {}
    if not isinstance(found, dict):
        raise BadSetting(f"the setting {name} must be an object of models and their prices, not {found!r}")
    return {model: _price(f"{name}.{model}", entry) for model, entry in found.items()}


def _price(name: str, entry: Any) -> Price:
    if not isinstance(entry, dict):
        raise BadSetting(f"the setting {name} must be an object with input and output, not {entry!r}")
    given = {part: dollars(entry, part) for part in ("input", "output", "cacheRead", "cacheWrite")}
    input, output = given["input"], given["output"]
    if input is None or output is None:
        raise BadSetting(f"the setting {name} must name input and output, in dollars for a million tokens")
    return Price(input, output, given["cacheRead"] or input / 10, given["cacheWrite"] or input * 1.25)


def texts(values: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = values.get(name) or []
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise BadSetting(f"the setting {name} must be a list of texts, not {found!r}")
    return tuple(found)


def whole(values: Mapping[str, Any], name: str, default: int, least: int) -> int:
    value = values.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadSetting(f"the setting {name} must be a whole number of at least {least}, not {value!r}")
    return value


def env_flag(env: Mapping[str, str], name: str) -> bool:
    return env.get(name, "").lower() in ("1", "true", "yes", "on")


def flag(values: Mapping[str, Any], name: str, default: bool) -> bool:
    value = values.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise BadSetting(f"the setting {name} must be true or false, not {value!r}")
    return value


def one_of(values: Mapping[str, Any], name: str, default: str, allowed: tuple[str, ...]) -> str:
    value = string(values, name, default)
    if value not in allowed:
        raise BadSetting(f"the setting {name} must be one of {', '.join(allowed)}, not {value!r}")
    return str(value)

"""The `permissions` of all layers: rules, mode, folders, and what managed policy forbids.

Restrictions of every layer hold; what frees something waits for trust in project layers. A bad entry is skipped and
named with its line, a bad restriction counts as set.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import define, field

from agent_core.definitions import Problem
from agent_core.loading.layers import Layer
from agent_core.permissions.rule_faults import fault
from agent_core.permissions.rules import parse_rule
from agent_core.permissions.types import Behavior, PermissionMode, PermissionRule
from agent_core.settings import Policy

_BEHAVIORS: tuple[Behavior, ...] = ("deny", "ask", "allow")
WAITS, NOT_MANAGED = "waits until the folder is trusted", "managed policy takes allow rules from managed settings alone"


@define
class Permissions:
    """`idle` are rules that are not in force, each with the reason."""

    rules: list[PermissionRule] = field(factory=list)
    idle: list[tuple[PermissionRule, str]] = field(factory=list)


def policy_of(layers: Sequence[Layer], trusted: bool, problems: list[Problem]) -> Policy:
    """A managed file that cannot be read, and never could, forbids all that policy can forbid. Hooks, which may be the
    user's guards, are switched off by a trusted folder only."""
    managed = [layer for layer in layers if layer.level == "managed"]
    others = [layer for layer in layers if layer.level != "managed" and (trusted or not layer.from_project)]
    if any(layer.state == "unknown" for layer in managed):
        return Policy(True, True, True, True)
    return Policy(
        bypass_disabled=True in [_bypass_disabled(layer, problems) for layer in layers],
        managed_rules_only=_restricted(managed, "allowManagedPermissionRulesOnly", problems),
        hooks_disabled=_restricted(managed, "disableAllHooks", problems),
        managed_hooks_only=_restricted(managed, "allowManagedHooksOnly", problems)
        or _restricted(others, "disableAllHooks", problems),
    )


def rules_of(layers: Sequence[Layer], policy: Policy, trusted: bool, problems: list[Problem]) -> Permissions:
    """Highest layer first, in each the order deny, ask, allow."""
    found = Permissions()
    for layer in layers:
        if layer.state == "unknown":
            found.rules.append(_closed(layer))
        for rule in _layer_rules(layer, problems):
            reason = _idle(rule, layer, policy, trusted)
            found.rules.append(rule) if reason is None else found.idle.append((rule, reason))
    return found


def default_mode(
    layers: Sequence[Layer], policy: Policy, trusted: bool, problems: list[Problem]
) -> PermissionMode | None:
    for layer in layers:
        if (value := layer.part("defaultMode")) is None:
            continue
        where = ("permissions", "defaultMode")
        try:
            mode = PermissionMode("default" if value == "manual" else value)
        except ValueError:
            problems.append(layer.problem(f"permissions.defaultMode {value!r} is no permission mode", *where))
            continue
        if mode is PermissionMode.BYPASS and policy.bypass_disabled:
            problems.append(layer.problem("permissions.defaultMode bypassPermissions is forbidden by policy", *where))
            continue
        narrow = mode in (PermissionMode.DEFAULT, PermissionMode.PLAN, PermissionMode.DONT_ASK)
        if narrow or trusted or not layer.from_project:
            return mode
    return None


def additional_directories(
    layers: Sequence[Layer], home: Path, trusted: bool, problems: list[Problem]
) -> tuple[Path, ...]:
    """Of all layers that may free something; relative ones start where the layer's rules do."""
    found: dict[Path, None] = {}
    for layer in layers:
        for index, entry in enumerate(_entries(layer, "additionalDirectories")):
            if not isinstance(entry, str) or not entry.strip() or "\0" in entry:
                text = f"permissions.additionalDirectories holds {entry!r}, which is no folder; write its path"
                problems.append(layer.problem(text, "permissions", "additionalDirectories", index))
            elif trusted or not layer.from_project:
                path = home / entry[2:] if entry.startswith("~/") else home if entry == "~" else layer.anchor / entry
                found[path] = None
    return tuple(found)


def _layer_rules(layer: Layer, problems: list[Problem]) -> list[PermissionRule]:
    if not isinstance(layer.values.get("permissions") or {}, dict):
        problems.append(layer.problem("permissions must be an object; it is skipped", "permissions", severity=1))
        return []
    entries = [
        (behavior, ("permissions", behavior, index), entry)
        for behavior in _BEHAVIORS
        for index, entry in enumerate(_entries(layer, behavior))
    ]
    lines = layer.lines(tuple(where for _, where, _ in entries))
    rules: list[PermissionRule] = []
    for behavior, where, entry in entries:
        line = lines[where]
        rule = parse_rule(entry, behavior, layer.name, layer.anchor, line) if isinstance(entry, str) else None
        if rule is None:
            text = f"permissions.{behavior} holds {entry!r}, which is no rule; write Tool or Tool(specifier)"
            rules += _meant(entry, behavior, layer, line)
        else:
            rules.append(rule)
            text = f"permissions.{behavior}: {problem}" if (problem := fault(rule)) else ""
        if text:
            problems.append(Problem(Path(layer.name), line or 0, 2, text))
    return rules


def _meant(entry: Any, behavior: Behavior, layer: Layer, line: int | None) -> list[PermissionRule]:
    """A restriction that cannot be read, such as `Bash(rm *`, asks for every call of the tool that it begins with."""
    named = re.match(r"\s*([A-Za-z_*][\w*.:-]*)", entry) if isinstance(entry, str) and behavior != "allow" else None
    if named is None:
        return []
    return [PermissionRule(named[1], None, "ask", f"{layer.name} (meant by {entry!r}, which is no rule)", None, line)]


def _idle(rule: PermissionRule, layer: Layer, policy: Policy, trusted: bool) -> str | None:
    if rule.behavior != "allow":
        return None
    if policy.managed_rules_only and layer.level != "managed":
        return NOT_MANAGED
    return WAITS if layer.from_project and not trusted else None


def _closed(layer: Layer) -> PermissionRule:
    source = f"{layer.name} (which cannot be read, so that what it denies is not known; mend it)"
    return PermissionRule("*", None, "ask", source)


def _entries(layer: Layer, name: str) -> list[Any]:
    found = layer.part(name)
    return [] if found is None else found if isinstance(found, list) else [found]


def _restricted(layers: Sequence[Layer], name: str, problems: list[Problem]) -> bool:
    return True in [_restricts(layer, name, problems) for layer in layers]  # every layer's faults are told


def _restricts(layer: Layer, name: str, problems: list[Problem]) -> bool:
    value = layer.values.get(name)
    if value is not None and not isinstance(value, bool):
        problems.append(layer.problem(f"{name} must be true or false, not {value!r}; it counts as true", name))
        return True
    return value is True


def _bypass_disabled(layer: Layer, problems: list[Problem]) -> bool:
    value = layer.part("disableBypassPermissionsMode")
    if value not in (None, "disable"):
        text = f'permissions.disableBypassPermissionsMode must be "disable", not {value!r}; it counts as that'
        problems.append(layer.problem(text, "permissions", "disableBypassPermissionsMode"))
    return value is not None

"""The hooks of all settings levels (HK-1): which of them count, and whether agents may bring their own."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from agent_core.definitions import AgentDefinition, Problem
from agent_core.hooks.parsing import parse_hooks
from agent_core.hooks.values import Hook
from agent_core.loading.layers import Layer
from agent_core.settings import Policy


@frozen
class HookSettings:
    """`active` in the order of the answers: user, project, local, managed. `agents`: those of agent files run too."""

    active: tuple[Hook, ...] = ()
    agents: bool = True

    def of(self, definition: AgentDefinition) -> tuple[Hook, ...]:
        return definition.hooks if self.agents or definition.source == "managed" else ()


def read_hooks(layers: Sequence[Layer], policy: Policy, problems: list[Problem]) -> HookSettings:
    """`layers` highest first. Where policy leaves the managed hooks only, agents bring none either."""
    if policy.hooks_disabled:
        return HookSettings((), agents=False)
    astray = [layer for layer in layers if layer.level == "client" and "hooks" in layer.values]
    problems.extend(layer.problem("hooks stand in settings.json files; these do not run", "hooks") for layer in astray)
    own = tuple(hook for layer in layers if layer.level == "managed" for hook in _of(layer, problems))
    if policy.managed_hooks_only:
        return HookSettings(own, agents=False)
    others = [layer for layer in reversed(layers) if layer.level not in ("managed", "client")]
    return HookSettings((*(hook for layer in others for hook in _of(layer, problems)), *own))


def _of(layer: Layer, problems: list[Problem]) -> tuple[Hook, ...]:
    def report(message: str) -> None:
        problems.append(layer.problem(message, "hooks"))

    return parse_hooks(layer.values.get("hooks"), layer.name, layer.from_project, report)

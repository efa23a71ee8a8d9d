"""The hooks of all settings levels (HK-1): which of them count, and whether agents may bring their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from agent_core.definitions import AgentDefinition, Problem
from agent_core.hooks.parsing import Report, parse_hooks
from agent_core.hooks.values import Hook
from agent_core.loading.settings_files import Layer


@frozen
class HookSettings:
    """`active` in the order of the answers: user, project, local, managed. `agents`: those of agent files run too."""

    active: tuple[Hook, ...] = ()
    agents: bool = True

    def of(self, definition: AgentDefinition) -> tuple[Hook, ...]:
        return definition.hooks if self.agents or definition.source == "managed" else ()


def read_hooks(
    managed: Layer, editor: Layer, files: Sequence[Layer], trusted: bool, problems: list[Problem]
) -> HookSettings:
    """`files` highest first. `disableAllHooks` of a file leaves the managed ones; of the managed settings, none.

    What a project file switches off counts only once its folder is trusted: it may be the user's guard.
    """
    if "hooks" in editor.values:
        problems.append(Problem(Path(editor.name), 0, 2, "hooks stand in settings.json files; these do not run"))
    own = _of(managed, problems)
    if _says(managed, "disableAllHooks", problems):
        return HookSettings((), agents=False)
    others = tuple(hook for layer in reversed(files) for hook in _of(layer, problems))
    heard = [layer for layer in files if trusted or not layer.from_project]
    off = [_says(layer, "disableAllHooks", problems) for layer in heard]
    if any(off) or _says(managed, "allowManagedHooksOnly", problems):
        return HookSettings(own, agents=False)
    return HookSettings((*others, *own))


def _of(layer: Layer, problems: list[Problem]) -> tuple[Hook, ...]:
    return parse_hooks(layer.values.get("hooks"), layer.name, layer.from_project, _report(layer, problems))


def _says(layer: Layer, name: str, problems: list[Problem]) -> bool:
    value = layer.values.get(name, False)
    if not isinstance(value, bool):
        _report(layer, problems)(f"the setting {name} must be true or false, not {value!r}")
    return value is True


def _report(layer: Layer, problems: list[Problem]) -> Report:
    return lambda message: problems.append(Problem(Path(layer.name), 0, 2, message))

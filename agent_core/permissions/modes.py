"""The permission mode of an agent that another agent launches (PM-3). Pure.

It is its own, not the parent's, within limits: what the user restricted stays restricted below, a parent that is free
is not made stricter by a definition that says nothing, and a call may be stricter than omission would give, never
wider.
"""

from __future__ import annotations

from agent_core.permissions.types import PermissionMode

_WIDTH = {
    PermissionMode.PLAN: 0,
    PermissionMode.DONT_ASK: 1,
    PermissionMode.DEFAULT: 2,
    PermissionMode.BUBBLE: 2,
    PermissionMode.ACCEPT_EDITS: 3,
    PermissionMode.BYPASS: 4,
}
_FREE = (PermissionMode.ACCEPT_EDITS, PermissionMode.BYPASS)
_RESTRICTED = (PermissionMode.PLAN, PermissionMode.DONT_ASK)


def child_mode(
    parent: PermissionMode, call: PermissionMode | None, definition: PermissionMode | None, default: str
) -> tuple[PermissionMode, bool]:
    """(the mode, whether the call asked for a wider one). `default` is a mode or `inherit`."""
    omitted = definition or _default(parent, default)
    mode, capped = omitted, False
    if call is not None:
        capped = _WIDTH[call] > _WIDTH[omitted]
        mode = omitted if capped else call
    if parent in _RESTRICTED and _WIDTH[mode] > _WIDTH[parent]:
        return parent, capped
    return mode, capped


def resumed_mode(was: PermissionMode, parent: PermissionMode | None, *, main: bool, bypass: bool) -> PermissionMode:
    """Of an agent of an earlier process. Bypass is granted to a process, plan to a task of the main thread, so that
    neither comes back; what restricts an agent that another one launched, or its parent now, stays. `bypass`: an
    ancestor that lives has it still, and policy allows it."""
    mode = was
    if was is PermissionMode.BYPASS and not bypass:
        mode = PermissionMode.DEFAULT
    if was is PermissionMode.PLAN and main:
        mode = PermissionMode.DEFAULT
    return parent if parent in _RESTRICTED and _WIDTH[mode] > _WIDTH[parent] else mode


def under_policy(mode: PermissionMode, *, bypass_disabled: bool) -> PermissionMode:
    """What managed policy leaves of a mode, at every decision (M4)."""
    return PermissionMode.DEFAULT if bypass_disabled and mode is PermissionMode.BYPASS else mode


def wider_than_default(mode: PermissionMode) -> bool:
    return _WIDTH[mode] > _WIDTH[PermissionMode.DEFAULT]


def _default(parent: PermissionMode, default: str) -> PermissionMode:
    if parent in _FREE or default == "inherit":
        return parent
    return PermissionMode(default)

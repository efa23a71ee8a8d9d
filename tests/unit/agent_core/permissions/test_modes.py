"""The mode of an agent that another one launches: its own, within limits."""

from __future__ import annotations

from itertools import product

import pytest

from agent_core.permissions.modes import child_mode, resumed_mode, under_policy
from agent_core.permissions.types import PermissionMode

DEFAULT, EDITS, PLAN, DONT, BYPASS, BUBBLE = PermissionMode


@pytest.mark.spec("PM-3", "IN-9")
@pytest.mark.parametrize(
    ("parent", "call", "definition", "setting", "mode", "capped"),
    [
        (DEFAULT, None, None, "acceptEdits", EDITS, False),
        (DEFAULT, None, None, "inherit", DEFAULT, False),
        (BUBBLE, None, None, "inherit", BUBBLE, False),
        (DEFAULT, None, PLAN, "acceptEdits", PLAN, False),
        (DEFAULT, None, BYPASS, "acceptEdits", BYPASS, False),
        (BYPASS, None, None, "default", BYPASS, False),
        (EDITS, None, None, "default", EDITS, False),
        (BYPASS, None, DEFAULT, "acceptEdits", DEFAULT, False),
        (PLAN, None, None, "acceptEdits", PLAN, False),
        (PLAN, None, BYPASS, "acceptEdits", PLAN, False),
        (DONT, None, EDITS, "acceptEdits", DONT, False),
        (DONT, None, PLAN, "acceptEdits", PLAN, False),
        (DEFAULT, PLAN, None, "acceptEdits", PLAN, False),
        (DEFAULT, BUBBLE, None, "acceptEdits", BUBBLE, False),
        (DEFAULT, EDITS, DEFAULT, "acceptEdits", DEFAULT, True),
        (DEFAULT, BYPASS, None, "acceptEdits", EDITS, True),
        (DEFAULT, BUBBLE, DEFAULT, "acceptEdits", BUBBLE, False),
        (PLAN, DEFAULT, None, "acceptEdits", PLAN, False),
    ],
)
def test_child_mode(
    parent: PermissionMode,
    call: PermissionMode | None,
    definition: PermissionMode | None,
    setting: str,
    mode: PermissionMode,
    capped: bool,
) -> None:
    assert child_mode(parent, call, definition, setting) == (mode, capped)


@pytest.mark.spec("PM-3")
@pytest.mark.parametrize(
    ("was", "parent", "main", "bypass", "mode"),
    [
        (BYPASS, None, False, False, DEFAULT),
        (BYPASS, None, True, False, DEFAULT),
        (BYPASS, BYPASS, False, True, BYPASS),
        (PLAN, None, True, False, DEFAULT),
        (PLAN, None, False, False, PLAN),
        (PLAN, DEFAULT, False, False, PLAN),
        (EDITS, PLAN, False, False, PLAN),
        (EDITS, DONT, False, False, DONT),
        (PLAN, DONT, False, False, PLAN),
        (EDITS, DEFAULT, False, False, EDITS),
        (BUBBLE, None, False, False, BUBBLE),
    ],
)
def test_resumed_mode(
    was: PermissionMode, parent: PermissionMode | None, main: bool, bypass: bool, mode: PermissionMode
) -> None:
    assert resumed_mode(was, parent, main=main, bypass=bypass) is mode


@pytest.mark.spec("PM-3")
@pytest.mark.parametrize("mode", PermissionMode)
def test_m4_policy_takes_bypass_away_and_nothing_else(mode: PermissionMode) -> None:
    assert under_policy(mode, bypass_disabled=False) is mode
    assert under_policy(mode, bypass_disabled=True) is (DEFAULT if mode is BYPASS else mode)


@pytest.mark.spec("PM-3")
@pytest.mark.parametrize("restricted", [PLAN, DONT])
def test_a_restriction_only_tightens_down_the_tree(restricted: PermissionMode) -> None:
    modes = [None, *PermissionMode]
    for call, definition, setting in product(modes, modes, ["inherit", "acceptEdits", "default"]):
        child, _ = child_mode(restricted, call, definition, setting)
        grandchild, _ = child_mode(child, call, definition, setting)
        assert {child, grandchild} <= {PLAN, restricted}

"""The mode of an agent that another one launches: its own, within limits."""

from __future__ import annotations

import pytest

from agent_core.permissions.modes import child_mode
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

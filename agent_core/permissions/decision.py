"""The decision on any call: shell commands part by part, everything else as a whole."""

from __future__ import annotations

from agent_core.permissions import policy
from agent_core.permissions.policy import Call, PolicyContext
from agent_core.permissions.shell.deciding import decide_command
from agent_core.permissions.types import PermissionDecision


def decide(call: Call, ctx: PolicyContext) -> PermissionDecision:
    return policy.decide(call, ctx) if call.facts.command is None else decide_command(call, ctx)

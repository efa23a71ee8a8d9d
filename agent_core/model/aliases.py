"""Model names: the one table of aliases, and the resolution order of the spec's section 4 (MD-1 to MD-6)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agent_core.errors import InvalidParams

ALIASES = {
    "opus": "claude-opus-5-5",
    "sonnet": "claude-sonnet-5-5",
    "haiku": "claude-haiku-5-5",
    "fable": "claude-fable-5-2",
}
OPUSPLAN = "opusplan"
"""Opus for an agent in plan mode, Sonnet for any other (MD-5)."""
CONTEXT_LIMIT = 200_000
LONG_CONTEXT_LIMIT = 1_000_000


_BUDGETED = re.compile(r"claude-3|-4-[0-6]\b|-4-2\d{7}|(?:sonnet|opus)-4(?!-)")
"""Models that take a number of tokens to think with; later ones find it themselves."""


def thinking_of(model: str, tokens: int, max_tokens: int) -> Mapping[str, Any] | None:
    """The thinking configuration of a request; None, which is off, at 0 tokens."""
    if tokens <= 0:
        return None
    if _BUDGETED.search(model):
        return {"type": "enabled", "budget_tokens": max(1024, min(tokens, max_tokens - 1))}
    return {"type": "adaptive"}


def resolve_model(
    *,
    env: Mapping[str, str],
    call: str | None,
    definition: str | None,
    parent: str,
    planning: bool = False,
    default: str = "inherit",
) -> str:
    """The exact id to send: environment, the call's model, the definition's, `inherit`; `parent` is the exact id of
    what the parent runs. `planning`: the agent is in plan mode."""
    forced = env.get("CLAUDE_CODE_SUBAGENT_MODEL", "")
    chosen = next(name for name in (forced if forced != "inherit" else "", call, definition, default) if name)
    return parent if chosen == "inherit" else exact_id(chosen, env, parent, planning)


def exact_id(name: str, env: Mapping[str, str], parent: str = "", planning: bool = False) -> str:
    """An alias to its id. One of the parent's own family gives the parent's exact id (MD-6).

    `[1m]` stays: it is no part of what is sent, but says how long a context is. InvalidParams for what can be no id.
    """
    family, long = name.removesuffix("[1m]"), name.endswith("[1m]")
    if family == OPUSPLAN:
        family = "opus" if planning else "sonnet"
    if family not in ALIASES:
        return _checked(name)
    if family in parent and not long:
        return parent
    found = env.get(f"ANTHROPIC_DEFAULT_{family.upper()}_MODEL") or ALIASES[family]
    return f"{found}[1m]" if long and not found.endswith("[1m]") else found


_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,255}(\[1m\])?")
"""Ids of the service, of Bedrock (dots, an ARN), of Vertex (`@`) and of gateways (`/`)."""


def _checked(name: str) -> str:
    if not _ID.fullmatch(name):
        allowed = ", ".join((*ALIASES, OPUSPLAN, "inherit"))
        raise InvalidParams("model", f"{name!r} is no name of a model; allowed are {allowed}, and full ids")
    return name


def context_limit(name: str) -> int:
    return LONG_CONTEXT_LIMIT if name.endswith("[1m]") else CONTEXT_LIMIT

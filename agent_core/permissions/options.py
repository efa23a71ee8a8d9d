"""Which answers an ask offers, and what each would store. Pure.

Rules are offered only when their text can be shown in full, when they match exactly what was approved, never more, and
when with them nobody would be asked again (PM-5).
"""

from __future__ import annotations

from pathlib import Path

from attrs import evolve

from agent_core.permissions.decision import decide
from agent_core.permissions.path_rules import specifier_of
from agent_core.permissions.policy import Call, PolicyContext
from agent_core.permissions.rules import parse_rule
from agent_core.permissions.shell.deciding import explain_command
from agent_core.permissions.types import (
    Allow,
    Ask,
    Behavior,
    Deny,
    Destination,
    OptionKind,
    PermissionFacts,
    PermissionOption,
)

_MAX_RULE, _MAX_RULES = 200, 5
"""Characters of a rule, and rules of one answer, that a person can still take in."""


def options_for(call: Call, ctx: PolicyContext, persistent: Destination | None) -> tuple[PermissionOption, ...]:
    """`persistent` is where "always" would be written; None when no such place is read back (B4)."""
    rules = _rules(call, ctx)
    lasting = _storing("allow", _working(rules, "allow", call, ctx), persistent)
    refusing = _storing("deny", _working(rules, "deny", call, ctx) if len(rules) == 1 else (), persistent)
    return (
        _plain(OptionKind.ALLOW_ONCE, "Allow once"),
        *lasting,
        _plain(OptionKind.REJECT_ONCE, "Reject"),
        *refusing,
        _plain(OptionKind.REJECT_AND_STOP, "Reject and stop the agent"),
    )


def _storing(behavior: Behavior, rules: tuple[str, ...], persistent: Destination | None) -> list[PermissionOption]:
    if not rules:
        return []
    shown = ", ".join(rules)
    session, always = _KINDS[behavior]
    word = "Allow" if behavior == "allow" else "Reject"
    options = [PermissionOption(session.value, session, f"{word} for this session: {shown}", rules, "session")]
    if persistent:
        label = f"Always {word.lower()} {shown} ({_PLACES[persistent]})"
        options.append(PermissionOption(always.value, always, label, rules, persistent))
    return options


_KINDS = {
    "allow": (OptionKind.ALLOW_SESSION, OptionKind.ALLOW_ALWAYS),
    "deny": (OptionKind.REJECT_SESSION, OptionKind.REJECT_ALWAYS),
    "ask": (OptionKind.ALLOW_SESSION, OptionKind.ALLOW_ALWAYS),
}
_PLACES = {
    "session": "this session",
    "localSettings": ".claude/settings.local.json",
    "projectSettings": ".claude/settings.json",
    "userSettings": "your own settings",
}


def _rules(call: Call, ctx: PolicyContext) -> tuple[str, ...]:
    """One for each part of a command that is asked for, one for any other call; empty when one has none."""
    if call.facts.command is None:
        found: list[str | None] = [_exact_rule(call.tool, call.facts)]
    else:
        found = [part.rule for part in explain_command(call, ctx) if isinstance(part.decision, Ask)]
    rules = tuple(dict.fromkeys(rule for rule in found if rule and rule.isprintable() and len(rule) <= _MAX_RULE))
    return rules if len(rules) <= _MAX_RULES and len(rules) == len(dict.fromkeys(found)) else ()


def _working(rules: tuple[str, ...], behavior: Behavior, call: Call, ctx: PolicyContext) -> tuple[str, ...]:
    """The same rules when the call would be decided by them without an ask, else none (B1)."""
    parsed = [parse_rule(rule, behavior, "the answer") for rule in rules]
    added = tuple(rule for rule in parsed if rule is not None)
    decided = decide(call, evolve(ctx, rules=(*added, *ctx.rules)))
    return rules if isinstance(decided, Allow if behavior == "allow" else Deny) else ()


def _exact_rule(tool: str, facts: PermissionFacts) -> str | None:
    if facts.writes:
        return _path_rule("Edit", facts.writes)
    return _path_rule("Read", facts.reads) if facts.reads else tool


def _path_rule(tool: str, paths: tuple[Path, ...]) -> str | None:
    specifier = specifier_of(paths[0]) if len(paths) == 1 else None
    return f"{tool}({specifier})" if specifier else None


def _plain(kind: OptionKind, label: str) -> PermissionOption:
    return PermissionOption(kind.value, kind, label)

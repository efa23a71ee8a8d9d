"""Which answers an ask offers, and what each would store. Pure.

A rule is offered only when its text can be shown in full and matches exactly what was approved, never more (PM-5).
"""

from __future__ import annotations

import re
from pathlib import Path

from agent_core.permissions.types import Destination, OptionKind, PermissionFacts, PermissionOption

_MAX_RULE = 200
"""Characters of a rule that a person can still take in."""

_PATTERN_CHARACTERS = re.compile(r"([\\*?\[\]!#])")


def options_for(tool: str, facts: PermissionFacts, persistent: Destination | None) -> tuple[PermissionOption, ...]:
    """`persistent` is where "always" would be written; None when no such place is read back (B4)."""
    rule = _exact_rule(tool, facts)
    once, reject = _plain(OptionKind.ALLOW_ONCE, "Allow once"), _plain(OptionKind.REJECT_ONCE, "Reject")
    stop = _plain(OptionKind.REJECT_AND_STOP, "Reject and stop the agent")
    if rule is None:
        return (once, reject, stop)
    lasting = [
        _storing(OptionKind.ALLOW_SESSION, f"Allow for this session: {rule}", rule, "session"),
        _storing(OptionKind.REJECT_SESSION, f"Reject for this session: {rule}", rule, "session"),
    ]
    if persistent:
        where = f"{rule} ({_PLACES[persistent]})"
        lasting.insert(1, _storing(OptionKind.ALLOW_ALWAYS, f"Always allow {where}", rule, persistent))
        lasting.append(_storing(OptionKind.REJECT_ALWAYS, f"Always reject {where}", rule, persistent))
    allows = [option for option in lasting if option.kind.allows]
    rejects = [option for option in lasting if not option.kind.allows]
    return (once, *allows, reject, *rejects, stop)


_PLACES = {
    "session": "this session",
    "localSettings": ".claude/settings.local.json",
    "projectSettings": ".claude/settings.json",
    "userSettings": "your own settings",
}


def _exact_rule(tool: str, facts: PermissionFacts) -> str | None:
    if facts.command is not None:
        command = facts.command.strip()
        plain = command.isprintable() and "*" not in command and not command.endswith(":*")
        return f"Bash({command})" if plain and command and len(command) <= _MAX_RULE else None
    if facts.writes:
        return _path_rule("Edit", facts.writes)
    return _path_rule("Read", facts.reads) if facts.reads else tool


def _path_rule(tool: str, paths: tuple[Path, ...]) -> str | None:
    text = str(paths[0])
    if len(paths) != 1 or not text.isprintable() or len(text) > _MAX_RULE:
        return None
    if text.endswith(" "):  # patterns lose it, and `/folder/ ` would then speak of everything in the folder
        return None
    escaped = _PATTERN_CHARACTERS.sub(r"\\\1", text)
    return f"{tool}(/{escaped})"


def _plain(kind: OptionKind, label: str) -> PermissionOption:
    return PermissionOption(kind.value, kind, label)


def _storing(kind: OptionKind, label: str, rule: str, destination: Destination) -> PermissionOption:
    return PermissionOption(kind.value, kind, label, (rule,), destination)

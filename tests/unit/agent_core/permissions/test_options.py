"""Which answers an ask offers: lasting ones only with the exact rule, in full, never wider than what was approved."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_core.permissions.options import options_for
from agent_core.permissions.policy import Call, PolicyContext
from agent_core.permissions.rules import MatchContext, match, parse_rule
from agent_core.permissions.types import (
    Match,
    OptionKind,
    PermissionFacts,
    PermissionMode,
    PermissionOption,
    PermissionRule,
    ToolKind,
)

ALL = list(OptionKind)
ONCE = [OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE, OptionKind.REJECT_AND_STOP]
SESSION = [kind for kind in ALL if kind not in (OptionKind.ALLOW_ALWAYS, OptionKind.REJECT_ALWAYS)]


WORK = Path("/nonexistent/work")


def offered(facts: PermissionFacts, persistent: bool = False, *rules: PermissionRule | None) -> list[PermissionOption]:
    tool, kind = ("Edit", ToolKind.EDIT) if facts.writes else ("Bash", ToolKind.EXECUTE)
    given = tuple(rule for rule in rules if rule)
    ctx = PolicyContext(PermissionMode.DEFAULT, given, (WORK,), None, MatchContext((WORK,), Path("/nonexistent/home")))
    return list(options_for(Call(tool, kind, False, facts), ctx, "localSettings" if persistent else None))


def command(text: str) -> PermissionFacts:
    return PermissionFacts(command=text, cwd=WORK)


@pytest.mark.spec("PM-5")
@pytest.mark.parametrize(
    ("facts", "persistent", "kinds"),
    [
        (command("make test"), True, ALL),
        (command("make test"), False, SESSION),
        (command("make *.py"), True, ALL),
        (
            command("a\nb"),
            True,
            [kind for kind in ALL if kind not in (OptionKind.REJECT_SESSION, OptionKind.REJECT_ALWAYS)],
        ),
        (command("a; b; c; d; e; f"), True, ONCE),
        (command("make $x"), True, ONCE),
        (command("$x y"), True, ONCE),
        (command("echo \u202e x"), True, ONCE),
        (command("x" * 300), True, ONCE),
        (command("  "), True, ONCE),
        (PermissionFacts(writes=(Path("/a"), Path("/b"))), True, ONCE),
        (PermissionFacts(writes=(Path("/a/ "),)), True, ONCE),
        (PermissionFacts(writes=(Path("/a"),)), True, ALL),
    ],
    ids=[
        "command",
        "no place",
        "wildcard",
        "lines",
        "six commands",
        "expansion",
        "unknown program",
        "hidden",
        "long",
        "empty",
        "two files",
        "name that ends with a space",
        "file",
    ],
)
def test_what_is_offered(facts: PermissionFacts, persistent: bool, kinds: list[OptionKind]) -> None:
    options = offered(facts, persistent)
    assert [option.kind for option in options] == kinds
    assert [option.id for option in options] == [kind.value for kind in kinds]


def test_labels_say_the_rule_and_the_place() -> None:
    assert offered(command("make test"), True) == [
        PermissionOption("allowOnce", OptionKind.ALLOW_ONCE, "Allow once"),
        PermissionOption(
            "allowSession",
            OptionKind.ALLOW_SESSION,
            "Allow for this session: Bash(make test)",
            ("Bash(make test)",),
            "session",
        ),
        PermissionOption(
            "allowAlways",
            OptionKind.ALLOW_ALWAYS,
            "Always allow Bash(make test) (.claude/settings.local.json)",
            ("Bash(make test)",),
            "localSettings",
        ),
        PermissionOption("rejectOnce", OptionKind.REJECT_ONCE, "Reject"),
        PermissionOption(
            "rejectSession",
            OptionKind.REJECT_SESSION,
            "Reject for this session: Bash(make test)",
            ("Bash(make test)",),
            "session",
        ),
        PermissionOption(
            "rejectAlways",
            OptionKind.REJECT_ALWAYS,
            "Always reject Bash(make test) (.claude/settings.local.json)",
            ("Bash(make test)",),
            "localSettings",
        ),
        PermissionOption("rejectAndStop", OptionKind.REJECT_AND_STOP, "Reject and stop the agent"),
    ]


@pytest.mark.parametrize("path", ["/w/a.py", "/w/[x]/*.py", "/w/a?b", "/w/!a", "/w/a#b", "/w/with space/ü.py"])
def test_a_path_rule_matches_the_path_and_no_other(path: str) -> None:
    option = offered(PermissionFacts(writes=(Path(path),)))[1]
    rule = parse_rule(option.rules[0], "allow", "s")
    assert rule is not None
    ctx = MatchContext((Path("/w"),), Path("/home/me"))

    def matches(other: str) -> bool:
        return match(rule, "Edit", PermissionFacts(writes=(Path(other),)), "", ctx) is Match.YES

    assert matches(path)
    assert not any(
        matches(other) for other in ("/w/b.py", "/w/x/a.py", "/w/[x]/a.py", "/w/aXb", "/other") if other != path
    )

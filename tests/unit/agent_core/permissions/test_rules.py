"""Rules: parsing and matching. What is not understood never allows."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_core.permissions.rules import Match, MatchContext, match, parse_rule
from agent_core.permissions.types import Behavior, PermissionFacts, PermissionRule

HOME, PROJECT, TREE = Path("/home/me"), Path("/w/project"), Path("/trees/agent-1")


@pytest.mark.spec("PM-2")
@pytest.mark.parametrize(
    ("text", "tool", "specifier"),
    [
        ("Bash", "Bash", None),
        ("Bash(*)", "Bash", None),
        ("Bash(make test)", "Bash", "make test"),
        ("Bash(echo (a) b)", "Bash", "echo (a) b"),
        (" Read(./secrets/**) ", "Read", "./secrets/**"),
        ("Task(Explore)", "Agent", "Explore"),
        ("mcp__git__*", "mcp__git__*", None),
        ("constructor", "constructor", None),
    ],
)
def test_parsing(text: str, tool: str, specifier: str | None) -> None:
    assert parse_rule(text, "allow", "s") == PermissionRule(tool, specifier, "allow", "s")


@pytest.mark.parametrize("text", ["", "Bash(", "Bash(a", "(a)", "two words", "Read)x("])
def test_what_is_no_rule(text: str) -> None:
    assert parse_rule(text, "allow", "s") is None


def bash(command: str) -> PermissionFacts:
    return PermissionFacts(command=command, cwd=PROJECT)


def matched(rule: str, behavior: Behavior, tool: str, facts: PermissionFacts, name: str = "") -> Match:
    parsed = parse_rule(rule, behavior, "s", PROJECT)
    assert parsed is not None
    return match(parsed, tool, facts, name, MatchContext((PROJECT, TREE), HOME))


@pytest.mark.parametrize(
    ("rule", "command", "expected"),
    [
        ("Bash", "anything; at all", Match.YES),
        ("Bash(make test)", "make test", Match.YES),
        ("Bash(make test)", "  make test\n", Match.YES),
        ("Bash(make test)", "make it", Match.NO),
        ("Bash(make *)", "make test", Match.YES),
        ("Bash(git:*)", "git status", Match.YES),
        ("Edit", "make test", Match.NO),
    ],
)
@pytest.mark.parametrize("behavior", ["allow", "ask", "deny"])
def test_commands_match_by_their_words(rule: str, command: str, expected: Match, behavior: Behavior) -> None:
    assert matched(rule, behavior, "Bash", bash(command)) is expected


def reads(path: str) -> PermissionFacts:
    return PermissionFacts(reads=(Path(path),))


def writes(path: str) -> PermissionFacts:
    return PermissionFacts(writes=(Path(path),))


@pytest.mark.spec("PM-2")
@pytest.mark.parametrize(
    ("rule", "behavior", "tool", "facts", "expected"),
    [
        ("Read(//etc/**)", "allow", "Read", reads("/etc/hosts"), Match.YES),
        ("Read(//etc/**)", "allow", "Read", reads("/w/etc/hosts"), Match.NO),
        ("Read(~/notes/*.md)", "allow", "Read", reads("/home/me/notes/a.md"), Match.YES),
        ("Edit(/docs/**)", "allow", "Edit", writes("/w/project/docs/a/b.md"), Match.YES),
        ("Edit(/docs/**)", "allow", "Edit", writes("/w/project/src/docs/b.md"), Match.NO),
        ("Edit(docs/**)", "allow", "Write", writes("/w/project/docs/b.md"), Match.YES),
        ("Edit(docs/**)", "allow", "Write", writes("/w/project/src/docs/b.md"), Match.NO),
        ("Edit(docs/**)", "deny", "Write", writes("/w/project/src/docs/b.md"), Match.YES),
        ("Read(.env)", "deny", "Read", reads("/w/project/deep/down/.env"), Match.YES),
        ("Read(.env)", "deny", "Read", reads("/trees/agent-1/.env"), Match.YES),
        ("Read(/secrets/**)", "deny", "Read", reads("/trees/agent-1/secrets/key"), Match.YES),
        ("Read(/secrets/**)", "allow", "Read", reads("/trees/agent-1/secrets/key"), Match.NO),
        ("Read(secrets-*/config.json)", "deny", "Read", reads("/w/project/secrets-a/config.json"), Match.YES),
        ("Read(.env)", "deny", "Edit", writes("/w/project/.env"), Match.YES),
        ("Read(.env)", "allow", "Edit", writes("/w/project/.env"), Match.NO),
        ("Edit(/a)", "allow", "Read", reads("/w/project/a"), Match.YES),
        ("Read", "deny", "Edit", writes("/w/project/a"), Match.NO),
        ("Edit(/a)", "allow", "Bash", bash("cat a"), Match.NO),
        ("Write(/a)", "allow", "Write", writes("/w/project/a"), Match.UNCLEAR),
        ("Grep(pattern:x)", "deny", "Grep", reads("/w/project"), Match.UNCLEAR),
        ("mcp__*", "allow", "mcp__a__b", PermissionFacts(), Match.NO),
        ("mcp__*", "deny", "mcp__a__b", PermissionFacts(), Match.YES),
        ("Edit(/a)", "allow", "Edit", PermissionFacts(), Match.NO),
    ],
)
def test_paths(rule: str, behavior: Behavior, tool: str, facts: PermissionFacts, expected: Match) -> None:
    assert matched(rule, behavior, tool, facts) is expected


@pytest.mark.parametrize(("name", "expected"), [("Explore", Match.YES), ("Plan", Match.NO)])
def test_agents_by_name(name: str, expected: Match) -> None:
    assert matched("Agent(Explore)", "deny", "Agent", PermissionFacts(), name) is expected


@pytest.mark.spec("PM-2")
def test_an_allow_needs_link_and_target_and_a_deny_hits_on_either(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir(), inside.mkdir()
    (inside / "link").symlink_to(outside)
    facts = PermissionFacts(writes=(inside / "link" / "a",))
    ctx = MatchContext((inside,), HOME)

    def found(rule: str, behavior: Behavior) -> Match:
        parsed = parse_rule(rule, behavior, "s", inside)
        assert parsed is not None
        return match(parsed, "Edit", facts, "", ctx)

    assert found(f"Edit(/{inside}/**)", "allow") is Match.NO
    assert found(f"Edit(/{outside}/**)", "deny") is Match.YES
    assert found(f"Edit(/{inside}/**)", "deny") is Match.YES


@pytest.mark.parametrize("behavior", ["ask", "deny"])
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (" make   test ", Match.YES),
        ("make test && rm -rf /", Match.YES),
        ("cd x; make  test", Match.YES),
        ("X=1 make 'test'", Match.YES),
        ("$x test", Match.UNCLEAR),
        ("make test'", Match.UNCLEAR),
        ("make it", Match.NO),
    ],
)
def test_a_restriction_of_a_command_holds_for_its_other_spellings(
    behavior: Behavior, command: str, expected: Match
) -> None:
    assert matched("Bash(make test)", behavior, "Bash", bash(command)) is expected
    allowed = matched("Bash(make test)", "allow", "Bash", bash(command))
    assert allowed is (Match.YES if command.split() == ["make", "test"] else Match.NO)


@pytest.mark.parametrize("pattern", ["secrets\\", "./secrets/[k", "!secrets/k", "#k", ""])
def test_a_path_rule_that_is_not_understood_never_counts_as_harmless(pattern: str) -> None:
    assert matched(f"Read({pattern})", "deny", "Read", reads("/w/project/secrets/k")) is Match.UNCLEAR
    assert matched(f"Read({pattern})", "allow", "Read", reads("/w/project/secrets/k")) is Match.UNCLEAR


@pytest.mark.parametrize(("rule", "tool"), [("Edit", "Write"), ("Read", "Grep")])
def test_a_bare_restriction_covers_what_does_the_same(rule: str, tool: str) -> None:
    facts = writes("/w/project/a") if rule == "Edit" else reads("/w/project/a")
    assert [matched(rule, how, tool, facts) for how in ("deny", "ask", "allow")] == [Match.YES, Match.YES, Match.NO]  # type: ignore[arg-type]

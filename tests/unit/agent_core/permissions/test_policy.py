"""Mode, rules and facts to one decision: the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_core.permissions.decision import decide
from agent_core.permissions.policy import Call, PolicyContext
from agent_core.permissions.rules import MatchContext, parse_rule
from agent_core.permissions.types import Allow, Ask, Behavior, Deny, PermissionFacts, PermissionMode, ToolKind

PROJECT, TREE = Path("/w/project"), Path("/trees/agent-1")
DEFAULT, EDITS, PLAN, DONT, BYPASS, BUBBLE = PermissionMode


def call(tool: str, path: Path | None = None, command: str | None = None) -> Call:
    kind = {"Read": ToolKind.READ, "Edit": ToolKind.EDIT}.get(tool, ToolKind.EXECUTE)
    paths = (path,) if path else ()
    facts = PermissionFacts(
        reads=paths if tool == "Read" else (), writes=paths if tool == "Edit" else (), command=command, cwd=PROJECT
    )
    return Call(tool, kind, tool == "Read", facts)


def context(mode: PermissionMode, *rules: tuple[Behavior, str], worktree: Path | None = None) -> PolicyContext:
    parsed = [parse_rule(text, behavior, "settings.json", PROJECT) for behavior, text in rules]
    dirs = (worktree,) if worktree else (PROJECT,)
    found = tuple(rule for rule in parsed if rule is not None)
    assert len(found) == len(rules)
    return PolicyContext(mode, found, dirs, worktree, MatchContext((worktree or PROJECT,), Path("/home/me")))


def kinds(called: Call, worktree: Path | None = None) -> list[type]:
    return [type(decide(called, context(mode, worktree=worktree))) for mode in PermissionMode]


@pytest.mark.spec("PM-1")
@pytest.mark.parametrize(
    ("called", "expected"),
    [
        (call("Read", PROJECT / "a"), [Allow, Allow, Allow, Allow, Allow, Allow]),
        (call("Read", Path("/etc/hosts")), [Ask, Ask, Ask, Deny, Allow, Ask]),
        (call("Edit", PROJECT / "a"), [Ask, Allow, Deny, Deny, Allow, Ask]),
        (call("Edit", Path("/etc/hosts")), [Ask, Ask, Deny, Deny, Allow, Ask]),
        (call("Edit", PROJECT / ".git" / "config"), [Ask, Ask, Deny, Deny, Allow, Ask]),
        (call("Edit", PROJECT / ".envrc"), [Ask, Ask, Deny, Deny, Allow, Ask]),
        (call("Bash", command="make"), [Ask, Ask, Ask, Deny, Allow, Ask]),
    ],
    ids=["read", "read outside", "edit", "edit outside", "edit .git", "edit .envrc", "command"],
)
def test_modes(called: Call, expected: list[type]) -> None:
    assert kinds(called) == expected


@pytest.mark.spec("PM-7")
def test_an_isolated_agent_edits_its_own_worktree_freely_and_nothing_else() -> None:
    assert kinds(call("Edit", TREE / "a"), TREE) == [Ask, Allow, Deny, Deny, Allow, Allow]
    assert kinds(call("Edit", PROJECT / "a"), TREE) == [Ask, Ask, Deny, Deny, Allow, Ask]
    assert kinds(call("Edit", TREE / ".git"), TREE) == [Ask, Ask, Deny, Deny, Allow, Ask]


@pytest.mark.spec("PM-2")
@pytest.mark.parametrize(
    ("rules", "mode", "expected"),
    [
        ([("allow", "Bash(make)")], DEFAULT, Allow("rule", "allowed by the rule Bash(make) in settings.json")),
        ([("allow", "Bash(make)")], DONT, Allow("rule", "allowed by the rule Bash(make) in settings.json")),
        ([("allow", "Bash(ls *)")], DEFAULT, Ask("no rule allows this command")),
        ([("allow", "Bash(make)"), ("ask", "Bash")], DEFAULT, Ask("the rule Bash in settings.json asks")),
        (
            [("allow", "Bash(make)"), ("deny", "Bash(make)")],
            DEFAULT,
            Deny("rule", "denied by the rule Bash(make) in settings.json"),
        ),
        ([("deny", "Bash")], BYPASS, Deny("rule", "denied by the rule Bash in settings.json")),
        ([("ask", "Bash")], BYPASS, Ask("the rule Bash in settings.json asks")),
        (
            [("deny", "Bash(rm *)")],
            BYPASS,
            Allow("mode", "the mode bypassPermissions allows everything that no rule denies"),
        ),
        (
            [("deny", "Bash(rm *)"), ("allow", "Bash(make)")],
            DEFAULT,
            Allow("rule", "allowed by the rule Bash(make) in settings.json"),
        ),
        (
            [("ask", "Bash")],
            DONT,
            Deny("mode", "the mode dontAsk never asks, and the rule Bash in settings.json asks"),
        ),
    ],
)
def test_deny_beats_ask_beats_mode_beats_allow(
    rules: list[tuple[Behavior, str]], mode: PermissionMode, expected: Allow | Deny | Ask
) -> None:
    assert decide(call("Bash", command="make"), context(mode, *rules)) == expected


def test_an_allow_rule_does_not_free_a_guarded_path() -> None:
    decided = decide(call("Edit", PROJECT / ".git" / "config"), context(DEFAULT, ("allow", "Edit")))
    assert decided == Ask(f"{PROJECT}/.git/config can change what later commands do, so a person decides")


def test_a_link_that_leads_outside_is_outside(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path)
    ctx = PolicyContext(EDITS, (), ((tmp_path / "in").resolve(),), None, MatchContext((tmp_path / "in",), tmp_path))
    assert isinstance(decide(call("Edit", tmp_path / "in" / "link" / "a"), ctx), Ask)
    assert isinstance(decide(call("Edit", tmp_path / "in" / "a"), ctx), Allow)


@pytest.mark.spec("PM-2")
def test_rules_that_were_read_anew_count_from_the_next_decision_on() -> None:
    """Many times over, so that new rules stand where old ones were in memory."""
    for number in range(300):
        behavior: Behavior = "allow" if number % 2 else "deny"
        rules = context(DEFAULT, (behavior, "Edit(src/**)"), ("ask", f"Read(other-{number}/**)"))
        found = decide(call("Edit", PROJECT / "src" / "a.py"), rules)
        assert isinstance(found, Allow if behavior == "allow" else Deny)

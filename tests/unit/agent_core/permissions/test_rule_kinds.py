"""Every kind of rule but Bash: what it speaks of, and what is said of one that is not understood (PM-2, B12)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_core.permissions.path_rules import ignores_case
from agent_core.permissions.rule_faults import fault
from agent_core.permissions.rules import Match, MatchContext, match, parse_rule
from agent_core.permissions.types import Behavior, PermissionFacts

HOME, PROJECT = Path("/home/me"), Path("/w/project")
YES, NO, UNCLEAR = Match.YES, Match.NO, Match.UNCLEAR
NOTHING = PermissionFacts()


def found(
    rule: str, behavior: Behavior, tool: str, facts: PermissionFacts, *, name: str = "", ignore_case: bool = False
) -> Match:
    parsed = parse_rule(rule, behavior, "s", PROJECT)
    assert parsed is not None
    return match(parsed, tool, facts, name, MatchContext((PROJECT,), HOME, ignore_case))


def given(**input: Any) -> PermissionFacts:
    return PermissionFacts(input=input)


def url(text: str) -> PermissionFacts:
    return PermissionFacts(url=text)


def writes(path: str) -> PermissionFacts:
    return PermissionFacts(writes=(Path(path),))


@pytest.mark.spec("PM-2")
@pytest.mark.parametrize(
    ("rule", "tool", "deny", "allow"),
    [
        ("*", "Bash", YES, NO),
        ("mcp__*", "mcp__git__log", YES, NO),
        ("*__log", "mcp__git__log", YES, NO),
        ("mcp__git", "mcp__git__log", YES, YES),
        ("mcp__git", "mcp__github__log", NO, NO),
        ("mcp__git__*", "mcp__git__log", YES, YES),
        ("mcp__git__*", "mcp__github__log", NO, NO),
        ("mcp__git__get_*", "mcp__git__get_log", YES, YES),
        ("mcp__git__get_*", "mcp__git__set_log", NO, NO),
        ("mcp__g*__log", "mcp__git__log", YES, NO),
        ("mcp__git__log", "mcp__git__log", YES, YES),
        ("mcp__git__log", "mcp__git__log__all", YES, NO),
        ("Web*", "WebSearch", YES, NO),
        ("Edit", "Write", YES, NO),
        ("Read", "Grep", YES, NO),
    ],
)
def test_names_of_tools_and_servers(rule: str, tool: str, deny: Match, allow: Match) -> None:
    assert (found(rule, "deny", tool, NOTHING), found(rule, "ask", tool, NOTHING)) == (deny, deny)
    assert found(rule, "allow", tool, NOTHING) is allow


@pytest.mark.spec("PM-2")
@pytest.mark.parametrize(
    ("rule", "tool", "facts", "deny"),
    [
        ("Agent(model:opus)", "Agent", given(model="opus"), YES),
        ("Agent(model:opus)", "Agent", given(model="sonnet"), NO),
        ("Agent(model:*)", "Agent", given(model="sonnet"), YES),
        ("Agent(model:*)", "Agent", given(), NO),
        ("Agent(isolation:worktree)", "Agent", given(isolation="worktree"), YES),
        ("Bash(run_in_background:true)", "Bash", given(command="ls", run_in_background=True), YES),
        ("Bash(run_in_background:true)", "Bash", given(command="ls", run_in_background=False), NO),
        ("Bash(run_in_background:true)", "Bash", given(command="ls"), NO),
        ("Grep(multiline:false)", "Grep", given(multiline=False), YES),
        ("Grep(multiline:null)", "Grep", given(multiline=None), YES),
        ("Grep(head_limit:5)", "Grep", given(head_limit=5), YES),
        ("Grep(type:p*)", "Grep", given(type="py"), YES),
        ("Grep(extra:x)", "Grep", given(extra=["x"]), UNCLEAR),
        ("Grep(path:x)", "Grep", given(path="x"), UNCLEAR),
        ("mcp__db__query(table:users)", "mcp__db__query", given(table="users"), YES),
        ("mcp__db__*(table:users)", "mcp__db__query", given(table="orders"), NO),
        ("Grep(type:py)", "Grep", NOTHING, UNCLEAR),
    ],
)
def test_a_parameter_restricts_and_never_allows(rule: str, tool: str, facts: PermissionFacts, deny: Match) -> None:
    assert found(rule, "deny", tool, facts, name="general-purpose") is deny
    assert found(rule, "allow", tool, facts, name="general-purpose") is not YES


@pytest.mark.parametrize(
    ("rule", "name", "expected"),
    [("Agent(fork)", "fork", YES), ("Agent(fork)", "Explore", NO), ("Agent(team:reviewer)", "team:reviewer", YES)],
)
def test_agents_by_what_is_started(rule: str, name: str, expected: Match) -> None:
    assert found(rule, "deny", "Agent", NOTHING, name=name) is expected
    assert found(rule, "allow", "Agent", NOTHING, name=name) is expected


@pytest.mark.parametrize(
    ("rule", "skill", "allow", "deny"),
    [
        ("Skill(review)", "review", YES, YES),
        ("Skill(review)", "/review", YES, YES),
        ("Skill(review)", "review 12", NO, YES),
        ("Skill(review *)", "review 12", YES, YES),
        ("Skill(review *)", "review", YES, YES),
        ("Skill(review *)", "reviewer 12", NO, NO),
        ("Skill(review)", "deploy", NO, NO),
    ],
)
def test_skills(rule: str, skill: str, allow: Match, deny: Match) -> None:
    facts = PermissionFacts(skill=skill)
    assert (found(rule, "allow", "Skill", facts), found(rule, "deny", "Skill", facts)) == (allow, deny)


@pytest.mark.spec("PM-2")
@pytest.mark.parametrize(
    ("rule", "address", "expected"),
    [
        ("domain:example.com", "https://example.com/a", YES),
        ("domain:Example.COM", "https://EXAMPLE.com./a", YES),
        ("domain:example.com", "example.com/a", YES),
        ("domain:example.com", "https://a.example.com/", NO),
        ("domain:example.com", "https://example.com.evil.net/", NO),
        ("domain:example.com", "https://example.com@evil.net/", NO),
        ("domain:*.example.com", "https://a.b.example.com/", YES),
        ("domain:*.example.com", "https://example.com/", NO),
        ("domain:*.example.com", "https://evilexample.com/", NO),
        ("domain:docs.*.com", "https://docs.x.com/", YES),
        ("domain:docs.*.com", "https://docs.x.y.com/", NO),
        ("domain:*", "https://anything.net/", YES),
        ("domain:example.com", "https://example.com\\@evil.net/", UNCLEAR),
        ("domain:example.com", "https://exam\tple.com/", UNCLEAR),
        ("domain:example.com", "https://[bad/", UNCLEAR),
        ("example.com", "https://example.com/", UNCLEAR),
        ("domain:", "https://example.com/", UNCLEAR),
    ],
)
def test_domains(rule: str, address: str, expected: Match) -> None:
    for behavior in ("deny", "allow"):
        assert found(f"WebFetch({rule})", behavior, "WebFetch", url(address)) is expected


@pytest.mark.spec("PM-2")
@pytest.mark.parametrize(
    ("rule", "behavior", "tool", "path", "expected"),
    [
        ("Read(~/Desktop/**)", "deny", "Read", "/home/me/Desktop/a", YES),
        ("Read(secrets-*/config.json)", "deny", "Read", "/w/project/secrets-a/config.json", YES),
        ("Read(**/secrets-*/config.json)", "deny", "Read", "/w/project/x/secrets-a/config.json", YES),
        ("Read(secrets/)", "deny", "Grep", "/w/project/secrets", YES),
        ("Edit(secrets/)", "allow", "Edit", "/w/project/secrets", NO),
        ("Edit(src/**)", "allow", "Read", "/w/project/src/a", YES),
        ("Edit(src/**)", "deny", "Read", "/w/project/src/a", NO),
        ("Edit(src/**)", "allow", "LSP", "/w/project/src/a", YES),
        ("Edit(./a)", "allow", "Edit", "/w/project/a", YES),
        ("Edit(./a)", "allow", "Edit", "/w/project/b/a", NO),
        ("Edit(./a)", "deny", "Edit", "/w/project/b/a", YES),
        ("Edit(a)", "allow", "Edit", "/w/project/b/a", YES),
        ("Edit(\\*)", "allow", "Edit", "/w/project/*", YES),
        ("Edit(\\*)", "allow", "Edit", "/w/project/a", NO),
        ("Edit(x\\[1\\].py)", "allow", "NotebookEdit", "/w/project/x[1].py", YES),
        ("Edit(a)", "allow", "Edit", "/w/project/a\n", NO),
        ("Edit(**)", "deny", "Edit", "/w/project/a\nb", YES),
        ("Edit(?)", "allow", "Edit", "/w/project", NO),
        ("Edit(**)", "allow", "Edit", "/w/project", YES),
        ("Write(secrets/**)", "deny", "Write", "/w/project/secrets/a", UNCLEAR),
        ("Write(secrets/**)", "deny", "Write", "/w/project/other/a", NO),
    ],
)
def test_b12_paths(rule: str, behavior: Behavior, tool: str, path: str, expected: Match) -> None:
    assert found(rule, behavior, tool, writes(path)) is expected


def test_where_the_disk_ignores_case_a_restriction_does_and_an_allow_does_not(tmp_path: Path) -> None:
    for ignore_case, expected in ((True, YES), (False, NO)):
        assert (
            found("Read(Secrets/**)", "deny", "Read", writes("/w/project/sECRETS/a"), ignore_case=ignore_case)
            is expected
        )
    assert found("Edit(Src/**)", "allow", "Edit", writes("/w/project/src/a"), ignore_case=True) is NO
    folder = tmp_path / "Folder"
    folder.mkdir()
    assert ignores_case(folder) is (tmp_path / "fOLDER").exists()


@pytest.mark.parametrize(
    ("behavior", "rule", "part"),
    [
        ("deny", "__proto__(x)", "there is no tool '__proto__'"),
        ("deny", "constructor", "there is no tool 'constructor'"),
        ("allow", "Raed", "did you mean Read?"),
        ("allow", "mcp__*", "only behind mcp__<server>__; it allows nothing"),
        ("allow", "*", "only behind mcp__<server>__"),
        ("allow", "Agent(model:opus)", "only deny and ask rules can name a parameter"),
        ("deny", "WebFetch(url:x)", "write WebFetch(domain:...); until then it asks"),
        ("deny", "Grep(path:x)", "cannot name the parameter path"),
        ("deny", "Write(src/**)", "write Edit(src/**); until then it asks"),
        ("allow", "Glob(src/**)", "write Read(src/**); it allows nothing"),
        ("deny", "Read(!x)", "is no path pattern in gitignore syntax"),
        ("deny", "Edit([a)", "is no path pattern in gitignore syntax"),
        ("allow", "WebFetch(example.com)", "WebFetch does not understand 'example.com'"),
        ("allow", "WebSearch(x)", "WebSearch does not understand 'x'"),
        ("deny", "WebFetch(domain:)", "WebFetch does not understand 'domain:'"),
    ],
)
def test_b12_a_fault_names_the_rule_and_what_to_write(behavior: Behavior, rule: str, part: str) -> None:
    parsed = parse_rule(rule, behavior, "s")
    assert parsed is not None
    text = fault(parsed)
    assert text is not None and text.startswith(f"{rule}: ") and part in text


@pytest.mark.parametrize(
    ("behavior", "rule"),
    [
        ("allow", "Bash(git *)"),
        ("allow", "Edit(/docs/**)"),
        ("deny", "*"),
        ("deny", "mcp__*"),
        ("allow", "mcp__git__get_*"),
        ("deny", "Agent(isolation:worktree)"),
        ("allow", "Agent(fork)"),
        ("allow", "Skill(review *)"),
        ("ask", "WebFetch(domain:*.example.com)"),
        ("deny", "Grep(multiline:true)"),
        ("deny", "Read(secrets-*/config.json)"),
        ("allow", "Cd(~/x)"),
    ],
)
def test_good_rules_have_no_fault(behavior: Behavior, rule: str) -> None:
    parsed = parse_rule(rule, behavior, "s")
    assert parsed is not None and fault(parsed) is None

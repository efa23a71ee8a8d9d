"""A rule that was made of one approval covers that and nothing else (PM-2, PM-5)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from agent_core.permissions.decision import decide
from agent_core.permissions.options import options_for
from agent_core.permissions.policy import Call, PolicyContext
from agent_core.permissions.rules import Match, MatchContext, match, parse_rule
from agent_core.permissions.types import (
    Allow,
    Ask,
    Behavior,
    Deny,
    OptionKind,
    PermissionFacts,
    PermissionMode,
    PermissionRule,
    ToolKind,
)

HOME, WORK = Path("/nonexistent/home"), Path("/nonexistent/work")
CONTEXT = MatchContext((WORK,), HOME)
NAME = st.text(
    st.sampled_from("ab .*?[]!#\\(){}-~'\"$é") | st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/"),
    min_size=1,
    max_size=8,
).filter(lambda name: name not in (".", ".."))
PATH = st.lists(NAME, min_size=1, max_size=4).map(lambda names: Path("/nonexistent", *names))


def offered(tool: str, facts: PermissionFacts, kind: OptionKind = OptionKind.ALLOW_SESSION) -> PermissionRule | None:
    """The rule that this answer would store, as it is read back."""
    call = Call(tool, ToolKind.EXECUTE if tool == "Bash" else ToolKind.EDIT, False, facts)
    ctx = PolicyContext(PermissionMode.DEFAULT, (), (WORK,), None, CONTEXT)
    option = next((each for each in options_for(call, ctx, None) if each.kind is kind), None)
    behavior: Behavior = "allow" if kind.allows else "deny"
    return parse_rule(option.rules[0], behavior, "test", WORK) if option else None


def bash(command: str) -> PermissionFacts:
    return PermissionFacts(command=command, cwd=WORK)


@pytest.mark.spec("PM-5")
@given(
    PATH,
    PATH,
    st.sampled_from(["Edit", "Read"]),
    st.sampled_from([OptionKind.ALLOW_SESSION, OptionKind.REJECT_SESSION]),
)
@example(Path("/nonexistent/ "), Path("/nonexistent/0"), "Edit", OptionKind.ALLOW_SESSION)
def test_a_rule_made_from_a_path_matches_it_and_nothing_else(
    path: Path, other: Path, tool: str, kind: OptionKind
) -> None:
    def facts(where: Path) -> PermissionFacts:
        return PermissionFacts(writes=(where,)) if tool == "Edit" else PermissionFacts(reads=(where,))

    rule = offered(tool, facts(path), kind)
    assume(rule is not None)
    assert rule is not None
    assert match(rule, tool, facts(path), "", CONTEXT) is Match.YES
    neighbours = {other, path.parent, path.with_name(path.name + "x"), path.with_name("x" + path.name)}
    for near in neighbours - {path}:
        inside = near.is_relative_to(path)
        assert inside or match(rule, tool, facts(near), "", CONTEXT) is Match.NO, near


RULES = st.lists(
    st.builds(
        parse_rule,
        st.sampled_from(["Bash", "Bash(a)", "Bash(b)", "Bash(a *)", "Edit", "Edit(//nonexistent/x)", "Read", "B*"]),
        st.sampled_from(["deny", "ask", "allow"]),
        st.just("test"),
    ),
    max_size=5,
)
CALLS = st.sampled_from(
    [
        Call("Bash", ToolKind.EXECUTE, False, bash("a")),
        Call("Bash", ToolKind.EXECUTE, False, bash("b")),
        Call("Edit", ToolKind.EDIT, False, PermissionFacts(writes=(Path("/nonexistent/x"),))),
        Call("Write", ToolKind.EDIT, False, PermissionFacts(writes=(WORK / "y",))),
        Call("Read", ToolKind.READ, True, PermissionFacts(reads=(Path("/nonexistent/x"),))),
    ]
)


@pytest.mark.spec("PM-1", "PM-2")
@given(RULES, CALLS, st.sampled_from(PermissionMode))
def test_deny_then_ask_and_no_mode_or_allow_gets_past_them(
    rules: list[PermissionRule], call: Call, mode: PermissionMode
) -> None:
    hits = {rule.behavior for rule in rules if match(rule, call.tool, call.facts, "", CONTEXT) is Match.YES}
    decision = decide(call, PolicyContext(mode, tuple(rules), (WORK,), None, CONTEXT))
    if "deny" in hits:
        assert isinstance(decision, Deny) and decision.decided_by == "rule"
    elif "ask" in hits:
        assert isinstance(decision, Deny if mode is PermissionMode.DONT_ASK else Ask)
    elif isinstance(decision, Allow) and decision.decided_by == "rule":
        assert "allow" in hits
    elif mode is PermissionMode.DONT_ASK:
        assert not isinstance(decision, Ask)


@given(RULES, CALLS, st.sampled_from(PermissionMode), st.randoms(use_true_random=False))
def test_the_order_of_rules_does_not_matter(
    rules: list[PermissionRule], call: Call, mode: PermissionMode, random: object
) -> None:
    shuffled = list(rules)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    kinds = {type(decide(call, PolicyContext(mode, tuple(each), (WORK,), None, CONTEXT))) for each in (rules, shuffled)}
    assert len(kinds) == 1

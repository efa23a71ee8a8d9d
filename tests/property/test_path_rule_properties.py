"""Path rules against git: an allow rule covers at most what `git check-ignore` says, a deny rule at least that."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from agent_core.permissions.decision import decide
from agent_core.permissions.path_rules import MatchContext, compiled
from agent_core.permissions.policy import Call, PolicyContext
from agent_core.permissions.rules import Match, match, parse_rule
from agent_core.permissions.types import (
    Allow,
    Ask,
    Behavior,
    Deny,
    PermissionFacts,
    PermissionMode,
    PermissionRule,
    ToolKind,
)
from tests.git_helpers import Repo, clean_git, repo

__all__ = ["clean_git", "repo"]  # fixtures

HOME = Path("/nonexistent/home")
# Without letters beyond ASCII: there git counts bytes, and a person means letters.
NAME = st.text(st.sampled_from("abB.-_ []!#\\*?{}$\n"), min_size=1, max_size=4).filter(
    lambda name: name not in (".", "..") and not name.casefold().startswith(".git")
)
INSIDE = st.lists(NAME, min_size=1, max_size=4).map("/".join)
PIECE = st.sampled_from(["a", "b", "B", "*", "**", "?", "a*", "*b", "[ab]", "[!a]", "[a-b]", ".", "\\*", "\\a", "a b"])
SHAPED = st.tuples(
    st.sampled_from(["", "/", "./"]),
    st.lists(PIECE, min_size=1, max_size=4).map("/".join),
    st.sampled_from(["", "/", "/**"]),
).map("".join)
PATTERN = SHAPED | st.text(st.sampled_from("ab*?[]!\\-/^: "), min_size=1, max_size=8)


def ignored(repo: Repo, pattern: str, path: str) -> bool:
    """By the answer of the real thing, for a pattern in the repository's exclude file."""
    (repo.path / ".git" / "info" / "exclude").write_bytes(pattern.encode() + b"\n")
    run = subprocess.run(
        ["git", "check-ignore", "--no-index", "-q", "--", f"./{path}"], cwd=repo.path, capture_output=True, check=False
    )
    assert run.returncode in (0, 1), run.stderr
    return run.returncode == 0


def found(rule_text: str, behavior: Behavior, path: Path, root: Path) -> Match:
    rule = parse_rule(f"Edit({rule_text})", behavior, "test", root)
    assert rule is not None
    return match(rule, "Edit", PermissionFacts(writes=(path,)), "", MatchContext((root,), HOME))


@pytest.mark.spec("PM-2")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(PATTERN, INSIDE)
@example("a/**", "b/a/b")
@example("**", "a/b\n")
@example("a", "a\n")
@example("[!a]/b", "b/b")
@example("a/**/b", "a/b")
@example("b/**/", "b/?")
@example("[[:alpha:]-]/x", "a/x")
def test_an_allow_rule_covers_nothing_that_git_would_not_match(repo: Repo, pattern: str, path: str) -> None:
    assume(compiled(pattern, "allow", False) is not None)
    if found(pattern, "allow", repo.path / path, repo.path) is Match.YES:
        assert ignored(repo, pattern.removeprefix("./"), path)


@pytest.mark.spec("PM-2")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(PATTERN, INSIDE)
@example("secrets-*/config.json", "secrets-a/config.json")
@example("**", "a\nb")
@example("a/*", "a/b/c")
@example("*/", "?/?")
def test_a_deny_rule_misses_nothing_that_git_would_match(repo: Repo, pattern: str, path: str) -> None:
    if ignored(repo, pattern.removeprefix("./"), path):
        assert found(pattern, "deny", repo.path / path, repo.path) is not Match.NO


RULES = st.lists(
    st.builds(
        lambda pattern, behavior: parse_rule(f"Edit({pattern})", behavior, "test", HOME),
        SHAPED | st.sampled_from(["//nonexistent/home/**", "~/a", "!x", "[", "a "]),
        st.sampled_from(["deny", "ask", "allow"]),
    ).filter(lambda rule: rule is not None),
    max_size=5,
)
WIDTH = {Deny: 0, Ask: 1, Allow: 2}


@pytest.mark.spec("PM-2")
@given(RULES, RULES, INSIDE, st.sampled_from(PermissionMode))
def test_a_further_restriction_never_makes_a_decision_wider(
    rules: list[PermissionRule], more: list[PermissionRule], path: str, mode: PermissionMode
) -> None:
    call = Call("Edit", ToolKind.EDIT, False, PermissionFacts(writes=(HOME / path,)))
    restrictions = [rule for rule in more if rule.behavior != "allow"]

    def width(found: list[PermissionRule]) -> int:
        context = PolicyContext(mode, tuple(found), (HOME,), None, MatchContext((HOME,), HOME))
        return WIDTH[type(decide(call, context))]

    assert width([*rules, *restrictions]) <= width(rules)
    assert width([*restrictions, *rules]) <= width(rules)

"""How long a decision among hundreds of rules takes: edits and reads deep in a project, with rules of every kind."""

from __future__ import annotations

import time
from itertools import cycle, islice
from pathlib import Path

from agent_core.permissions.policy import Call, PolicyContext, decide
from agent_core.permissions.rules import MatchContext, parse_rule
from agent_core.permissions.types import Behavior, PermissionFacts, PermissionMode, PermissionRule, ToolKind

RULES = 500
_ROOT = Path("/nonexistent/project")
_KINDS: tuple[tuple[Behavior, str], ...] = (
    ("allow", "Bash(make target-{n} *)"),
    ("allow", "Edit(src/part-{n}/**)"),
    ("deny", "Read(**/secrets-{n}-*/config.json)"),
    ("allow", "mcp__server{n}__get_*"),
    ("ask", "Edit(/docs/chapter-{n}/*.md)"),
    ("allow", "WebFetch(domain:*.example-{n}.com)"),
    ("deny", "Read(~/private-{n}/**)"),
    ("allow", "Read(//opt/data-{n}/**)"),
)


def measure(count: int) -> list[float]:
    """Seconds of each of so many decisions, that no rule makes short: none matches."""
    rules = tuple(_rule(number, *kind) for number, kind in enumerate(islice(cycle(_KINDS), RULES)))
    matching = MatchContext((_ROOT / "packages" / "one", _ROOT), Path("/nonexistent/home"))
    context = PolicyContext(PermissionMode.DEFAULT, rules, (_ROOT,), None, matching)
    return [_timed(call, context) for call in islice(cycle(_calls()), count)]


def _rule(number: int, behavior: Behavior, text: str) -> PermissionRule:
    rule = parse_rule(text.format(n=number), behavior, "settings.json", _ROOT)
    assert rule is not None
    return rule


def _calls() -> tuple[Call, ...]:
    path = _ROOT / "packages" / "one" / "src" / "deep" / "down" / "module.py"
    outside = Path("/nonexistent/elsewhere/a/b/c.txt")
    return (
        Call("Edit", ToolKind.EDIT, False, PermissionFacts(writes=(path,))),
        Call("Read", ToolKind.READ, True, PermissionFacts(reads=(outside,))),
        Call("WebFetch", ToolKind.FETCH, False, PermissionFacts(url="https://docs.example.org/x")),
        Call("mcp__other__tool", ToolKind.OTHER, False, PermissionFacts(input={})),
    )


def _timed(call: Call, context: PolicyContext) -> float:
    begun = time.perf_counter()
    decide(call, context)
    return time.perf_counter() - begun

"""Every command of the corpus is decided as it stands there, and the corpus is as wide as it claims to be."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest
import tree_sitter
import tree_sitter_bash

from agent_core.permissions.decision import decide
from agent_core.permissions.policy import Call, PolicyContext
from agent_core.permissions.rules import MatchContext, parse_rule
from agent_core.permissions.types import PermissionFacts, PermissionMode, ToolKind
from tests.shell_corpus import CATEGORIES, PLACE, Rules, entries, furnish, rule_sets

HOME = Path("/nonexistent/home")
ENTRIES = entries()
PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    furnish(work)
    return work


def context(folder: Path, rules: Rules) -> PolicyContext:
    parsed = [parse_rule(text, behavior, "s", folder) for behavior, texts in rules.items() for text in texts]
    assert None not in parsed
    matching = MatchContext((folder,), HOME)
    given = tuple(rule for rule in parsed if rule)
    return PolicyContext(PermissionMode.DEFAULT, given, (folder.resolve(),), None, matching)


def shape(node: tree_sitter.Node) -> str:
    """The types of all nodes, without their texts."""
    return f"({node.type} {' '.join(map(shape, node.children))})" if node.children else node.type


@pytest.mark.spec("PM-4", "PM-2")
@pytest.mark.parametrize("name", sorted(rule_sets()))
def test_b7_each_command_is_decided_as_it_should(folder: Path, name: str) -> None:
    ctx = context(folder, rule_sets()[name])
    wrong = []
    for entry in ENTRIES:
        facts = PermissionFacts(command=entry.command, cwd=folder, input={"command": entry.command})
        found = type(decide(Call("Bash", ToolKind.EXECUTE, False, facts), ctx)).__name__.lower()
        if found != entry.decisions[name]:
            wrong.append((entry.category, entry.command, f"{found} instead of {entry.decisions[name]}"))
    assert wrong == []


def test_the_corpus_is_wide() -> None:
    counts = Counter(entry.category for entry in ENTRIES)
    files = {path.stem for path in PLACE.glob("*.toml")}
    assert files == {*CATEGORIES, "rules"}
    assert {category: count for category, count in counts.items() if count < 25} == {}
    assert sum(counts.values()) >= 400
    assert sum(entry.sentinel for entry in ENTRIES) >= 120
    decided = Counter((name, decision) for entry in ENTRIES for name, decision in entry.decisions.items())
    often = {("plain", "allow"), ("usual", "allow"), ("guard", "allow"), ("plain", "ask"), ("guard", "deny")}
    assert {each for each in often if decided[each] < 60} == set()


def test_no_two_commands_have_the_same_shape() -> None:
    shapes: dict[str, list[str]] = defaultdict(list)
    for entry in ENTRIES:
        shapes[shape(PARSER.parse(entry.command.encode()).root_node)].append(entry.command)
    assert [commands for commands in shapes.values() if len(commands) > 1] == []


def test_what_must_not_run_is_allowed_nowhere() -> None:
    names = set(rule_sets())
    assert [entry.command for entry in ENTRIES if set(entry.decisions) != names] == []
    assert [entry.command for entry in ENTRIES if entry.sentinel and "allow" in entry.decisions.values()] == []

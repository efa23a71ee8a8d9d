"""Every requirement id is proven by a test that names it, or stands in spec_ids.toml with the part that will."""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).parent
TABLE = tomllib.loads((TESTS / "spec_ids.toml").read_text("utf-8"))
IDS = {f"{section}-{number}" for section, count in TABLE["sections"].items() for number in range(1, count + 1)}
OPEN = {identifier for identifiers in TABLE["open"].values() for identifier in identifiers}


def proven() -> dict[str, list[str]]:
    """Ids to the test files that mark them."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "spec":
                for argument in node.args:
                    if isinstance(argument, ast.Constant):
                        found[str(argument.value)].append(str(path.relative_to(TESTS)))
    return found


def test_every_id_is_proven_or_open() -> None:
    assert sorted(IDS - set(proven()) - OPEN) == []


def test_no_test_and_no_row_names_an_id_that_does_not_exist() -> None:
    assert sorted((set(proven()) | OPEN) - IDS) == []


def test_no_id_is_open_twice() -> None:
    rows = [identifier for identifiers in TABLE["open"].values() for identifier in identifiers]
    assert sorted(rows) == sorted(set(rows))

"""Every row of mutants.toml still fits the code, and there are tests that name its id."""

from __future__ import annotations

import ast

import pytest

from tests.tools.mutants import ROOT, Mutant, mutants, named_tests

TESTS = named_tests()


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.title)
def test_the_line_is_there_exactly_once_and_the_mutant_is_a_program(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text("utf-8")
    assert text.count(mutant.before) == 1
    assert mutant.before != mutant.after
    ast.parse(text.replace(mutant.before, mutant.after))
    assert TESTS[mutant.id], f"no test names {mutant.id}"


def test_no_row_is_there_twice() -> None:
    rows = [(mutant.file, mutant.before, mutant.after) for mutant in mutants()]
    assert len(rows) == len(set(rows))

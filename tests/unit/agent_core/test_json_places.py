"""Where values stand in a JSON text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.json_places import Where, line_of, spans

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


def every(value: Any, where: Where = ()) -> dict[Where, Any]:
    found = {where: value}
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        found |= every(each, (*where, key))
    return found


@given(JSON, st.sampled_from([None, 0, 2, "\t"]), st.booleans())
def test_each_span_holds_exactly_its_value(value: Any, indent: int | str | None, ascii: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii)
    found = spans(text)
    assert {where: json.loads(text[span.start : span.end]) for where, span in found.items()} == every(value)


def test_lines_are_those_of_keys_and_elements() -> None:
    text = '{\n "a": [\n  1,\n  {"b":\n 2}],\n "c": 3}'
    lines = {where: line_of(text, span.lead) for where, span in spans(text).items()}
    assert lines == {(): 0, ("a",): 1, ("a", 0): 2, ("a", 1): 3, ("a", 1, "b"): 3, ("c",): 5}


@pytest.mark.parametrize("text", ['{"a": [1, 2], "a": [3]}', '{"a": {"b": 1}, "a": {}}'])
def test_of_a_key_that_is_there_twice_the_last_one_counts(text: str) -> None:
    assert {where: json.loads(text[each.start : each.end]) for where, each in spans(text).items()} == every(
        json.loads(text)
    )

"""Wire types to JSON and back: camelCase, optional fields left out, nothing coerced."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_core.errors import InvalidParams
from lsp_server import protocol as wire
from lsp_server.wire import camel, from_wire, to_wire


@pytest.mark.parametrize(("name", "expected"), [("agent_id", "agentId"), ("id", "id"), ("cost_usd", "costUsd")])
def test_names(name: str, expected: str) -> None:
    assert camel(name) == expected


def test_optional_fields_are_left_out_and_others_never() -> None:
    usage = wire.Usage(0, 0, 0, 0, 0, 0, 0)
    assert to_wire(usage) == {
        "inputTokens": 0,
        "outputTokens": 0,
        "cacheReadTokens": 0,
        "cacheCreationTokens": 0,
        "toolUses": 0,
        "turns": 0,
        "durationMs": 0,
    }
    assert to_wire(wire.ApplyResult([], [], 0)) == {"applied": [], "conflicts": [], "remaining": 0}


def test_nested_values_both_ways() -> None:
    data = {"agentId": "a", "files": [{"path": "x", "hunks": ["1", "2"]}, {"path": "y"}], "dryRun": True}
    value = wire.ApplyParams("a", [wire.FileSelection("x", ["1", "2"]), wire.FileSelection("y")], True)
    assert from_wire(data, wire.ApplyParams) == value
    assert to_wire(value) == data


def test_unknown_fields_are_ignored_and_null_means_absent() -> None:
    assert from_wire({"agentId": "a", "scope": None, "later": 1}, wire.StopParams) == wire.StopParams("a")


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        (wire.StopParams, {"agentId": "a", "scope": "all"}, "scope: must be one of turn, agent, tree, not 'all'"),
        (wire.StopParams, {"agentId": None}, "agentId: must be a text, not None"),
        (wire.StopParams, "a", "params: must be an object, not 'a'"),
        (wire.TranscriptParams, {"agentId": "a", "limit": True}, "limit: must be a whole number, not True"),
        (wire.TranscriptParams, {"agentId": "a", "limit": 1.0}, "limit: must be a whole number, not 1.0"),
        (wire.ApplyParams, {"agentId": "a", "files": "x"}, "files: must be a list, not 'x'"),
        (
            wire.ApplyParams,
            {"agentId": "a", "files": [{"path": "x", "hunks": [1]}]},
            "files[0].hunks[0]: must be a text, not 1",
        ),
        (wire.ApplyParams, {"agentId": "a", "files": [{}]}, "files[0].path: is missing"),
        (wire.AnswerParams, {"requestId": "r", "updatedInput": []}, "updatedInput: must be an object, not []"),
        (wire.SpawnParams, {"prompt": "x" * 100, "cwd": ["y" * 100]}, f"cwd: must be a text, not ['{'y' * 55}..."),
    ],
)
def test_a_fault_names_the_path_of_the_field(kind: type, data: Any, message: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        from_wire(data, kind)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("sent", "taken"),
    [
        ("\\ud83d", "\ufffd"),
        ("a\\ude00b", "a\ufffdb"),
        ("\\ud83d\\ud83d\\ude00", "\ufffd\U0001f600"),
        ("\\ude00\\ud83d", "\ufffd\ufffd"),
    ],
)
def test_lone_surrogates_come_no_further_in_any_text(sent: str, taken: str) -> None:
    text = json.loads(f'"{sent}"')
    given = {"requestId": text, "comment": text, "updatedInput": {text: [{"x": text}, 1, None]}}
    found = from_wire(given, wire.AnswerParams)
    assert found == wire.AnswerParams(taken, comment=taken, updated_input={taken: [{"x": taken}, 1, None]})
    shown = to_wire(wire.AnswerParams(text, comment=text, updated_input={text: [{"x": text}]}))
    assert shown == {"requestId": taken, "comment": taken, "updatedInput": {taken: [{"x": taken}]}}

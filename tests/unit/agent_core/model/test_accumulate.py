"""Stream events to one message; a stream that was cut off is never taken for success."""

from __future__ import annotations

from typing import Any

import pytest

from agent_core.errors import RetryableModelError
from agent_core.events import TextDelta, ThinkingDelta
from agent_core.ids import MessageId
from agent_core.messages import (
    Message,
    ModelReply,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    Usage,
)
from agent_core.model.accumulate import Accumulator

START = {
    "type": "message_start",
    "message": {
        "usage": {
            "input_tokens": 10,
            "cache_read_input_tokens": 5,
            "cache_creation_input_tokens": 2,
            "output_tokens": 1,
        }
    },
}
STOP: list[dict[str, Any]] = [
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
    {"type": "message_stop"},
]


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text(value: str) -> dict[str, Any]:
    return {"type": "text_delta", "text": value}


def json_piece(value: str) -> dict[str, Any]:
    return {"type": "input_json_delta", "partial_json": value}


def accumulate(events: list[dict[str, Any]]) -> tuple[ModelReply, list[Any]]:
    made = Accumulator(MessageId("m"))
    deltas = [delta for event in events if (delta := made.feed(event)) is not None]
    return made.reply(), deltas


TOOL = {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}


def test_a_whole_stream() -> None:
    reply, deltas = accumulate(
        [
            START,
            *block(
                0,
                {"type": "thinking", "thinking": "", "signature": ""},
                {"type": "thinking_delta", "thinking": "hm"},
                {"type": "signature_delta", "signature": "sig"},
            ),
            *block(1, {"type": "redacted_thinking", "data": "xyz"}),
            *block(2, {"type": "text", "text": ""}, text("I "), text("read")),
            *block(3, TOOL, json_piece(""), json_piece('{"file_path": '), json_piece('"a"}')),
            {"type": "ping"},
            {"type": "something_new"},
            *STOP,
        ]
    )
    content = (
        ThinkingBlock("hm", "sig"),
        RedactedThinkingBlock("xyz"),
        TextBlock("I read"),
        ToolUseBlock("t1", "Read", {"file_path": "a"}),
    )
    usage = Usage(input_tokens=10, output_tokens=7, cache_read_tokens=5, cache_creation_tokens=2, turns=1)
    assert reply == ModelReply(Message(MessageId("m"), "assistant", content), "end_turn", usage)
    assert deltas == [
        ThinkingDelta(MessageId("m"), "hm"),
        TextDelta(MessageId("m"), "I "),
        TextDelta(MessageId("m"), "read"),
    ]


@pytest.mark.parametrize(
    ("blocks", "content"),
    [
        (block(0, {"type": "text", "text": ""}), ()),
        (block(0, {"type": "text", "text": ""}, text(" \n\n")), ()),
        (block(0, TOOL), (ToolUseBlock("t1", "Read", {}),)),
        (block(0, TOOL, json_piece('{"a": [1, {"b": "c')), ()),
        (block(0, TOOL, json_piece('"a text"')), ()),
        (block(0, {"type": "server_tool_use", "id": "x"}), ()),
        (block(0, {"type": "text", "text": "at once"}), (TextBlock("at once"),)),
    ],
    ids=["empty text", "blank text", "no input", "cut off", "no object", "unknown kind", "text at start"],
)
def test_what_must_not_be_sent_back_is_left_out(blocks: list[dict[str, Any]], content: tuple[Any, ...]) -> None:
    reply, _ = accumulate([START, *blocks, *STOP])
    assert reply.message.content == content


@pytest.mark.parametrize(
    "events",
    [[], [START], [START, *block(0, {"type": "text", "text": ""}, text("half"))], [START, STOP[0]], [START, STOP[1]]],
)
def test_a_stream_that_ended_early_is_an_error_worth_a_retry(events: list[dict[str, Any]]) -> None:
    with pytest.raises(RetryableModelError, match="cut off"):
        accumulate(events)


def test_lone_surrogates_of_a_model_never_get_into_the_history() -> None:
    half = "\ud83d"
    reply, deltas = accumulate(
        [
            START,
            *block(0, {"type": "thinking"}, {"type": "thinking_delta", "thinking": f"t{half}"}),
            *block(1, {"type": "text", "text": ""}, text(f"a{half}"), text("\ude00"), text(half)),
            *block(2, {"type": "tool_use", "id": "u", "name": "N"}, json_piece('{"k\\ud83d": ["\\ude00"]}')),
            *STOP,
        ]
    )
    assert reply.message.content == (
        ThinkingBlock("t\ufffd", ""),
        TextBlock("a\U0001f600\ufffd"),
        ToolUseBlock("u", "N", {"k\ufffd": ["\ufffd"]}),
    )
    assert not any("\ud800" <= each <= "\udfff" for delta in deltas for each in str(delta))

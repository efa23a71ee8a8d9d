"""However a stream is cut into pieces, the message is the same; what is sent back is what a request may hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.errors import RetryableModelError
from agent_core.events import TextDelta
from agent_core.ids import MessageId
from agent_core.messages import RedactedThinkingBlock, TextBlock, ThinkingBlock, ToolUseBlock
from agent_core.model.accumulate import Accumulator

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
BLOCKS = st.lists(
    st.one_of(
        st.builds(TextBlock, TEXT),
        st.builds(ThinkingBlock, TEXT, TEXT),
        st.builds(RedactedThinkingBlock, TEXT),
        st.builds(ToolUseBlock, st.just("t"), st.just("Tool"), st.dictionaries(TEXT, JSON, max_size=4)),
    ),
    max_size=4,
)
STOP = [
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]


def pieces(data: st.DataObject, text: str) -> list[str]:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def block_events(data: st.DataObject, block: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Its start and its deltas, cut at random places."""
    match block:
        case TextBlock(text):
            return {"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in pieces(data, text)]
        case ThinkingBlock(text, signature):
            deltas = [{"type": "thinking_delta", "thinking": p} for p in pieces(data, text)]
            signed = [{"type": "signature_delta", "signature": p} for p in pieces(data, signature)]
            return {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, *signed]
        case RedactedThinkingBlock(value):
            return {"type": "redacted_thinking", "data": value}, []
        case ToolUseBlock(id, name, value):
            text = json.dumps(value, ensure_ascii=data.draw(st.booleans()))
            deltas = [{"type": "input_json_delta", "partial_json": p} for p in pieces(data, text)]
            return {"type": "tool_use", "id": id, "name": name, "input": {}}, deltas
        case _:
            raise AssertionError(block)


def stream(data: st.DataObject, blocks: list[Any]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"usage": {"input_tokens": 1}}}]
    for index, block in enumerate(blocks):
        start, deltas = block_events(data, block)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    noise = data.draw(st.lists(st.integers(0, len(events)), max_size=3))
    for place in sorted(noise, reverse=True):
        events.insert(place, {"type": data.draw(st.sampled_from(["ping", "something_new"]))})
    return [*events, *STOP]


@given(BLOCKS, st.data())
def test_any_chunking_gives_the_same_message(blocks: list[Any], data: st.DataObject) -> None:
    made = Accumulator(MessageId("m"))
    deltas = [delta for event in stream(data, blocks) if (delta := made.feed(event)) is not None]
    seen = tuple(block for block in blocks if not isinstance(block, TextBlock) or block.text.strip())
    assert made.reply().message.content == seen
    shown = "".join(delta.delta for delta in deltas if isinstance(delta, TextDelta))
    assert shown == "".join(block.text for block in blocks if isinstance(block, TextBlock))


@given(BLOCKS, st.data())
def test_the_order_of_keys_is_kept(blocks: list[Any], data: st.DataObject) -> None:
    """The bytes of a tool's input are part of the cached prefix (I2)."""
    made = Accumulator(MessageId("m"))
    for event in stream(data, blocks):
        made.feed(event)
    sent = [json.dumps(block.input) for block in blocks if isinstance(block, ToolUseBlock)]
    assert [json.dumps(use.input) for use in made.reply().message.tool_uses] == sent


@given(BLOCKS, st.data())
def test_a_stream_that_was_cut_off_anywhere_is_never_a_reply(blocks: list[Any], data: st.DataObject) -> None:
    events = stream(data, blocks)
    made = Accumulator(MessageId("m"))
    for event in events[: data.draw(st.integers(0, len(events) - 1))]:
        made.feed(event)
    with pytest.raises(RetryableModelError):
        made.reply()

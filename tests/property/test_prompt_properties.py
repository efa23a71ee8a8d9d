"""A prompt only grows, byte for byte, and never has more breakpoints than the service takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.ids import MessageId
from agent_core.messages import ImageBlock, Message, RedactedThinkingBlock, TextBlock, ThinkingBlock, ToolUseBlock
from agent_core.model.prompt import Prompt
from tests.unit.agent_core.builders import result

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=10)
USER = st.lists(
    st.builds(TextBlock, TEXT) | st.builds(result, TEXT, TEXT, st.booleans()) | st.just(ImageBlock("image/png", "AA")),
    min_size=1,
    max_size=3,
)
ASSISTANT = st.lists(
    st.builds(TextBlock, TEXT)
    | st.builds(ThinkingBlock, TEXT, TEXT)
    | st.builds(RedactedThinkingBlock, TEXT)
    | st.builds(ToolUseBlock, TEXT, TEXT, st.dictionaries(TEXT, TEXT, max_size=3)),
    max_size=3,
)
MESSAGES = st.lists(
    st.builds(lambda blocks: Message(MessageId("u"), "user", tuple(blocks)), USER)
    | st.builds(lambda blocks: Message(MessageId("a"), "assistant", tuple(blocks)), ASSISTANT),
    min_size=1,
    max_size=12,
)
HEAD = Prompt(({"name": "Read", "input_schema": {"b": 1, "a": 2}},), ({"type": "text", "text": "You"},))


def wire(prompt: Prompt) -> list[str]:
    """What is cached, in order, as text: tools, system, each message; without the marks, which move."""
    request = prompt.request("m", 1)
    return [json.dumps(strip(part)) for part in (*request.tools, *request.system, *request.messages)]


def strip(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: strip(item) for key, item in value.items() if key != "cache_control"}
    return [strip(item) for item in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.spec("TL-5")
@given(MESSAGES, MESSAGES)
def test_appending_keeps_the_prefix_byte_for_byte(before: list[Message], after: list[Message]) -> None:
    first = HEAD.append(*before)
    text = wire(first)
    longer = first.append(*after)
    assert longer.starts_with(first)
    assert wire(longer)[: len(text)] == text
    assert wire(first) == text
    one_by_one = first
    for message in after:
        one_by_one = one_by_one.append(message)
    assert wire(one_by_one) == wire(longer)


@given(MESSAGES)
def test_never_more_than_four_breakpoints_and_always_one_at_the_end(messages: list[Message]) -> None:
    request = HEAD.append(*messages).request("m", 1)
    text = json.dumps([list(request.tools), list(request.system), list(request.messages)])
    assert 1 <= text.count('"cache_control"') <= 4
    users = [message for message in request.messages if message["role"] == "user"]
    if users:
        assert "cache_control" in users[-1]["content"][-1]


@given(MESSAGES)
def test_no_message_is_empty(messages: list[Message]) -> None:
    sent = HEAD.append(*messages).request("m", 1).messages
    assert [message["content"] for message in sent if not message["content"]] == []
    assert len(sent) == sum(1 for message in messages if message.content)

"""The prompt only grows, and its breakpoints are laid where siblings and later turns find them."""

from __future__ import annotations

from typing import Any

import pytest

from agent_core.messages import ImageBlock, Message, TextBlock, ThinkingBlock, ToolResultBlock
from agent_core.model.prompt import Prompt, render_message
from tests.unit.agent_core.builders import assistant, result, use, user

MARK = {"type": "ephemeral"}
EMPTY = Prompt(({"name": "Read"},), ({"type": "text", "text": "You"},))


def marked(messages: Any) -> list[tuple[int, int]]:
    return [
        (number, place)
        for number, message in enumerate(messages)
        for place, block in enumerate(message["content"])
        if "cache_control" in block
    ]


@pytest.mark.spec("TL-5")
def test_appending_shares_the_fragments_of_the_prefix() -> None:
    first = EMPTY.append(user("a"))
    longer = first.append(assistant("b"), user("c"))
    assert longer.starts_with(first) and not first.starts_with(longer)
    assert longer.messages[0] is first.messages[0]
    assert longer.tools is EMPTY.tools and longer.system is EMPTY.system


def test_breakpoints_stand_at_the_system_prompt_and_the_last_two_user_messages() -> None:
    prompt = EMPTY.append(
        user("go"), assistant(use("1"), use("2")), user(result("1"), result("2")), assistant("x"), user("y")
    )
    request = prompt.request("m", 10)
    assert request.system == [{"type": "text", "text": "You", "cache_control": MARK}]
    assert marked(request.messages) == [(2, 1), (4, 0)]
    assert [message for message in prompt.messages if "cache_control" in str(message)] == []


def test_never_more_than_four_breakpoints() -> None:
    prompt = EMPTY
    for number in range(30):
        prompt = prompt.append(user(f"u{number}"), assistant(f"a{number}"))
    request = prompt.request("m", 10)
    assert len(marked(request.messages)) + 1 <= 4


def test_an_empty_answer_is_not_sent() -> None:
    assert EMPTY.append(user("a"), assistant(), user("b")).messages == EMPTY.append(user("a"), user("b")).messages


@pytest.mark.parametrize(
    ("message", "content"),
    [
        (assistant(ThinkingBlock("hm", "s")), [{"type": "thinking", "thinking": "hm", "signature": "s"}]),
        (
            assistant(use("t", "Edit", b=1, a=2)),
            [{"type": "tool_use", "id": "t", "name": "Edit", "input": {"b": 1, "a": 2}}],
        ),
        (
            user(result("t", "no", is_error=True)),
            [
                {
                    "type": "tool_result",
                    "tool_use_id": "t",
                    "content": [{"type": "text", "text": "no"}],
                    "is_error": True,
                }
            ],
        ),
        (
            user(ToolResultBlock("t", (TextBlock(""), ImageBlock("image/png", "AA==")))),
            [
                {
                    "type": "tool_result",
                    "tool_use_id": "t",
                    "content": [
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
                    ],
                }
            ],
        ),
    ],
    ids=["thinking", "key order", "error result", "empty text left out"],
)
def test_rendering(message: Message, content: list[Any]) -> None:
    rendered = render_message(message)
    assert rendered == {"role": message.role, "content": content}
    if content[0]["type"] == "tool_use":
        assert list(rendered["content"][0]["input"]) == ["b", "a"]

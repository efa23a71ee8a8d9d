"""What the model server refuses, with the words and the position that the service gives."""

from __future__ import annotations

import anthropic
import pytest

from lsp_server.demo.script import Script, Thinking, conversation, say, use

pytestmark = pytest.mark.anyio

USER = {"role": "user", "content": "go"}
TOOL = {"name": "Read", "input_schema": {"type": "object"}}
CACHE = {"type": "ephemeral"}
PAIR = "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
MISSING = "`tool_use` ids were found without `tool_result` blocks immediately after"


def text(value="x", **more):
    return {"type": "text", "text": value, **more}


def calls(*ids):
    blocks = [{"type": "tool_use", "id": use_id, "name": "Gone", "input": {}} for use_id in ids]
    return {"role": "assistant", "content": blocks}


def results(*ids, after=()):
    blocks = [{"type": "tool_result", "tool_use_id": use_id, "content": "r"} for use_id in ids]
    return {"role": "user", "content": [*blocks, *after]}


def user(*blocks):
    return {"messages": [{"role": "user", "content": list(blocks)}]}


def talk(*messages):
    return {"messages": [USER, *messages]}


def assistant(*blocks):
    return talk({"role": "assistant", "content": list(blocks)}, USER)


REFUSED = [
    ({"max_tokens": None}, "max_tokens: Input should be a valid integer"),
    ({"max_tokens": 0}, "max_tokens: Input should be greater than or equal to 1"),
    ({"temperature": 2}, "temperature: range: 0..1"),
    ({"tool": []}, "tool: Extra inputs are not permitted"),
    ({"messages": []}, "messages: at least one message is required"),
    ({"messages": [calls("a"), results("a")]}, 'messages.0: first message must use the "user" role'),
    (
        talk({"role": "assistant", "content": "x"}),
        "messages.1: This model does not support assistant message prefill. "
        "The conversation must end with a user message.",
    ),
    ({"messages": [{**USER, "name": "bob"}]}, "messages.0.name: Extra inputs are not permitted"),
    (
        {"messages": [{"role": "tool", "content": "x"}]},
        "messages.0.role: Input should be 'user', 'assistant' or 'system'",
    ),
    (talk({"role": "system", "content": "x"}), "messages.1.role: role 'system' is not supported on this model"),
    ({"messages": [{"role": "user", "content": []}]}, "messages.0: user messages must have non-empty content"),
    (user(text("")), "messages: text content blocks must be non-empty (messages.0.content.0)"),
    (user(text(" \n")), "messages: text content blocks must contain non-whitespace text (messages.0.content.0)"),
    (
        user(text("", cache_control=CACHE)),
        "messages.0.content.0.cache_control: cache_control cannot be set for empty text blocks",
    ),
    ({"system": [text("")]}, "system: text content blocks must be non-empty (system.0)"),
    (user({"type": "text", "text": "x", "id": 1}), "messages.0.content.0.text.id: Extra inputs are not permitted"),
    (
        user({"type": "toolResult"}),
        "messages.0.content.0: Input tag 'toolResult' found using 'type' does not match any of the expected tags: "
        "'text', 'image', 'document', 'search_result', 'tool_use', 'tool_result', 'thinking', 'redacted_thinking'",
    ),
    (
        user({"type": "tool_use", "id": "a", "name": "b", "input": {}}),
        "messages.0.content.0: `tool_use` blocks are not permitted in `user` messages",
    ),
    (talk(calls("a"), USER), f"messages.2: {MISSING}: a. {PAIR}"),
    (talk(calls("a", "b"), results("a")), f"messages.2: {MISSING}: b. {PAIR}"),
    (talk(calls("a"), USER, results("a")), f"messages.2: {MISSING}: a. {PAIR}"),
    (
        talk(calls("a"), {"role": "user", "content": [text(), *results("a")["content"]]}),
        f"messages.2.content: {MISSING}: `tool_result` blocks must come first in the message, text after them",
    ),
    (
        talk(calls("a"), results("a", "zz")),
        "messages.2.content.1: unexpected `tool_use_id` found in `tool_result` blocks: zz. Each `tool_result` block "
        "must have a corresponding `tool_use` block in the previous message.",
    ),
    (
        talk(calls("a"), results("a", "a")),
        "messages.2.content.0: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a",
    ),
    (
        talk(calls("a"), results("a"), calls("a"), results("a")),
        "messages.3: `tool_use` ids must be unique (found a twice)",
    ),
    (
        talk(calls("a b"), results("a b")),
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    (
        assistant({"type": "tool_use", "id": "a", "name": "b", "input": "{}"}),
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
    ),
    (
        talk(calls("a"), {"role": "user", "content": [{**results("a")["content"][0], "content": [text("")]}]}),
        "messages: text content blocks must be non-empty (messages.2.content.0.tool_result.content.0)",
    ),
    (
        assistant({"type": "thinking", "thinking": "I", "signature": "nope"}),
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    (
        assistant({"type": "thinking", "thinking": "I", "signature": "sig", "cache_control": CACHE}),
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
    ),
    (
        {"system": [text(cache_control=CACHE)] * 2, **user(*[text(cache_control=CACHE)] * 3)},
        "A maximum of 4 blocks with cache_control may be provided. Found 5: system.0, system.1, messages.0.content.0, "
        "messages.0.content.1, messages.0.content.2.",
    ),
    (
        {"system": [text(cache_control=CACHE)], **user(text(cache_control={**CACHE, "ttl": "1h"}))},
        "messages.0.content.0.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
        "cache_control block",
    ),
    (user(text(cache_control={})), "messages.0.content.0.cache_control.type: Input should be 'ephemeral'"),
    (
        user(text(cache_control={**CACHE, "ttl": "1d"})),
        "messages.0.content.0.cache_control.ttl: Input should be '5m' or '1h'",
    ),
    ({"tools": [TOOL, TOOL]}, "tools.1: tools: Tool names must be unique."),
    ({"tools": [{**TOOL, "name": "a.b"}]}, "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"),
    ({"tools": [{"name": "a"}]}, "tools.0.custom.input_schema: Field required"),
    ({"tools": [{**TOOL, "kind": "read"}]}, "tools.0.custom.kind: Extra inputs are not permitted"),
    (
        {"tools": [{"name": "a", "input_schema": {"type": "object", "properties": {"x": {"type": "strin"}}}}]},
        "tools.0.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12",
    ),
    (
        {"tools": [{"name": "a", "input_schema": {"type": "object", "anyOf": []}}]},
        "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
    ),
    ({"tool_choice": {"type": "tool", "name": "Z"}}, "tool_choice: Tool 'Z' not found in provided tools"),
    (
        {"thinking": {"type": "enabled", "budget_tokens": 2000}},
        "thinking.type.enabled: not supported by this model, use thinking.type.adaptive",
    ),
    (
        {"model": "claude-sonnet-4-5", "thinking": {"type": "enabled", "budget_tokens": 2000}},
        "`max_tokens` must be greater than `thinking.budget_tokens`.",
    ),
]


async def send(client, **changes):
    body = {"model": "claude-sonnet-5", "max_tokens": 100, "tools": [TOOL], **talk(), **changes}
    return await client.post("/v1/messages", body=body, cast_to=object)


@pytest.fixture
async def client(serve):
    _, client = await serve(Script((conversation(say("fine"), repeat_last=True),), check_prefix=False))
    return client


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=range(len(REFUSED)))
async def test_refused(client, changes, message):
    with pytest.raises(anthropic.BadRequestError) as caught:
        await send(client, **changes)
    assert caught.value.body["error"] == {"type": "invalid_request_error", "message": message}


ACCEPTED = [
    talk(calls("a", "b"), results("b", "a", after=[text("next")])),
    talk(USER, calls("a"), results("a"), USER),
    talk({"role": "assistant", "content": [text(), text()]}, {"role": "user", "content": "go"}),
    {**talk(USER, {"role": "system", "content": "now plan"}, USER), "model": "claude-opus-5"},
    {"system": [text(cache_control={**CACHE, "ttl": "1h"})], **user(*[text(cache_control=CACHE)] * 3)},
    assistant({"type": "thinking", "thinking": "", "signature": "sig"}, {"type": "redacted_thinking", "data": "q"}),
    talk(calls("a"), {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}),
    {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
]


@pytest.mark.parametrize("changes", ACCEPTED, ids=range(len(ACCEPTED)))
async def test_accepted(client, changes):
    assert (await send(client, **changes))["content"] == [text("fine")]


async def test_unknown_model_is_not_found(client):
    with pytest.raises(anthropic.NotFoundError) as caught:
        await send(client, model="gpt-7")
    assert caught.value.body["error"] == {"type": "not_found_error", "message": "model: gpt-7"}


async def test_half_a_surrogate_is_no_json(client):
    with pytest.raises(anthropic.BadRequestError, match="not valid JSON: no low surrogate in string"):
        await client.post(
            "/v1/messages",
            content=b'{"model":"claude-sonnet-5","max_tokens":9,"messages":[{"role":"user","content":"\\ud83d"}]}',
            cast_to=object,
        )


async def test_strict_roles_refuses_two_in_a_row(serve):
    _, client = await serve(Script((conversation(say("x")),), strict_roles=True))
    with pytest.raises(anthropic.BadRequestError) as caught:
        await send(client, **talk(USER))
    text = 'roles must alternate between "user" and "assistant", but found multiple "user" roles in a row'
    assert caught.value.body["error"]["message"] == f"messages.1: {text}"


async def test_a_prompt_beyond_the_limit_is_refused(serve):
    _, client = await serve(Script((conversation(say("x")),), context_tokens=100))
    with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: \d{3} tokens > 100 maximum"):
        await send(client, **user(text("word " * 100)))


async def test_thinking_must_stay_within_a_tool_loop_while_the_model_does(serve):
    script = Script((conversation(say(Thinking("why"), use("Read")), say("done")),), check_prefix=False)
    _, client = await serve(script)
    answer = await send(client, thinking={"type": "adaptive"})
    whole = {"role": "assistant", "content": answer["content"]}
    cut = {"role": "assistant", "content": answer["content"][1:]}
    done = results(answer["content"][1]["id"])
    asked = {"thinking": {"type": "adaptive"}}
    with pytest.raises(
        anthropic.BadRequestError, match=r"messages\.1\.content\.0: `thinking` or .* cannot be modified"
    ):
        await send(client, **asked, **talk(cut, done))
    assert (await send(client, **asked, **talk(whole, done)))["stop_reason"] == "end_turn"
    assert (await send(client, **asked, **talk(cut, done), model="claude-opus-5"))["stop_reason"] == "end_turn"
    assert (await send(client, **talk(cut, done)))["stop_reason"] == "end_turn"

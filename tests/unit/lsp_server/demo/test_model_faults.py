"""Each fault of a script as the real SDK meets it."""

from __future__ import annotations

import asyncio
import json

import anthropic
import httpx2
import pytest

from lsp_server.demo.loading import ScriptError, dump_script, load_script
from lsp_server.demo.script import Fault, RedactedThinking, Script, Thinking, conversation, say, use

pytestmark = pytest.mark.anyio

ASK = {"model": "claude-sonnet-5", "max_tokens": 100, "messages": [{"role": "user", "content": "go"}]}


def script(fault, **options):
    return Script((conversation(say("hello world", fault=fault, chunk=4, **options)),))


async def read(client):
    """(text received, what ended it)."""
    texts = []
    try:
        async with client.messages.stream(**ASK) as stream:
            async for text in stream.text_stream:
                texts += [text]
            return "".join(texts), (await stream.get_final_message()).stop_reason
    except (anthropic.AnthropicError, httpx2.HTTPError, ValueError) as error:
        return "".join(texts), error


async def test_status_with_headers_then_success(serve):
    fault = Fault("status", (1,), status=429, type="rate_limit_error", message="slow", headers={"retry-after-ms": "20"})
    server, client = await serve(script(fault))
    text, error = await read(client)
    assert (text, error.status_code, error.body["error"]) == ("", 429, {"type": "rate_limit_error", "message": "slow"})
    assert error.response.headers["retry-after-ms"] == "20"
    assert await read(client) == ("hello world", "end_turn")
    assert [(e.attempt, e.outcome, e.status) for e in server.log] == [(1, "rate_limit_error", 429), (2, "ok", 200)]


async def test_sdk_retries_an_overload(serve):
    server, client = await serve(script(Fault("status", (1, 2), headers={"retry-after-ms": "5"})))
    answer = await client.with_options(max_retries=2).messages.create(**ASK)
    assert (answer.content[0].text, len(server.log)) == ("hello world", 3)


async def test_drop_before_and_after_some_events(serve):
    _, client = await serve(script(Fault("drop", (1,))))
    text, error = await read(client)
    assert (text, type(error)) == ("", anthropic.APIConnectionError)
    assert await read(client) == ("hello world", "end_turn")
    server, client = await serve(script(Fault("drop", after_events=4)))
    text, error = await read(client)
    assert (text, type(error)) == ("hell", httpx2.RemoteProtocolError)
    assert [(e.outcome, e.closed_early_ns) for e in server.log] == [("drop", None)]


async def test_no_stop_ends_in_order_without_a_reason(serve):
    _, client = await serve(script(Fault("no_stop")))
    assert await read(client) == ("hello world", None)


async def test_error_event_in_the_stream(serve):
    _, client = await serve(script(Fault("error_event", after_events=5)))
    text, error = await read(client)
    assert (text, error.status_code, error.body["error"]["type"]) == ("hello wo", 200, "overloaded_error")


async def test_malformed_event(serve):
    _, client = await serve(script(Fault("malformed", after_events=4)))
    text, error = await read(client)
    assert text == "hell"
    assert isinstance(error, json.JSONDecodeError | anthropic.APIError)


@pytest.mark.parametrize("kind", ["hang", "ping"])
async def test_endless_answers_until_the_client_goes(serve, kind):
    server, client = await serve(script(Fault(kind, after_events=4, every_ms=20)))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(read(client), 0.2)
    await server.wait_until(lambda: server.log[0].closed_early_ns is not None)
    assert (server.log[0].outcome, server.log[0].sent_ns) == (kind, None)


async def test_read_timeout_hits_a_hang_but_not_pings(serve):
    hang = Fault("hang", after_events=4)
    _, client = await serve(script(hang))
    text, error = await read(client.with_options(timeout=0.15))
    assert (text, type(error)) == ("hell", httpx2.ReadTimeout)
    _, client = await serve(script(Fault("ping", after_events=4, every_ms=20)))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(read(client.with_options(timeout=0.15)), 0.6)


async def test_a_stream_fault_on_a_plain_request_is_a_fault_of_the_script(serve):
    _, client = await serve(script(Fault("no_stop")))
    with pytest.raises(anthropic.InternalServerError, match="the fault 'no_stop' needs a stream"):
        await client.messages.create(**ASK)


def test_a_script_survives_its_json_form():
    blocks = ("hi", Thinking("t", "sig1"), RedactedThinking("zz"), use("Read", path="x"))
    turns = (say(*blocks, when="w"), say(fault=Fault("drop", (2,), headers={"a": "b"}), usage={"input_tokens": 3}))
    whole = Script((conversation(*turns, name="n", system="s", offset=2),), invalid_keys=("bad",))
    assert load_script(json.loads(json.dumps(dump_script(whole)))) == whole


WRONG = [
    ([], "script: expected an object"),
    ({}, "script: Script.__init__() missing 1 required positional argument: 'conversations'"),
    ({"conversations": {}}, "script.conversations: expected a list"),
    (
        {"conversations": [{"turns": [{"content": [{"type": "txt"}]}]}]},
        "script.conversations.0.turns.0.content.0: expected a string or an object whose type is one of text, thinking, "
        "redacted_thinking, tool_use",
    ),
    (
        {"conversations": [{"turns": [[{"pause": 1}]]}]},
        "script.conversations.0.turns.0.0: unknown key 'pause'; known are content, stop_reason, usage, chunk, "
        "first_byte_ms, per_delta_ms, fault, gate, when, prefix_changed",
    ),
]


@pytest.mark.parametrize(("data", "message"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_script_is_refused_with_the_place(data, message):
    with pytest.raises(ScriptError) as caught:
        load_script(data)
    assert str(caught.value) == message

"""The scripted Messages API as the real SDK sees it."""

from __future__ import annotations

import asyncio
import json
import sys
import time
import urllib.error
import urllib.request

import anthropic
import pytest

from lsp_server.demo.loading import dump_script
from lsp_server.demo.script import Conversation, Match, Script, Text, Thinking, ToolUse, Turn, conversation, say, use
from lsp_server.demo.signing import sign

pytestmark = pytest.mark.anyio

READ = {
    "name": "Read",
    "description": "reads",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}
HELLO = {"role": "user", "content": "hello"}


def ask(**changes):
    return {"model": "claude-sonnet-5", "max_tokens": 100, "messages": [HELLO], "tools": [READ], **changes}


def result(use_id, text="data"):
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use_id, "content": text}]}


FULL = Script((conversation(say(Thinking("let me see"), "I read ünïcode.", use("Read", path="a.py"), chunk=3)),))
BLOCKS = [
    {"type": "thinking", "thinking": "let me see", "signature": sign("let me see")},
    {"type": "text", "text": "I read ünïcode."},
    {"type": "tool_use", "id": "toolu_conversation_0_2", "name": "Read", "input": {"path": "a.py"}},
]


def dump(message):
    return [block.model_dump(exclude_none=True) for block in message.content]


async def test_stream_and_plain_answer_are_the_same_message(serve):
    server, client = await serve(FULL)
    async with client.messages.stream(**ask()) as stream:
        streamed = await stream.get_final_message()
    plain = await client.messages.create(**ask())
    assert dump(streamed) == [*dump(plain)[:2], BLOCKS[2]] == BLOCKS
    assert (streamed.id, plain.id) == ("msg_conversation_0", "msg_conversation_0_again2")
    assert (streamed.stop_reason, streamed.usage.output_tokens) == ("tool_use", plain.usage.output_tokens)
    assert [(e.outcome, e.status, e.turn, e.attempt) for e in server.log] == [("ok", 200, 0, 1), ("ok", 200, 0, 2)]


async def test_events_are_those_of_the_service_in_order(serve):
    _, client = await serve(Script((conversation(say("abcde", chunk=2)),)))
    stream = await client.messages.create(**ask(), stream=True)
    events = [event.type async for event in stream]
    block = ["content_block_start", *["content_block_delta"] * 3, "content_block_stop"]
    assert events == ["message_start", *block, "message_delta", "message_stop"]


async def test_assistant_messages_choose_the_turn_and_templates_take_from_the_request(serve):
    script = Script((conversation(say(use("Read", path="{{first_user}}.py")), say("got {{last_tool_result~d(.)t}}!")),))
    server, client = await serve(script)
    first = await client.messages.create(**ask())
    messages = [HELLO, {"role": "assistant", "content": dump(first)}, result(first.content[0].id)]
    second = await client.messages.create(**ask(messages=messages))
    assert (first.content[0].input, second.content[0].text) == ({"path": "hello.py"}, "got a!")
    assert server.problems == []


async def test_first_matching_conversation_answers(serve):
    conversations = (
        conversation(say("fork"), name="fork", last_user="FORK", offset=1),
        conversation(say("haiku"), name="haiku", model="haiku"),
        conversation(say("system"), name="system", system="be a bee"),
        conversation(say("later"), name="rest", repeat_last=True),
    )
    _, client = await serve(Script(conversations))
    history = [HELLO, {"role": "assistant", "content": "hi"}]
    requests = [
        ask(messages=[*history, {"role": "user", "content": "FORK now"}]),
        ask(model="claude-haiku-4-5"),
        ask(system="You be a bee."),
        ask(messages=[*history, HELLO]),
    ]
    answers = [(await client.messages.create(**request)).content[0].text for request in requests]
    assert answers == ["fork", "haiku", "system", "later"]


async def test_alternatives_by_attempt_and_by_what_was_said(serve):
    turns = ((Turn((Text("busy"),)), Turn((Text("free"),)), Turn((Text("for bob"),), when="bob")),)
    _, client = await serve(Script((Conversation(turns),)))
    bob = {"role": "user", "content": "I am bob"}
    said = [(await client.messages.create(**ask())).content[0].text for _ in range(2)]
    said += [(await client.messages.create(**ask(messages=[bob]))).content[0].text for _ in range(3)]
    assert said == ["busy", "free", "busy", "free", "for bob"]


SCRIPT_FAULTS = [
    (Script((conversation(say(use("Write", path="a"))),)), "the tool 'Write', which the request does not offer (Read)"),
    (
        Script((conversation(say(use("Read", path=3))),)),
        "the tool's schema at 'path': 3 is not of type 'string'",
    ),
    (
        Script((conversation(say("x"), name="other", first_user="bye"),)),
        "no conversation of the script (other)",
    ),
    (Script((conversation(say("x"), offset=1),)), "has 1 turns, but the request holds 0 assistant messages"),
    (Script((conversation(say("{{last_tool_result}}")),)), "the request holds no tool_result"),
    (Script((conversation(say("{{nonsense}}")),)), "unknown template {{nonsense}}"),
]


@pytest.mark.parametrize(("script", "words"), SCRIPT_FAULTS, ids=[words[:25] for _, words in SCRIPT_FAULTS])
async def test_fault_of_the_script_is_told_and_not_to_be_retried(serve, script, words):
    server, client = await serve(script)
    with pytest.raises(anthropic.InternalServerError) as caught:
        await client.with_options(max_retries=2).messages.create(**ask())
    assert words in caught.value.body["error"]["message"]
    assert words in server.problems[0]
    assert len(server.log) == 1


async def test_unchecked_lets_the_model_misbehave(serve):
    uses = (ToolUse("Nope", {}, unchecked=True), ToolUse("Read", {"path": 3}, unchecked=True))
    _, client = await serve(Script((conversation(say(*uses)),)))
    answer = await client.messages.create(**ask())
    assert [(block.name, block.input) for block in answer.content] == [("Nope", {}), ("Read", {"path": 3})]


async def test_changed_prefix_is_a_fault_unless_the_script_gives_a_reason(serve):
    turns = (say("a"), say("b"), say("c", prefix_changed="compaction"))
    server, client = await serve(Script((conversation(*turns),)))
    said = {"role": "assistant", "content": "a"}
    await client.messages.create(**ask())
    await client.messages.create(**ask(messages=[HELLO, said, HELLO]))
    with pytest.raises(anthropic.InternalServerError, match=r"messages\.0 differs"):
        await client.messages.create(**ask(messages=[{**HELLO, "content": "bye"}, said, HELLO]))
    with pytest.raises(anthropic.InternalServerError, match="`system` differs"):
        await client.messages.create(**ask(messages=[HELLO, said, HELLO], system="new"))
    with pytest.raises(anthropic.InternalServerError, match="`tools` differ"):
        await client.messages.create(**ask(messages=[HELLO, said, HELLO], tools=[{**READ, "description": "x"}]))
    await client.messages.create(**ask(messages=[{**HELLO, "content": "bye"}, said, HELLO, said, HELLO]))
    assert len(server.problems) == 3


async def test_moving_a_breakpoint_does_not_change_the_prefix(serve):
    server, client = await serve(Script((conversation(say("a"), say("b")),)))
    marked = {"role": "user", "content": [{"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}}]}
    await client.messages.create(**ask(messages=[marked]))
    await client.messages.create(**ask(messages=[HELLO, {"role": "assistant", "content": "a"}, marked]))
    assert server.problems == []


async def test_authorization(serve):
    script = Script((conversation(say("x")),), invalid_keys=("stolen",))
    server, client = await serve(script)
    by_header = client.with_options(default_headers={"authorization": "", "x-api-key": "k"})
    assert (await client.messages.create(**ask())).content[0].text == "x"
    assert (await by_header.messages.create(**ask())).content[0].text == "x"
    with pytest.raises(anthropic.AuthenticationError) as caught:
        await client.with_options(api_key="stolen").messages.create(**ask())
    assert caught.value.body["error"] == {"type": "authentication_error", "message": "invalid x-api-key"}
    assert [set(e.headers) & {"authorization", "x-api-key"} for e in server.log] == [set()] * 3


async def test_delays_and_early_close_are_in_the_log(serve):
    script = Script((conversation(say("abcdef", chunk=1, first_byte_ms=60, per_delta_ms=400)),))
    server, client = await serve(script)
    before = time.monotonic_ns()
    async with client.messages.stream(**ask()) as stream:
        async for event in stream:
            if event.type == "message_start":
                break
    await server.wait_until(lambda: server.log[0].closed_early_ns is not None)
    entry = server.log[0]
    assert before < entry.arrived_ns < entry.begun_ns < entry.closed_early_ns
    assert entry.begun_ns - entry.arrived_ns >= 59_000_000
    assert (entry.sent_ns, json.loads(entry.body)["messages"]) == (None, [HELLO])


async def test_a_gate_holds_an_answer(serve):
    server, client = await serve(Script((conversation(say("through", gate="{{first_user}}-gate")),)))
    task = asyncio.create_task(client.messages.create(**ask()))
    await server.wait_for(1)
    await asyncio.sleep(0.05)
    assert not task.done()
    server.gate("hello-gate").set()
    assert (await task).content[0].text == "through"


async def test_fifty_streams_at_once(serve):
    script = Script((conversation(say("word " * 40, chunk=5, per_delta_ms=5), first_user="agent"),), unique_ids=True)
    server, client = await serve(script)

    async def one(number):
        async with client.messages.stream(**ask(messages=[{"role": "user", "content": f"agent {number}"}])) as stream:
            return (await stream.get_final_message()).content[0].text

    assert await asyncio.gather(*(one(n) for n in range(50))) == ["word " * 40] * 50
    starts, ends = [e.arrived_ns for e in server.log], [e.sent_ns for e in server.log]
    assert max(starts) < min(ends)


async def test_models_and_counting(serve):
    server, client = await serve(FULL)
    models = await client.models.list()
    one = await client.models.retrieve("claude-opus-5")
    counted = await client.messages.count_tokens(model="claude-sonnet-5", messages=[HELLO])
    assert (models.data[0].id, one.display_name, counted.input_tokens) == ("claude-opus-5-5", "Claude Opus 5", 7)
    with pytest.raises(anthropic.NotFoundError):
        await client.models.retrieve("gpt-7")
    assert [e.path for e in server.log] == [
        "/v1/models",
        "/v1/models/claude-opus-5",
        "/v1/messages/count_tokens",
        "/v1/models/gpt-7",
    ]


async def test_the_command_serves_a_script_and_ends_with_stdin(tmp_path):
    script = Script((Conversation((say("one"),), "c", Match(first_user="hello")),))
    path = tmp_path / "script.json"
    path.write_text(json.dumps(dump_script(script)))
    command = [sys.executable, "-m", "lsp_server.demo.model_server", "--script", str(path)]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    try:
        async with asyncio.timeout(20):
            url = json.loads(await process.stdout.readline())["url"]
            async with anthropic.AsyncAnthropic(base_url=url, api_key="test", max_retries=0) as client:
                assert (await client.messages.create(**ask())).content[0].text == "one"
                waited = await asyncio.to_thread(http, f"{url}/_wait?n=1")
                short = await asyncio.to_thread(http, f"{url}/_wait?n=9&timeout_ms=10")
                new = {"conversations": [{"turns": [{"content": ["two"]}]}]}
                await asyncio.to_thread(http, f"{url}/_script?reset=1", json.dumps(new).encode())
                assert (await client.messages.create(**ask())).content[0].text == "two"
                log = await asyncio.to_thread(http, f"{url}/_log")
                wrong = await asyncio.to_thread(http, f"{url}/_script", b'{"conversation": []}')
            process.stdin.close()
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
    assert json.loads(waited["body"])["messages"] == [HELLO]
    assert short == {"error": "1 of 9 requests arrived in 0.01 s"}
    assert ([e["outcome"] for e in log["requests"]], log["problems"]) == (["ok"], [])
    assert wrong["error"].startswith("script: unknown key 'conversation'; known are conversations, ")


def http(url, data=None):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data), timeout=10) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)

"""The e2e client against a tiny server that misbehaves on request: each fault must be found."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.e2e.lsp_client import Failures, LspClient
from tests.e2e.wire import ResponseError

pytestmark = pytest.mark.anyio

SERVER = r"""
import json, os, subprocess, sys
def send(**body):
    data = json.dumps({"jsonrpc": "2.0", **body}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
    sys.stdout.buffer.flush()
def raw(text):
    sys.stdout.write(text)
    sys.stdout.flush()
def child(**kind):
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **kind)
code, replies = 0, []
while head := sys.stdin.buffer.readline():
    sys.stdin.buffer.readline()
    message = json.loads(sys.stdin.buffer.read(int(head.split(b":")[1])))
    method, params, number = message.get("method"), message.get("params"), message.get("id")
    if method == "exit":
        break
    elif method == "do":
        exec(params["code"])
        send(id=number, result=params.get("result"))
    elif method in ("initialize", "shutdown"):
        send(id=number, result={"echo": params} if params else None)
    elif method == "replies":
        send(id=number, result=replies)
    elif method == "fail":
        send(id=number, error={"code": -32803, "message": "no", "data": {"code": "conflict"}})
    elif method is None:
        replies.append({k: message[k] for k in ("id", "result", "error") if k in message})
sys.exit(code)
"""
ENV = {"PATH": os.environ["PATH"]}


@pytest.fixture
async def client(tmp_path):
    started = await LspClient.start([sys.executable, "-c", SERVER], env=ENV, cwd=tmp_path)
    yield started
    await started.kill()


async def do(client, code, result=None):
    return await client.request("do", {"code": code, "result": result})


async def test_requests_and_their_errors_and_an_orderly_end(client, tmp_path):
    echoed = await client.initialize(root=tmp_path, capabilities={"general": {}}, options={"trusted": True})
    assert echoed["echo"] == {
        "processId": os.getpid(),
        "rootUri": tmp_path.as_uri(),
        "workspaceFolders": [{"uri": tmp_path.as_uri(), "name": tmp_path.name}],
        "capabilities": {"general": {}},
        "initializationOptions": {"trusted": True},
    }
    assert await do(client, "", ["ünï", 1]) == ["ünï", 1]
    with pytest.raises(ResponseError) as caught:
        await client.request("fail")
    assert (caught.value.code, caught.value.data) == (-32803, {"code": "conflict"})
    await client.close()
    sent = [m.method for m in client.messages if m.direction == "out"]
    assert sent == ["initialize", "initialized", "do", "fail", "shutdown", "exit"]


async def test_handlers_answer_requests_of_the_server(client):
    client.on("ask", lambda params: {"got": params})
    client.script("scripted", 1, ResponseError(-1, "two"))

    async def slowly(params):
        return params + 1

    client.on("slow", slowly)
    for number, (method, params) in enumerate([("ask", 7), ("scripted", 0), ("scripted", 0), ("slow", 1)]):
        await do(client, f"send(id='s{number}', method={method!r}, params={params})")
    await do(client, "")
    replies = await client.request("replies")
    assert sorted(replies, key=lambda reply: reply["id"]) == [
        {"id": "s0", "result": {"got": 7}},
        {"id": "s1", "result": 1},
        {"id": "s2", "error": {"code": -1, "message": "two"}},
        {"id": "s3", "result": 2},
    ]
    await client.close()


async def test_a_held_request_is_answered_late_also_after_it_was_withdrawn(client):
    client.hold("ask")
    await do(client, "send(id=5, method='ask', params={'n': 1})")
    held = await client.held("ask")
    await do(client, "send(method='$/cancelRequest', params={'id': 5})")
    assert (held.params, held.withdrawn.is_set()) == ({"n": 1}, True)
    held.reply("late")
    assert await client.request("replies") == [{"id": 5, "result": "late"}]
    await client.close()


async def test_a_running_handler_is_cancelled_by_the_server(client):
    async def never(_):
        await client.expecting("never", timeout=30)

    client.on("ask", never)
    await do(client, "send(id=5, method='ask', params={})")
    await do(client, "send(method='$/cancelRequest', params={'id': 5})")
    await do(client, "")
    assert await client.request("replies") == [{"id": 5, "error": {"code": -32800, "message": "cancelled"}}]
    with pytest.raises(Failures, match="expected but never came: never"):
        await client.close()


async def test_expectations_find_earlier_and_later_messages_each_once(client):
    await do(client, "send(method='n', params=1); send(method='n', params=2)")
    assert await client.expect("n") == 1
    later = client.expecting("n", lambda params: params == 3)
    await do(client, "send(method='n', params=3)")
    assert (await later, await client.expect("n"), client.received("n")) == (3, 2, [1, 2, 3])
    with pytest.raises(TimeoutError, match=r"no n in 0\.05 s"):
        await client.expect("n", timeout=0.05)
    await client.close()


FAULTS = [
    ("raw('hello\\n')", "stdout: expected a header, got b'hello"),
    ("raw('Content-Length: 5\\r\\n\\r\\nabcde')", "stdout: a broken message: Expecting value"),
    ("raw('Content-Length: 2\\r\\n\\r\\n{}')", "stdout: no JSON-RPC 2.0 message: {}"),
    ("send(id=99, result=1)", "an answer that fits no request: "),
    ("send(id=1, result=1)", "an answer that fits no request: "),
    ("send(id='q', method='what', params={})", "nobody read: "),
    ("send(method='window/showMessage', params={'type': 1, 'message': 'oh'})", "nobody read: "),
    ("sys.stderr.write('Traceback (most recent call last):\\n')", "a traceback on stderr"),
    ("code = 3", "exit code 3, expected 0"),
    ("child()", "left behind: "),
    ("child(start_new_session=True, env={})", "left behind: "),
    ("subprocess.run([sys.executable, '-c', 'import subprocess; subprocess.Popen([\"sleep\", \"60\"], "
     "start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)'])", "left behind: "),
]  # fmt: skip


@pytest.mark.parametrize(("code", "message"), FAULTS, ids=range(len(FAULTS)))
async def test_every_fault_is_found_at_the_end(client, code, message):
    client.ask("do", {"code": code})
    with pytest.raises(Failures) as caught:
        await client.close()
    lines = str(caught.value).split("\nstderr: ")[0].splitlines()
    assert lines[0].startswith(message)
    assert len(lines) == 1 or message.startswith("stdout: ")
    assert await client._watch.left_behind(patience=0) == []


async def test_an_unread_request_was_answered_and_can_be_read(client):
    await do(client, "send(id='q', method='what', params={'a': 1})")
    assert await client.expect("what") == {"a": 1}
    assert await client.request("replies") == [{"id": "q", "error": {"code": -32601, "message": "unknown: what"}}]
    await client.close()


async def test_forbidden_messages_and_broken_handlers_are_problems(client):
    client.forbid("n", lambda params: params > 1)
    client.on("broken", lambda params: params["missing"])
    await do(client, "send(method='n', params=1); send(method='n', params=2); send(id=1, method='broken', params={})")
    await do(client, "")
    with pytest.raises(Failures) as caught:
        await client.close()
    lines = str(caught.value).splitlines()
    assert lines[:2] == [
        'forbidden: {"jsonrpc": "2.0", "method": "n", "params": 2}',
        "handler failed: KeyError('missing')",
    ]


async def test_a_request_without_an_answer_is_a_problem(client):
    number = client.ask("ignored")
    with pytest.raises(Failures, match=f"never answered: request {number}"):
        await client.close()


async def test_the_end_of_stdin_is_an_end_too(client):
    await do(client, "child_of_mine = child()", None)
    await do(client, "child_of_mine.kill(); child_of_mine.wait()", None)
    client.close_stdin()
    await client.finish()


async def test_a_dead_server_fails_what_waits_for_it(client):
    with pytest.raises(ResponseError, match=r"stdout ended\. stderr: going"):
        await do(client, "sys.stderr.write('going'); sys.stderr.flush(); os._exit(4)")
    await client.finish(expected_code=4)


async def test_leaving_the_block_checks_unless_the_test_failed_already(tmp_path):
    command = [sys.executable, "-c", SERVER]
    with pytest.raises(Failures, match="exit code 2, expected 0"):
        async with await LspClient.start(command, env=ENV, cwd=tmp_path) as client:
            await do(client, "code = 2")
    with pytest.raises(ZeroDivisionError):
        async with await LspClient.start(command, env=ENV, cwd=Path(tmp_path)) as client:
            await do(client, "code = 2")
            1 / 0  # noqa: B018

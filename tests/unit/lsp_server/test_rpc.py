"""The contract of the hardened protocol class: one test for each fault of the stock one (K4, K5)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agent_core.errors import InvalidParams, UnknownAgent
from lsp_server import protocol as wire
from lsp_server.rpc import AgentProtocol, new_protocol

pytestmark = pytest.mark.anyio


class Output:
    """Collects what would go to the client."""

    pending_bytes = 0

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def write(self, data: bytes) -> None:
        self.sent.append(json.loads(data.partition(b"\r\n\r\n")[2]))

    def close(self) -> None:
        pass

    def is_answered(self, message_id: object) -> bool:
        return False


def connected() -> tuple[AgentProtocol, Output]:
    rpc, output = new_protocol(), Output()
    rpc.set_writer(output)  # type: ignore[arg-type]
    return rpc, output


def receive(rpc: AgentProtocol, **message: Any) -> None:
    rpc.handle_body(json.dumps({"jsonrpc": "2.0", **message}).encode())


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def unreached(params: Any) -> Any:
    raise AssertionError("the handler must not be called")


@pytest.mark.parametrize(
    ("params", "field", "message"),
    [
        (None, "prompt", "prompt: is missing"),
        ({}, "prompt", "prompt: is missing"),
        ({"prompt": 5}, "prompt", "prompt: must be a text, not 5"),
        ([], "params", "params: must be an object, not []"),
        ({"prompt": "x", "background": 1}, "background", "background: must be true or false, not 1"),
        ({"prompt": "x", "maxTurns": "3"}, "maxTurns", "maxTurns: must be a whole number, not '3'"),
        (
            {"prompt": "x", "context": {"range": {"start": {"line": "a", "character": 0}}}},
            "context.range.start.line",
            "context.range.start.line: must be a whole number, not 'a'",
        ),
    ],
)
async def test_bad_params_are_answered_with_the_path_of_the_field(params: Any, field: str, message: str) -> None:
    rpc, output = connected()
    rpc.serve("agent/spawn", unreached)
    receive(rpc, id=1, method="agent/spawn", params=params)
    await settled()
    error = {"code": -32602, "message": message, "data": {"field": field}}
    assert output.sent == [{"jsonrpc": "2.0", "id": 1, "error": error}]


async def test_a_nested_jsonrpc_key_arrives_as_it_is() -> None:
    rpc, output = connected()
    got: list[Any] = []

    async def handle(params: Any) -> Any:
        got.append(params)
        return params.updated_input

    rpc.serve("agent/answer", handle)
    inner = {"jsonrpc": "2.0", "method": "tools/call", "id": 4, "params": {"type_name": "X", "b-c": 1, "class": 2}}
    receive(rpc, id="a", method="agent/answer", params={"requestId": "r", "updatedInput": inner})
    await settled()
    assert got == [wire.AnswerParams("r", updated_input=inner)]
    assert output.sent == [{"jsonrpc": "2.0", "id": "a", "result": inner}]


@pytest.mark.parametrize(
    ("body", "code"),
    [(b"{", -32700), (b"\xff\xfe", -32700), (b"[]", -32600), (b'"x"', -32600), (b'{"id": 1}', -32600)],
)
async def test_what_is_no_message_is_refused(body: bytes, code: int) -> None:
    rpc, output = connected()
    rpc.handle_body(body)
    assert [(reply["id"], reply["error"]["code"]) for reply in output.sent] == [(None, code)]


async def test_an_unknown_method_is_refused_and_an_unknown_notification_passed_over() -> None:
    rpc, output = connected()
    receive(rpc, id=1, method="agent/nothing", params={"a": 1})
    receive(rpc, method="agent/nothing", params={"a": 1})
    receive(rpc, id=2, method="agent/nothing")
    assert [(reply["id"], reply["error"]["code"]) for reply in output.sent] == [(1, -32601), (2, -32601)]


async def test_errors_keep_their_code_and_bugs_keep_their_secrets() -> None:
    rpc, output = connected()

    async def fails(params: Any) -> Any:
        raise {"user": UnknownAgent("no agent 'x'"), "params": InvalidParams("cwd", "is no folder")}.get(
            params.request_id, RuntimeError("secret path /home/me")
        )

    rpc.serve("agent/answer", fails)
    for number, kind in enumerate(("user", "params", "bug")):
        receive(rpc, id=number, method="agent/answer", params={"requestId": kind})
    await settled()
    assert [reply["error"] for reply in output.sent] == [
        {"code": -32803, "message": "no agent 'x'", "data": {"code": "unknownAgent"}},
        {"code": -32602, "message": "cwd: is no folder", "data": {"field": "cwd"}},
        {"code": -32603, "message": "agent/answer failed inside the server; see its log"},
    ]


async def test_k4_a_late_answer_to_a_withdrawn_request_is_ignored() -> None:
    rpc, output = connected()
    params = wire.PermissionParams(
        "r", wire.AskingAgent("a", "a", "x", "d", []), wire.AskedTool("Bash", "execute", "t"), "t", {}, "why", [], "now"
    )
    waiting = asyncio.ensure_future(rpc.call("agent/permission", params))
    await settled()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    request_id = output.sent[0]["id"]
    receive(rpc, id=request_id, result={"optionId": "allowOnce"})
    receive(rpc, id=request_id, error={"code": 1, "message": "late"})
    receive(rpc, id="never asked", result=None)
    assert output.sent[1:] == [{"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": request_id}}]


@pytest.mark.parametrize("answer", [{"result": {"applied": True}}, {"error": {"code": 1, "message": "late"}}])
async def test_k4_an_answer_between_shutdown_and_the_end_is_ignored(answer: Any, caplog: Any) -> None:
    """The future is withdrawn, and its waiter has not run yet."""
    rpc, output = connected()
    waiting = asyncio.ensure_future(rpc.call("workspace/applyEdit", {"edit": {}}))
    await settled()
    rpc.lsp_shutdown()
    receive(rpc, id=output.sent[0]["id"], **answer)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert [record for record in caplog.records if record.name != "asyncio"] == []


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"result": {"optionId": 5}}, "the client's answer does not fit: optionId: must be a text, not 5"),
        ({"result": "wat"}, "the client's answer does not fit: params: must be an object, not 'wat'"),
        ({"error": {"code": -32601, "message": "Unhandled method"}}, "Unhandled method"),
        ({"error": None, "result": 7}, "the client's answer does not fit: params: must be an object, not 7"),
    ],
)
async def test_a_bad_answer_ends_the_wait(answer: Any, message: str) -> None:
    from pygls.exceptions import JsonRpcException

    rpc, output = connected()
    waiting = asyncio.ensure_future(rpc.call("agent/permission", None))
    await settled()
    receive(rpc, id=output.sent[0]["id"], **answer)
    with pytest.raises(JsonRpcException) as caught:
        await asyncio.wait_for(waiting, 1)
    assert caught.value.message == message


async def test_null_is_an_answer_without_decision() -> None:
    rpc, output = connected()
    waiting = asyncio.ensure_future(rpc.call("agent/permission", None))
    await settled()
    receive(rpc, id=output.sent[0]["id"], result=None)
    assert await asyncio.wait_for(waiting, 1) == wire.PermissionResult()


async def test_k5_a_request_that_was_cancelled_before_it_began_never_runs() -> None:
    rpc, output = connected()
    rpc.serve("agent/wait", unreached)
    receive(rpc, id=1, method="agent/wait", params={"agentId": "a"})
    receive(rpc, method="$/cancelRequest", params={"id": 1})
    await settled()
    assert [(reply["id"], reply["error"]["code"]) for reply in output.sent] == [(1, -32800)]


async def test_a_running_request_is_cancelled_at_its_next_await() -> None:
    rpc, output = connected()

    async def waits(params: Any) -> Any:
        await asyncio.sleep(60)

    rpc.serve("agent/wait", waits)
    receive(rpc, id=1, method="agent/wait", params={"agentId": "a"})
    await settled()
    receive(rpc, method="$/cancelRequest", params={"id": 1})
    receive(rpc, method="$/cancelRequest", params={"id": 99})
    receive(rpc, method="$/cancelRequest", params=None)
    await settled()
    assert [(reply["id"], reply["error"]["code"]) for reply in output.sent] == [(1, -32800)]


async def test_exit_says_whether_shutdown_came_first() -> None:
    codes: list[int] = []
    rpc, output = connected()
    rpc.on_exit = codes.append
    receive(rpc, method="exit")
    receive(rpc, id=1, method="shutdown")
    await settled()
    receive(rpc, method="exit")
    assert codes == [1, 0]
    assert output.sent == [{"jsonrpc": "2.0", "id": 1, "result": None}]


async def test_after_shutdown_requests_are_refused() -> None:
    rpc, output = connected()
    rpc.serve("agent/list", unreached)
    receive(rpc, id=1, method="shutdown")
    await settled()
    receive(rpc, id=2, method="agent/list", params={})
    await settled()
    assert [reply.get("error", {}).get("code") for reply in output.sent] == [None, -32600]


async def test_a_listener_that_fails_does_not_end_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    rpc, output = connected()

    def fails(params: Any) -> None:
        raise KeyError("textDocument")

    rpc.listeners["textDocument/didOpen"] = fails
    receive(rpc, method="textDocument/didOpen", params={})
    receive(rpc, id=1, method="agent/nothing")
    assert [reply["id"] for reply in output.sent] == [1]
    [record] = caplog.records
    text = "the notification textDocument/didOpen could not be handled: KeyError: 'textDocument'"
    assert (record.getMessage(), record.exc_info) == (text, None)


async def test_a_message_nested_too_deeply_is_refused_and_the_stream_goes_on() -> None:
    rpc, output = connected()
    rpc.handle_body(b"[" * 200_000 + b"]" * 200_000)
    receive(rpc, id=1, method="agent/nothing")
    assert [(reply["id"], reply["error"]["code"]) for reply in output.sent] == [(None, -32700), (1, -32601)]

"""pygls' protocol class, hardened. Each override has a reason and a contract test (tests/unit/lsp_server/test_rpc.py).

What stock pygls 2.1.1 does wrong for us: a request with bad params gets no answer; nested dicts with a `jsonrpc` key
are turned into messages; a bad result leaves the caller waiting; a late answer raises; tracebacks reach the wire.
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any

from lsprotocol import types
from pygls.exceptions import (
    FeatureRequestError,
    JsonRpcException,
    JsonRpcInvalidRequest,
    JsonRpcMethodNotFound,
    JsonRpcParseError,
)
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter, lsp_method
from pygls.protocol.json_rpc import JsonRPCNotification, JsonRPCRequestMessage

from agent_core.errors import InvalidParams, UserError
from agent_core.text import encodable
from lsp_server.capabilities import NAME, VERSION, initialize_result
from lsp_server.protocol import INBOUND, OUTBOUND_REQUESTS
from lsp_server.transport import AnsweredFilter
from lsp_server.wire import from_wire, to_wire

logger = logging.getLogger(__name__)

REQUEST_FAILED, INVALID_PARAMS, INTERNAL = -32803, -32602, -32603
Handler = Callable[[Any], Awaitable[Any]]


class AgentProtocol(LanguageServerProtocol):
    """One connection. `handlers` serve requests, `listeners` notifications; params are JSON, or typed for `agent/*`.

    `on_initialize` gets the raw params before anything else is handled.
    """

    writer: AnsweredFilter

    def __init__(self, server: LanguageServer, converter: Any) -> None:
        super().__init__(server, converter)
        self.handlers: dict[str, Handler] = {}
        self.listeners: dict[str, Callable[[Any], None]] = {}
        self.on_initialize: Callable[[dict[str, Any]], None] = lambda params: None
        self.on_exit: Callable[[int], None] = lambda code: None
        self._results: dict[str, Callable[[Any], Any]] = {}

    # In

    def handle_body(self, body: bytes) -> None:
        """One frame's body: -32700 for what is no JSON, -32600 for what is no message."""
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            self._refuse(None, JsonRpcParseError(f"the message is no JSON that can be read: {error}"))
            return
        self.handle_message(message)

    def handle_message(self, message: Any) -> None:
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self._refuse(None, JsonRpcInvalidRequest('a message must be an object with jsonrpc: "2.0"'))
        elif not isinstance(message.get("method"), str):
            self._response(message)
        elif "id" in message:
            self._request(message["id"], message["method"], message.get("params"))
        else:
            self._notification(message["method"], message.get("params"))

    def _request(self, message_id: Any, method: str, params: Any) -> None:
        if type(message_id) not in (str, int):
            self._refuse(None, JsonRpcInvalidRequest("the id of a request must be a text or a whole number"))
        elif method == types.INITIALIZE:
            self._initialize(message_id, params)
        elif self._shutdown:
            self._refuse(message_id, JsonRpcInvalidRequest("the server was told to shut down"))
        elif method in self.handlers:
            self._serve(message_id, method, params)
        elif method == types.SHUTDOWN:
            super().handle_message(JsonRPCRequestMessage(message_id, method, "2.0", None))
        else:
            self._refuse(message_id, JsonRpcMethodNotFound(f"there is no method {method}"))

    def _serve(self, message_id: Any, method: str, params: Any) -> None:
        try:
            typed = from_wire(params, INBOUND[method][0]) if method in INBOUND else params
        except InvalidParams as error:
            self._refuse(message_id, as_rpc_error(error))
            return
        super().handle_message(JsonRPCRequestMessage(message_id, method, "2.0", typed))

    def _notification(self, method: str, params: Any) -> None:
        if method == types.CANCEL_REQUEST:
            self._cancel(params)
        elif method == types.EXIT:
            self.on_exit(0 if self._shutdown else 1)
        elif method in self.listeners and not self._shutdown:
            try:
                self.listeners[method](params)
            except Exception as error:  # noqa: BLE001 - wrong params: nobody waits for an answer that could say so
                logger.error(
                    "the notification %s could not be handled: %s: %.200s", method, type(error).__name__, error
                )

    def _cancel(self, params: Any) -> None:
        message_id = params.get("id") if isinstance(params, dict) else None
        if isinstance(message_id, str | int) and message_id in self._request_futures:
            self._handle_cancel_notification(message_id)

    def _response(self, message: dict[str, Any]) -> None:
        """Answers to requests that were withdrawn or never made are passed over (K4, A15)."""
        message_id = message.get("id")
        future = self._request_futures.pop(message_id, None) if isinstance(message_id, str | int) else None
        structure = self._results.pop(str(message_id), None)
        if future is None or future.done():
            return
        error = message.get("error")
        if error is not None:
            future.set_exception(_client_error(error))
            return
        try:
            result = message.get("result")
            future.set_result(structure(result) if structure else result)
        except Exception as fault:  # noqa: BLE001 - whatever is wrong with it, the waiting agent must hear of it
            future.set_exception(JsonRpcException(f"the client's answer does not fit: {fault}", code=INVALID_PARAMS))

    def _initialize(self, message_id: Any, params: Any) -> None:
        params = params if isinstance(params, dict) else {}
        self.on_initialize(params)
        if not self.writer.is_answered(message_id):
            self._send_data({"jsonrpc": "2.0", "id": message_id, "result": initialize_result(params)})

    def _refuse(self, message_id: Any, error: JsonRpcException) -> None:
        """`id` is null where the request's own is unknown; lsprotocol would leave it out."""
        fields = {"code": error.code, "message": error.message, **({"data": error.data} if error.data else {})}
        self._send_data({"jsonrpc": "2.0", "id": message_id, "error": fields})

    def _get_handler(self, feature_name: str) -> Any:
        return self.handlers.get(feature_name) or super()._get_handler(feature_name)

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *args: Any) -> None:  # type: ignore[override]
        """Requests of ours that still wait for the client are withdrawn; its own were answered or are cancelled."""
        current = self.msg_id
        for message_id, future in list(self._request_futures.items()):
            if message_id != current and not future.done():
                future.cancel()
        self._shutdown = True

    # Out

    def serve(self, method: str, handler: Handler) -> None:
        """Register a request handler; UserErrors become errors of the contract, anything else keeps its secrets."""

        async def guarded(params: Any) -> Any:
            try:
                result = await handler(params)
                return to_wire(result) if method in INBOUND else result
            except UserError as error:
                raise as_rpc_error(error) from error
            except JsonRpcException:
                raise
            except Exception as error:
                logger.exception("%s failed", method)
                raise JsonRpcException(f"{method} failed inside the server; see its log", code=INTERNAL) from error

        self.handlers[method] = guarded

    async def call(self, method: str, params: Any) -> Any:
        """A request to the client, the result typed by `OUTBOUND_REQUESTS`. Cancelling it sends `$/cancelRequest`."""
        message_id = str(uuid.uuid4())
        self._results[message_id] = self._structure(method)
        sent = to_wire(params) if method in OUTBOUND_REQUESTS else encodable(self._converter.unstructure(params))
        # not `send_request`: it takes no plain JSON for methods that lsprotocol knows, and then waits for ever
        future: Future[Any] = Future()
        self._request_futures[message_id] = future
        self._send_data(JsonRPCRequestMessage(message_id, method, "2.0", sent))
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            self._request_futures.pop(message_id, None)
            self._results.pop(message_id, None)
            self.notify(types.CANCEL_REQUEST, types.CancelParams(id=message_id))
            raise

    def tell(self, method: str, params: Any) -> None:
        """A notification of ours with a wire value as params."""
        self._send_data(JsonRPCNotification(method, "2.0", to_wire(params)))

    def _structure(self, method: str) -> Callable[[Any], Any]:
        if method in OUTBOUND_REQUESTS:
            return lambda result: from_wire(result, OUTBOUND_REQUESTS[method][1])
        return lambda result: result


class AgentServer(LanguageServer):
    def report_server_error(self, error: Exception, source: Any) -> None:
        """Faults go to the log, never into a popup. A request has its own error answer, so it is not told twice."""
        if source is not FeatureRequestError:
            logger.error("%s: %s", getattr(source, "__name__", source), error)


def new_protocol() -> AgentProtocol:
    logging.getLogger("pygls").setLevel(logging.CRITICAL)  # it logs whole messages, prompts and secrets with them
    server = AgentServer(NAME, VERSION, protocol_cls=AgentProtocol, converter_factory=default_converter)
    protocol = server.protocol
    assert isinstance(protocol, AgentProtocol)
    return protocol


def as_rpc_error(error: UserError) -> JsonRpcException:
    if isinstance(error, InvalidParams):
        return JsonRpcException(str(error), code=INVALID_PARAMS, data={"field": error.field})
    return JsonRpcException(str(error), code=REQUEST_FAILED, data={"code": error.code})


def _client_error(error: Any) -> JsonRpcException:
    fields = error if isinstance(error, dict) else {}
    code, message = fields.get("code"), fields.get("message")
    return JsonRpcException(
        str(message or "the client answered with an error"), code=code if isinstance(code, int) else INTERNAL
    )

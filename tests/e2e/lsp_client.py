"""An LSP client over a real process's stdio, for tests. It shares no code with the product.

    async with await LspClient.start([python, "-m", "lsp_server", "serve"], env=env, cwd=repo) as client:
        await client.initialize(root=repo, capabilities={...})
        client.on("agent/permission", lambda params: {"optionId": "o1"})
        agent = await client.request("agent/spawn", {"prompt": "go"})
        await client.expect("agent/progress", lambda p: p["event"]["kind"] == "ended")

Leaving the block ends the server in order and fails (Failures) for: a wrong exit code, bytes on stdout that are no
frame, answers nobody asked for, expectations that were not met, messages that were forbidden, requests of the server
that had no handler and that no test read, an error shown to the user that no test read, a traceback on stderr, and
processes left behind.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field

from tests.e2e.processes import ProcessWatch
from tests.e2e.wire import Message, NotAFrame, ResponseError, frame, must_be_read, read_frame

Predicate = Callable[[Any], bool]
Handler = Callable[[Any], Any]
METHOD_NOT_FOUND, CANCELLED = -32601, -32800


class Failures(AssertionError):
    """What was wrong when the client was closed, one line each, with the end of stderr."""


@define(eq=False)
class Held:
    """A request of the server that the test answers itself, when it wants. `withdrawn` is set by $/cancelRequest."""

    client: LspClient
    message: Message
    withdrawn: asyncio.Event = field(factory=asyncio.Event)

    @property
    def params(self) -> Any:
        return self.message.params

    def reply(self, result: Any) -> None:
        self.client.send({"id": self.message.body["id"], "result": result})

    def fail(self, code: int, text: str) -> None:
        self.client.send({"id": self.message.body["id"], "error": {"code": code, "message": text}})


@define(eq=False)
class Expectation:
    """A message that must come. Await it for its params; TimeoutError names what came instead."""

    client: LspClient
    method: str
    predicate: Predicate
    timeout: float
    found: asyncio.Future[Message] = field(factory=lambda: asyncio.get_running_loop().create_future())

    def __await__(self) -> Any:
        return self._wait().__await__()

    async def _wait(self) -> Any:
        try:
            async with asyncio.timeout(self.timeout):
                return (await asyncio.shield(self.found)).params
        except TimeoutError:
            self.client.unmet(self)
            raise TimeoutError(f"no {self.method} in {self.timeout:g} s. {self.client.recent()}") from None

    def offer(self, message: Message) -> bool:
        if self.found.done() or message.read or message.method != self.method or not self.predicate(message.params):
            return False
        message.read = True
        self.found.set_result(message)
        return True


class LspClient:
    def __init__(self, process: asyncio.subprocess.Process, watch: ProcessWatch) -> None:
        self.process = process
        self.messages: list[Message] = []
        self.stderr = ""
        self.problems: list[str] = []
        self.allow_traceback = False
        self.closed = False
        self._watch = watch
        self._ids = itertools.count(1)
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._unanswered: list[int] = []
        self._handlers: dict[str, Handler] = {}
        self._running: dict[int | str, asyncio.Task[None]] = {}
        self._held: dict[int | str, Held] = {}
        self._expected: list[Expectation] = []
        self._forbidden: list[tuple[str, Predicate]] = []
        self._tasks = [asyncio.ensure_future(self._read()), asyncio.ensure_future(self._read_stderr())]

    @classmethod
    async def start(cls, command: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> LspClient:
        """`env` is the whole environment of the server."""
        tag = uuid.uuid4().hex
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command,
            env={**env, ProcessWatch.VARIABLE: tag},
            cwd=cwd,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            limit=1 << 26,
        )
        return cls(process, ProcessWatch(process.pid, tag))

    async def __aenter__(self) -> LspClient:
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        await (self.close() if kind is None else self.kill())

    # Requests and notifications of the client

    async def initialize(
        self,
        *,
        root: Path | None = None,
        capabilities: Mapping[str, Any] | None = None,
        options: Any = None,
        timeout: float = 20,
        **more: Any,
    ) -> Any:
        """Sends `initialize` and `initialized`; `options` are the initializationOptions, `more` further params."""
        folders = [{"uri": root.as_uri(), "name": root.name}] if root else None
        params = {
            "processId": os.getpid(),
            "rootUri": root.as_uri() if root else None,
            "workspaceFolders": folders,
            "capabilities": dict(capabilities or {}),
            **({} if options is None else {"initializationOptions": options}),
            **more,
        }
        result = await self.request("initialize", params, timeout)
        self.notify("initialized", {})
        return result

    async def request(self, method: str, params: Any = None, timeout: float = 10) -> Any:
        """The result. ResponseError for an error answer, TimeoutError (with what came meanwhile) without one."""
        return await self.wait(self.ask(method, params), timeout)

    def ask(self, method: str, params: Any = None) -> int:
        """Sends a request and returns its id, for `wait` and `cancel`."""
        number = next(self._ids)
        self._pending[number] = asyncio.get_running_loop().create_future()
        self.send({"id": number, "method": method, **({} if params is None else {"params": params})})
        return number

    async def wait(self, number: int, timeout: float = 10) -> Any:
        try:
            async with asyncio.timeout(timeout):
                return await asyncio.shield(self._pending[number])
        except TimeoutError:
            raise TimeoutError(f"no answer to request {number} in {timeout:g} s. {self.recent()}") from None

    def cancel(self, number: int) -> None:
        self.notify("$/cancelRequest", {"id": number})

    def notify(self, method: str, params: Any = None) -> None:
        self.send({"method": method, **({} if params is None else {"params": params})})

    def send(self, body: dict[str, Any]) -> None:
        body = {"jsonrpc": "2.0", **body}
        self.messages.append(Message("out", time.monotonic(), body))
        self.send_bytes(frame(json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")))

    def send_bytes(self, data: bytes) -> None:
        """Anything, also what is no frame."""
        assert self.process.stdin
        self.process.stdin.write(data)

    # What the server sends

    def on(self, method: str, handler: Handler) -> None:
        """Answers requests of the server (and is called for notifications). `handler(params)` may be async; its value
        is the result, a ResponseError the error. An async one is cancelled, and answered so, on $/cancelRequest."""
        self._handlers[method] = handler

    def script(self, method: str, *answers: Any) -> None:
        """Answers the next requests in this order; a ResponseError is an error answer. One more is a problem."""
        left = list(answers)

        def handler(params: Any) -> Any:
            if not left:
                self.problems.append(f"{method}: more requests than the {len(answers)} scripted answers")
                raise ResponseError(METHOD_NOT_FOUND, "no scripted answer left")
            if isinstance(answer := left.pop(0), ResponseError):
                raise answer
            return answer

        self.on(method, handler)

    def hold(self, method: str) -> None:
        """Requests of this method are answered by the test, through `held`."""
        self._handlers[method] = self._hold

    def _hold(self, _: Any) -> None:
        raise AssertionError("held requests are taken out before handlers are called")

    async def held(self, method: str, predicate: Predicate = lambda _: True, timeout: float = 10) -> Held:
        """The next held request of this method that was not given out yet."""
        expectation = self.expecting(method, predicate, timeout)
        await expectation
        return self._held[expectation.found.result().body["id"]]

    def expecting(self, method: str, predicate: Predicate = lambda _: True, timeout: float = 10) -> Expectation:
        """The first message of this method that fits and that nobody read yet, earlier ones included."""
        expectation = Expectation(self, method, predicate, timeout)
        if not any(expectation.offer(message) for message in self.messages if message.direction == "in"):
            self._expected.append(expectation)
        return expectation

    async def expect(self, method: str, predicate: Predicate = lambda _: True, timeout: float = 10) -> Any:
        """Its params."""
        return await self.expecting(method, predicate, timeout)

    def forbid(self, method: str, predicate: Predicate = lambda _: True) -> None:
        """From now on such a message is a problem."""
        self._forbidden.append((method, predicate))

    def received(self, method: str) -> list[Any]:
        """Params of all messages of this method so far."""
        return [message.params for message in self.messages if message.direction == "in" and message.method == method]

    def unmet(self, expectation: Expectation) -> None:
        """Takes back an expectation that has already failed."""
        if expectation in self._expected:
            self._expected.remove(expectation)

    def recent(self) -> str:
        lines = [f"{m.direction} {json.dumps(m.body)[:300]}" for m in self.messages[-12:]]
        return "\n".join(["Last messages:", *lines, f"stderr: {self.stderr[-2000:]}"])

    # The reader

    async def _read(self) -> None:
        assert self.process.stdout
        try:
            while (body := await read_frame(self.process.stdout)) is not None:
                self._receive(body)
        except NotAFrame as error:
            self.problems.append(f"stdout: {error}")
        self._fail_pending()
        await self.process.stdout.read()  # a full pipe would keep the server from ending

    def _fail_pending(self) -> None:
        self._unanswered = [number for number, future in self._pending.items() if not future.done()]
        for number in self._unanswered:
            self._pending[number].set_exception(ResponseError(0, f"stdout ended. stderr: {self.stderr[-2000:]}"))
            self._pending[number].exception()  # not every test waits for it

    async def _read_stderr(self) -> None:
        assert self.process.stderr
        while data := await self.process.stderr.read(65536):
            self.stderr += data.decode(errors="replace")

    def _receive(self, body: dict[str, Any]) -> None:
        message = Message("in", time.monotonic(), body)
        self.messages.append(message)
        if message.method is None:
            return self._answer(body)
        for method, predicate in self._forbidden:
            if method == message.method and predicate(message.params):
                self.problems.append(f"forbidden: {json.dumps(body)[:300]}")
        if message.method == "$/cancelRequest":
            self._withdraw(message.params["id"])
        if message.method in self._handlers:
            self._dispatch(message, self._handlers[message.method])
        elif message.is_request:
            self.send({"id": body["id"], "error": {"code": METHOD_NOT_FOUND, "message": f"unknown: {message.method}"}})
        self._expected = [e for e in self._expected if not e.offer(message)]
        return None

    def _answer(self, body: dict[str, Any]) -> None:
        future = self._pending.get(body.get("id"))  # type: ignore[arg-type]  # None finds nothing
        if future is None or future.done() or ("result" in body) == ("error" in body):
            self.problems.append(f"an answer that fits no request: {json.dumps(body)[:300]}")
        elif "error" in body:
            error = body["error"]
            future.set_exception(ResponseError(error["code"], error["message"], error.get("data")))
            future.exception()
        else:
            future.set_result(body["result"])

    def _dispatch(self, message: Message, handler: Handler) -> None:
        message.handled = True
        if not message.is_request:
            self._call(handler, message.params)
        elif handler == self._hold:
            self._held[message.body["id"]] = Held(self, message)
        else:
            number = message.body["id"]
            self._running[number] = asyncio.ensure_future(self._run(number, handler, message.params))

    def _call(self, handler: Handler, params: Any) -> None:
        try:
            handler(params)
        except Exception as error:  # noqa: BLE001  # a test's handler: told when the client closes
            self.problems.append(f"handler failed: {error!r}")

    async def _run(self, number: int | str, handler: Handler, params: Any) -> None:
        try:
            result = handler(params)
            result = await result if inspect.isawaitable(result) else result
        except ResponseError as error:
            self.send({"id": number, "error": {"code": error.code, "message": error.message}})
        except asyncio.CancelledError:
            self.send({"id": number, "error": {"code": CANCELLED, "message": "cancelled"}})
        except Exception as error:  # noqa: BLE001  # a test's handler: told when the client closes
            self.problems.append(f"handler failed: {error!r}")
            self.send({"id": number, "error": {"code": -32603, "message": str(error)}})
        else:
            self.send({"id": number, "result": result})
        finally:
            self._running.pop(number, None)

    def _withdraw(self, number: int | str) -> None:
        if held := self._held.get(number):
            held.withdrawn.set()
        elif task := self._running.get(number):
            task.cancel()

    # The end

    async def close(self, *, expected_code: int = 0, timeout: float = 15) -> None:
        """Ends the server by shutdown and exit if it still runs, then fails for everything that was wrong."""
        orderly = self.process.returncode is None and not self._tasks[0].done()
        if orderly:
            await self._shut_down(timeout)
        await self.finish(expected_code=expected_code, timeout=timeout, all_answered=orderly)

    async def _shut_down(self, timeout: float) -> None:
        self._watch.look()
        try:
            await self.request("shutdown", timeout=timeout)
        except (ResponseError, TimeoutError) as error:
            self.problems.append(f"shutdown: {str(error)[:500]}")
        self._watch.look()
        self.notify("exit")

    def close_stdin(self) -> None:
        """What the server sees when its editor is gone."""
        self._watch.look()
        assert self.process.stdin
        self.process.stdin.close()

    async def finish(self, *, expected_code: int | None = 0, timeout: float = 15, all_answered: bool = False) -> None:
        """Waits for the end of the process, however it was brought about, and checks. `expected_code` None: any.
        `all_answered`: a request of ours without an answer is a problem."""
        try:
            async with asyncio.timeout(timeout):
                code = await self.process.wait()
                await asyncio.gather(*self._tasks)
        except TimeoutError:
            self.problems.append(f"the server did not end (or its stdout stayed open) within {timeout:g} s")
            code = None
        if code is not None and expected_code is not None and code != expected_code:
            self.problems.append(f"exit code {code}, expected {expected_code}")
        if all_answered:
            self.problems += [f"never answered: request {number}" for number in self._unanswered]
        await self._check_rest()

    def checkpoint(self) -> None:
        """Between two tests that share this client: forgets everything so far, then fails for what was wrong in it."""
        problems = [*self.problems, *self._unread()]
        if "Traceback (most recent call last)" in self.stderr:
            problems.append("a traceback on stderr")
        words = f"stderr: {self.stderr[-4000:]}"
        self.problems, self.messages, self.stderr = [], [], ""
        self._handlers, self._held, self._expected, self._forbidden = {}, {}, [], []
        if problems:
            raise Failures("\n".join([*problems, words]))

    def _unread(self) -> list[str]:
        unmet = [f"expected but never came: {expectation.method}" for expectation in self._expected]
        unread = [message for message in self.messages if must_be_read(message)]
        return [*unmet, *(f"nobody read: {json.dumps(message.body)[:500]}" for message in unread)]

    async def kill(self) -> None:
        """Ends the server and its children at once, without checks."""
        self.closed = True
        await self._watch.kill_all()
        await self.process.wait()
        await self._stop_tasks()
        self.process._transport.close()  # type: ignore[attr-defined]  # a pipe that a stray child holds stays open else

    async def _check_rest(self) -> None:
        self.problems += [f"left behind: {line}" for line in await self._watch.left_behind()]
        self.problems += self._unread()
        if "Traceback (most recent call last)" in self.stderr and not self.allow_traceback:
            self.problems.append("a traceback on stderr")
        await self.kill()
        if self.problems:
            raise Failures("\n".join([*self.problems, f"stderr: {self.stderr[-4000:]}"]))

    async def _stop_tasks(self) -> None:
        tasks = [*self._tasks, *self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

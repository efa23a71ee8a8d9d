"""A runtime in this process over a real folder and the scripted model over real HTTP.

shop.says(say(use("Read", file_path="a.txt")), say("done"))      # the model's turns
info = await shop.run("look")                                    # AgentInfo at the end of the run
shop.bodies(info), shop.asked(1), shop.results(1)                # the log; what the model was sent
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
from attrs import define, field

from agent_core.disk import Disk
from agent_core.disk_target import DiskTarget
from agent_core.event_log import EventLog
from agent_core.events import AgentInfo, Ended, Event, EventBody, MessageAdded
from agent_core.permissions.types import PermissionAnswer, PermissionFacts, PermissionRequest, ToolKind
from agent_core.ports import Git
from agent_core.processes import LocalProcesses
from agent_core.repository import GitCommand
from agent_core.runtime import Runtime, SpawnRequest, open_runtime
from agent_core.state import unanswered
from agent_core.tool import ToolContext, ToolResult
from agent_core.transcript.repair import recover
from lsp_server.demo.body import blocks_of
from lsp_server.demo.matching import message_text
from lsp_server.demo.model_server import ModelServer
from lsp_server.demo.script import Conversation, Script, Turn, conversation

Body = TypeVar("Body", bound=EventBody)
SECONDS = 20.0
"""No wait of a test lasts longer; all of them are for things that happen at once."""


def import_sdk() -> None:
    """Once, outside of every time limit: without compiled code it takes seconds."""
    import anthropic
    import httpx2

    assert anthropic and httpx2


@define(eq=False)
class Shop:
    """`folder` is the only workspace folder, `state` where transcripts go."""

    runtime: Runtime
    model: ModelServer
    folder: Path
    state: Path
    logs: dict[str, EventLog] = field(factory=dict)

    # The model

    def says(self, *turns: tuple[Turn, ...], **options: Any) -> None:
        self.script(conversation(*turns, **options))

    def script(self, *conversations: Conversation, **options: Any) -> None:
        self.model.set_script(Script(conversations, **options), reset=True)

    def asked(self, number: int, name: str | None = None) -> Any:
        """The body of a message request, counted from 0."""
        return self.model.requests(name)[number].json

    def told(self, number: int, name: str | None = None) -> list[str]:
        """The texts that this request adds after the model's last answer, tool results included."""
        return [message_text([block]) for block in self._new(number, name)]

    def results(self, number: int, name: str | None = None) -> list[tuple[str, bool, str]]:
        """(id of the call, failed, text) of each tool result among them."""
        blocks = [block for block in self._new(number, name) if block["type"] == "tool_result"]
        return [(block["tool_use_id"], bool(block.get("is_error")), message_text([block])) for block in blocks]

    def _new(self, number: int, name: str | None) -> list[Any]:
        messages = self.asked(number, name)["messages"]
        answers = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
        return [
            block for message in messages[max(answers, default=-1) + 1 :] for block in blocks_of(message["content"])
        ]

    # Agents

    async def spawn(self, prompt: str = "go", **fields: Any) -> AgentInfo:
        return await self.runtime.spawn(SpawnRequest(prompt, fields.pop("cwd", self.folder), **fields))

    async def run(self, prompt: str = "go", **fields: Any) -> AgentInfo:
        return await self.ended(await self.spawn(prompt, **fields))

    async def ended(self, info: AgentInfo) -> AgentInfo:
        with anyio.fail_after(SECONDS):
            return await self.runtime.wait(info.id)

    async def send(self, info: AgentInfo, message: str) -> AgentInfo:
        """Another run of an agent that has ended, to its end."""
        return await self.ended(await self.runtime.send(info.id, message))

    def bodies(self, info: AgentInfo) -> list[EventBody]:
        return [event.body for event in self.events(info)]

    def events(self, info: AgentInfo) -> list[Event]:
        """All durable events; those that the log has forgotten from the transcript."""
        log = self.logs[info.id]
        recorded = recover(info.output_file.with_suffix(".jsonl").read_bytes()).events if log.forgotten else ()
        return [*recorded[: log.forgotten], *log.kept()]

    def of(self, info: AgentInfo, kind: type[Body]) -> list[Body]:
        return [body for body in self.bodies(info) if isinstance(body, kind)]

    async def event(self, info: AgentInfo, kind: type[Body], holds: Callable[[Body], bool] = lambda body: True) -> Body:
        """The first event of that kind, passing ones that are still shown included, once it is there."""
        with anyio.fail_after(SECONDS):
            async for event in self.logs[info.id].read():
                if isinstance(event.body, kind) and holds(event.body):
                    return event.body
        raise AssertionError(f"the log ended without {kind.__name__}")

    async def stopped(self, info: AgentInfo, within: float = 2.0) -> AgentInfo:
        """Stop it; the answer comes within that many seconds."""
        with anyio.fail_after(within):
            return await self.runtime.stop(info.id)

    def check(self, info: AgentInfo, runs: int = 1) -> None:
        """What holds after any end: one Ended a run, every call answered, no gap, nothing open."""
        assert len(self.of(info, Ended)) == runs
        assert unanswered(tuple(body.message for body in self.of(info, MessageAdded))) == ()
        assert [event.seq for event in self.events(info)] == list(range(1, self.logs[info.id].seq + 1))
        assert self.runtime.pending_permissions() == ()
        assert self.model.problems == []


@asynccontextmanager
async def open_shop(
    place: Path,
    *,
    folder: Path | None = None,
    env: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
    trusted: bool | None = None,
    git: Git | None = None,
) -> AsyncIterator[Shop]:
    """`place` gets `home`, `state` and, without `folder`, the workspace `work`. Several may share a place."""
    import_sdk()
    folder = folder or place / "work"
    folder.mkdir(parents=True, exist_ok=True)
    async with ModelServer(Script(())) as server:
        own = {
            "HOME": str(place / "home"),
            "AGENT_LS_STATE_DIR": str(place / "state"),
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "test",
            "IS_SANDBOX": "1",
        }
        runtime = Runtime({**own, **(env or {})}, (folder,), settings or {}, trusted)
        processes = LocalProcesses()
        opened = open_runtime(runtime, files=Disk(), target=DiskTarget(), processes=processes, git=git or GitCommand())
        async with opened:
            shop = Shop(runtime, server, folder, place / "state")
            runtime.watch(lambda log: shop.logs.update({log.agent_id: log}))
            yield shop


@define(eq=False)
class Person:
    """Gives the next of `answers` to each ask; without one it waits. Keeps what was asked."""

    answers: list[PermissionAnswer | None] = field(factory=list)
    requests: list[PermissionRequest] = field(factory=list)
    _news: anyio.Event = field(factory=anyio.Event)

    async def ask(self, request: PermissionRequest) -> PermissionAnswer | None:
        self.requests.append(request)
        self._news.set()
        self._news = anyio.Event()
        if self.answers:
            return self.answers.pop(0)
        return await anyio.sleep_forever()  # type: ignore[func-returns-value]

    async def request(self, number: int = 0) -> PermissionRequest:
        with anyio.fail_after(SECONDS):
            while len(self.requests) <= number:
                await self._news.wait()
        return self.requests[number]


@define(eq=False)
class Probe:
    """A tool whose calls do what `work` does; its input is `{"label": text}`."""

    name: str
    work: Callable[[str, ToolContext], Awaitable[str]]
    read_only: bool = False
    concurrent: bool = False
    description: str = "A tool of a test."
    kind: ToolKind = ToolKind.OTHER
    input_schema: Mapping[str, Any] = field(
        factory=lambda: {
            "type": "object",
            "properties": {"label": {"type": "string"}},
            "required": ["label"],
            "additionalProperties": False,
        }
    )

    def title(self, input: Mapping[str, Any]) -> str:
        return f"{self.name} {input['label']}"

    async def facts(self, input: Mapping[str, Any], ctx: ToolContext) -> PermissionFacts:
        return PermissionFacts()

    async def run(self, input: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        return ToolResult.ok(await self.work(input["label"], ctx))


def kinds(events: list[Event] | list[EventBody]) -> list[str]:
    return [type(getattr(event, "body", event)).__name__ for event in events]

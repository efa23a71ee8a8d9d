"""One story at a desk: a checkout, the connected editor, the scripted model, and the agents that are launched there.

desk.says(say(use("Bash", command="make test")), say("done"))     # the model's turns
info = await desk.run("Make the test pass")                       # AgentInfo at its end
desk.events(info, "toolCall"), desk.told(1)                       # what the editor saw; what the model was told
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, frozen

from lsp_server.demo.body import blocks_of
from lsp_server.demo.matching import message_text
from lsp_server.demo.model_server import ModelServer
from lsp_server.demo.request_log import Entry
from lsp_server.demo.script import Conversation, Script, Turn, conversation
from tests.e2e.lsp_client import LspClient
from tests.git_helpers import Repo

OFFER = {"version": 1, "progress": True, "textDeltas": True, "permission": True, "question": True, "review": True}
EDITING = {"applyEdit": True, "workspaceEdit": {"documentChanges": True}, "workspaceFolders": True}


@frozen
class Client:
    """An editor as `initialize` presents it; `env` is that of the server which it starts."""

    capabilities: Mapping[str, Any]
    options: Mapping[str, Any] | None = None
    env: Mapping[str, str] = {}


CLIENTS = {
    "trusted": Client({"workspace": EDITING, "experimental": {"agent": OFFER}}, {"trusted": True}),
    "stranger": Client(
        {
            "general": {"positionEncodings": ["utf-8"]},
            "workspace": EDITING,
            "experimental": {"agent": {**OFFER, "textDeltas": False}},
        },
        {"trusted": False, "apiKey": "from-the-editor"},
        {"ANTHROPIC_API_KEY": ""},
    ),
    "plain": Client(
        {"workspace": EDITING, "window": {"workDoneProgress": True, "showDocument": {"support": True}}},
        {"trusted": True},
    ),
}
LIVE = {"pending", "running", "waiting"}
Info = Mapping[str, Any]


@define(eq=False)
class Desk:
    """`repo` is the user's checkout and the only workspace folder; `encoding` that of positions."""

    client: LspClient
    model: ModelServer
    repo: Repo
    encoding: str = "utf-16"

    # The model

    def says(self, *turns: tuple[Turn, ...], **options: Any) -> None:
        """Replaces the script; `options` are those of `conversation`."""
        self.script(conversation(*turns, **options))

    def script(self, *conversations: Conversation, **options: Any) -> None:
        self.model.set_script(Script(conversations, **options), reset=True)

    def asked(self, number: int, name: str | None = None) -> Entry:
        """The `number`-th request to the model, from 0 (of the conversation `name`)."""
        return self.model.requests(name)[number]

    def told(self, number: int, name: str | None = None) -> str:
        """What that request tells the model since its last answer: tool results, then what people said."""
        return message_text(self._new(number, name))

    def results(self, number: int, name: str | None = None) -> list[tuple[bool, str]]:
        """(failed, text) of each tool result among that."""
        blocks = self._new(number, name)
        return [(bool(b.get("is_error")), message_text([b])) for b in blocks if b["type"] == "tool_result"]

    def _new(self, number: int, name: str | None) -> list[Any]:
        messages = self.asked(number, name).json["messages"]
        answers = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
        return [
            block for message in messages[max(answers, default=-1) + 1 :] for block in blocks_of(message["content"])
        ]

    # Agents

    async def spawn(self, prompt: str = "go", **params: Any) -> str:
        """The new agent's id."""
        result = await self.client.request("agent/spawn", {"prompt": prompt, **params}, timeout=20)
        return str(result["agent"]["id"])

    async def ended(self, agent: str, timeout: float = 20) -> Info:
        """The AgentInfo of the agent's next end that was not waited for yet."""
        params = await self.client.expect("agent/progress", is_event(agent, "ended"), timeout)
        info: Info = params["event"]["agent"]
        return info

    async def run(self, prompt: str = "go", **params: Any) -> Info:
        return await self.ended(await self.spawn(prompt, **params))

    async def event(self, agent: str, kind: str, timeout: float = 20, **fields: Any) -> Any:
        """The next event of that kind, read or not yet come, whose fields have these values."""
        params = await self.client.expect("agent/progress", is_event(agent, kind, **fields), timeout)
        return params["event"]

    def progress(self, agent: str | Info) -> list[Any]:
        """The params of all progress of one agent so far."""
        wanted = agent if isinstance(agent, str) else agent["id"]
        return [params for params in self.client.received("agent/progress") if params["agentId"] == wanted]

    def events(self, agent: str | Info, *kinds: str) -> list[Any]:
        bodies = [params["event"] for params in self.progress(agent)]
        return [body for body in bodies if not kinds or body["kind"] in kinds]

    async def info(self, agent: str) -> Info:
        agents = (await self.client.request("agent/list", {}))["agents"]
        return next(each for each in agents if each["id"] == agent)

    async def review(self, agent: str) -> Any:
        return await self.client.request("agent/review", {"agentId": agent})

    async def apply(self, agent: str, *files: Mapping[str, Any], **more: Any) -> Any:
        """Everything when no files are named."""
        params = {"agentId": agent, **({"files": list(files)} if files else {}), **more}
        return await self.client.request("agent/apply", params)

    async def stop_all(self) -> list[str]:
        """Ends what still runs; their ids and statuses."""
        agents = (await self.client.request("agent/list", {}))["agents"]
        left = [each for each in agents if each["status"] in LIVE]
        for each in left:
            await self.client.request("agent/stop", {"agentId": each["id"]}, timeout=15)
        return [f"{each['id']} was {each['status']}" for each in left]

    async def move_to(self, repo: Repo) -> None:
        """Opens another checkout in place of the present one."""
        old, self.repo = self.repo, repo
        event = {"added": [folder(repo)], "removed": [folder(old)]}
        self.client.notify("workspace/didChangeWorkspaceFolders", {"event": event})


def is_event(agent: str, kind: str, **fields: Any) -> Any:
    def fits(params: Any) -> bool:
        body = params["event"]
        same = all(body.get(name) == value for name, value in fields.items())
        return params["agentId"] == agent and body["kind"] == kind and same

    return fits


def folder(repo: Repo) -> dict[str, str]:
    return {"uri": repo.path.as_uri(), "name": repo.path.name}


async def until(holds: Callable[[], Any], timeout: float = 10) -> Any:
    """What `holds` gives as soon as that is true; for what happens outside our processes and tells nobody."""
    async with asyncio.timeout(timeout):
        while not (found := holds()):
            await asyncio.sleep(0.01)
    return found


def option(params: Any, kind: str) -> str:
    """The id of the option of that kind in an agent/permission request."""
    return next(str(each["id"]) for each in params["options"] if each["kind"] == kind)

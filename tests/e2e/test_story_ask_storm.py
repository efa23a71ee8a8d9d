"""Twenty agents at three depths ask at once, two editors see all of it, one dies and comes back, people answer out of
order, contradict each other, click too late and stop agents meanwhile: every ask ends exactly once (PM-7, PM-8)."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from lsp_server.demo.model_server import ModelServer
from lsp_server.demo.script import Conversation, Script, ToolUse, conversation, say, use
from tests.e2e.conftest import SERVER, passed
from tests.e2e.desk import CLIENTS, option, until
from tests.e2e.lsp_client import Held, LspClient
from tests.e2e.wire import Message

pytestmark = pytest.mark.anyio

ROUNDS = 200 if os.environ.get("AGENT_LS_SOAK") == "1" else 10
TOGETHER_ON_ONE_SERVER = 10
AGENTS = [*"ab", *(f"{r}{c}" for r in "ab" for c in "123"), *(f"{r}{c}{g}" for r in "ab" for c in "123" for g in "xy")]
"""Two roots, three children of each, two of each child: the length of a name is the depth, from 1."""
TOGETHER = 4
"""So many people's hands are busy at once."""
ALLOWED, REFUSED = "allowOnce", "rejectOnce"


@define(eq=False)
class Storm:
    """One round. `one` stays connected all the time; `two` is the editor that dies."""

    one: LspClient
    two: LspClient
    model: ModelServer
    marks: Path
    seed: int
    chance: random.Random = field(init=False)
    held: dict[LspClient, dict[str, Held]] = field(factory=dict)
    replied: set[Held] = field(factory=set)
    expected: dict[str, set[str]] = field(factory=dict)
    """By the agent's name: the outcomes that may have become of its ask."""

    def __attrs_post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.marks = self.marks / str(self.seed)
        self.marks.mkdir()

    # The agents

    def title(self, name: str) -> str:
        return f"agent {name} of round {self.seed};"

    def script(self) -> None:
        self.model.set_script(Script(tuple(map(self._conversation, AGENTS))), reset=True)

    def _conversation(self, name: str) -> Conversation:
        ask = say(use("Bash", command=f"sh -c 'echo x >> {self.marks / name}'"))
        jobs = [self._job(each) for each in AGENTS if each[:-1] == name]
        turns = [say(*jobs), ask] if jobs else [ask]
        return conversation(*turns, say("done"), name=self.title(name), first_user=self.title(name), repeat_last=True)

    def _job(self, name: str) -> ToolUse:
        """Some in worktrees, some in the mode bubble, all in the background."""
        title, more = self.title(name), {}
        if name in ("a1x", "b2"):
            more["isolation"] = "worktree"
        if self.chance.random() < 0.5:
            more["mode"] = "bubble"
        return use("Agent", description=title, prompt=title, run_in_background=True, **more)

    async def begin(self) -> None:
        self.script()
        for root in "ab":
            title = self.title(root)
            await self.one.request("agent/spawn", {"prompt": title, "description": title}, timeout=30)
        for client in (self.one, self.two):
            await self.gather(client, len(AGENTS))

    async def gather(self, client: LspClient, count: int) -> None:
        """The asks as they reach one editor, by the name of the agent."""
        found: dict[str, Held] = {}
        for _ in range(count):
            held = await client.held("agent/permission", timeout=60)
            found[held.params["agent"]["description"].split()[1]] = held
        self.held[client] = found

    # The people

    async def answered(self) -> None:
        names = [*AGENTS]
        self.chance.shuffle(names)
        half = len(names) // 2
        await self.hands(names[: half - TOGETHER], self.moves(both=True))
        last = asyncio.ensure_future(self.hands(names[half - TOGETHER : half], self.moves(both=False)))
        await self.two.kill()
        await last

    async def comes_back(self, editor: LspClient, workspace: Path) -> None:
        """It is shown all that nobody has answered, and nothing else."""
        self.two = editor
        listed = (await self.one.request("agent/permissions", {}))["requests"]
        answered = {self.held[self.one][name].params["requestId"] for name in self.expected}
        open_now = [each for each in listed if each["requestId"] not in answered]  # a reply may still be on its way
        assert len(open_now) >= 1
        await opened(editor, workspace)
        await self.gather(editor, len(open_now))
        ids = {each["requestId"] for each in open_now}
        assert {held.params["requestId"] for held in self.held[editor].values()} == ids

    async def rest(self) -> None:
        names = [name for name in self.held[self.two] if name not in self.expected]
        self.chance.shuffle(names)
        await self.hands(names, self.moves(both=True))

    async def hands(self, names: list[str], moves: list[Any]) -> None:
        for start in range(0, len(names), TOGETHER):
            await asyncio.gather(*(self.chance.choice(moves)(name) for name in names[start : start + TOGETHER]))

    def moves(self, both: bool) -> list[Any]:
        alone = [self.replies, self.calls, self.stops]
        late = [self.contradicts, self.answers_twice, self.has_no_say, self.stops_and_allows, self.clicks_too_late]
        return [*alone, *late] if both else alone

    def reply(self, client: LspClient, name: str, kind: str) -> None:
        held = self.held[client][name]
        self.replied.add(held)
        held.reply({"optionId": option(held.params, kind)})

    async def call(self, client: LspClient, name: str, kind: str) -> bool:
        params = self.held[client][name].params
        answer = {"requestId": params["requestId"], "optionId": option(params, kind)}
        return bool((await client.request("agent/answer", answer))["accepted"])

    async def stop(self, name: str) -> None:
        """The agent alone: what it launched in the background goes on."""
        agent = self.held[self.one][name].params["agent"]["id"]
        await self.one.request("agent/stop", {"agentId": agent, "scope": "agent"}, timeout=30)

    async def replies(self, name: str) -> None:
        kind = self.chance.choice([ALLOWED, REFUSED])
        self.expected[name] = {kind}
        self.reply(self.one, name, kind)

    async def calls(self, name: str) -> None:
        kind = self.chance.choice([ALLOWED, REFUSED])
        self.expected[name] = {kind}
        assert await self.call(self.one, name, kind)
        assert not await self.call(self.one, name, ALLOWED)

    async def stops(self, name: str) -> None:
        self.expected[name] = {"withdrawn"}
        await self.stop(name)

    async def contradicts(self, name: str) -> None:
        self.expected[name] = {ALLOWED, REFUSED}
        kinds = self.chance.sample([ALLOWED, REFUSED], 2)
        for client, kind in zip((self.one, self.two), kinds, strict=True):
            self.reply(client, name, kind)

    async def answers_twice(self, name: str) -> None:
        self.expected[name] = {ALLOWED, REFUSED}
        accepted = await asyncio.gather(self.call(self.one, name, ALLOWED), self.call(self.two, name, REFUSED))
        assert sorted(accepted) == [False, True]
        self.expected[name] = {ALLOWED if accepted[0] else REFUSED}

    async def has_no_say(self, name: str) -> None:
        """What one editor says is no decision, so the other one decides."""
        held = self.held[self.one][name]
        self.replied.add(held)
        nothing = self.chance.randrange(4)
        if nothing == 0:
            held.fail(-32603, "broken")
        else:
            held.reply([{"optionId": "always"}, {"cancelled": True}, None][nothing - 1])
        self.expected[name] = {ALLOWED}
        self.reply(self.two, name, ALLOWED)

    async def stops_and_allows(self, name: str) -> None:
        self.expected[name] = {"withdrawn", ALLOWED}
        stopped = asyncio.ensure_future(self.stop(name))
        self.reply(self.two, name, ALLOWED)
        await stopped

    async def clicks_too_late(self, name: str) -> None:
        self.expected[name] = {"withdrawn"}
        await self.stop(name)
        assert not await self.call(self.one, name, ALLOWED)
        self.reply(self.two, name, ALLOWED)

    # What must be true at the end

    async def check(self) -> None:
        await self.none_lives()
        assert (await self.one.request("agent/permissions", {}))["requests"] == []
        for name in AGENTS:
            self.check_identity(name)
            await self.check_outcome(name)
        for held in (held for client in (self.one, self.two) for held in self.held[client].values()):
            if held not in self.replied:
                await asyncio.wait_for(held.withdrawn.wait(), 10)

    async def none_lives(self) -> None:
        for info in await self.infos():
            await self.one.request("agent/wait", {"agentId": info["id"]}, timeout=60)
        assert [info["pendingPermissions"] for info in await self.infos()] == [0] * len(AGENTS)

    async def infos(self) -> list[Any]:
        agents = (await self.one.request("agent/list", {}, timeout=30))["agents"]
        return [each for each in agents if each["description"].endswith(f"of round {self.seed};")]

    def check_identity(self, name: str) -> None:
        """Who asks, and for whom, up to the root."""
        agent = self.held[self.one][name].params["agent"]
        above = [self.title(name[:length]) for length in range(len(name) - 1, 0, -1)]
        assert [link["description"] for link in agent["chain"]] == above
        assert agent["rootId"] == self.held[self.one][name[0]].params["agent"]["id"]
        came = [
            message.method
            for message in self.one.messages
            if message.direction == "in" and agent["id"] in (self.asker(message), self.starter(message))
        ]
        assert came == ["agent/progress", "agent/permission"], "announced first, asked once"

    def asker(self, message: Message) -> Any:
        return message.params["agent"]["id"] if message.method == "agent/permission" else None

    def starter(self, message: Message) -> Any:
        is_start = message.method == "agent/progress" and message.params["event"]["kind"] == "started"
        return message.params["agentId"] if is_start else None

    async def check_outcome(self, name: str) -> None:
        params = self.held[self.one][name].params
        agent, request = params["agent"]["id"], params["requestId"]
        events = [each["event"] for each in await self.transcript(agent)]
        asked = [event for event in events if event["kind"] == "permissionRequested"]
        assert [event["requestId"] for event in asked] == [request], name
        settled = [event for event in events if event["kind"] == "permissionResolved"]
        assert [event["requestId"] for event in settled] == [request], name
        outcome = settled[0]["outcome"]
        assert outcome in self.expected[name], (name, outcome, self.expected[name])
        self.check_runs(name, outcome)
        seen = [event for event in self.progress(agent) if event["kind"] == "permissionResolved"]
        assert seen == settled, name

    def check_runs(self, name: str, outcome: str) -> None:
        """Once when it was allowed, but for one that was stopped just then; else never."""
        mark = self.marks / name
        runs = mark.read_text().count("x") if mark.exists() else 0
        stopped_too = "withdrawn" in self.expected[name]
        assert runs == (outcome == ALLOWED) or (runs == 0 and stopped_too), (name, outcome, runs)

    def progress(self, agent: str) -> Iterator[Any]:
        return (each["event"] for each in self.one.received("agent/progress") if each["agentId"] == agent)

    async def transcript(self, agent: str) -> list[Any]:
        return list((await self.one.request("agent/transcript", {"agentId": agent}))["events"])


@pytest.fixture
async def socket(tmp_path: Path, server_env: dict[str, str]) -> AsyncIterator[Path]:
    path = tmp_path / "socket"
    command = [sys.executable, "-m", "lsp_server", "serve", "--listen", str(path)]
    log = tmp_path / "stderr"
    with log.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(*command, env=server_env, stderr=stderr)
    await until(path.exists, 20)
    yield path
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 20) == 0
    assert "Traceback" not in log.read_text()


async def opened(client: LspClient, workspace: Path) -> LspClient:
    client.hold("agent/permission")
    options = {"trusted": True, "settings": {"maxDepth": 2, "maxConcurrentAgents": 2 * len(AGENTS)}}
    await client.initialize(root=workspace, capabilities=CLIENTS["trusted"].capabilities, options=options)
    return client


@pytest.fixture
async def editor(
    request: pytest.FixtureRequest, socket: Path, server_env: dict[str, str], workspace: Path
) -> AsyncIterator[Callable[[], Awaitable[LspClient]]]:
    """Starts one that is joined to the socket, not initialized yet."""
    clients: list[LspClient] = []

    async def start() -> LspClient:
        command = [*SERVER, "serve", "--connect", str(socket)]
        clients.append(await LspClient.start(command, env=server_env, cwd=workspace))
        return clients[-1]

    yield start
    for client in clients:
        if not client.closed:
            await (client.close() if passed(request) else client.kill())


@pytest.mark.spec("PM-7", "PM-8", "ED-2", "PM-6")
@pytest.mark.parametrize("first", range(0, ROUNDS, TOGETHER_ON_ONE_SERVER))
async def test_a3_a6_a17_a19_every_ask_of_a_storm_ends_exactly_once(
    editor: Callable[[], Awaitable[LspClient]], workspace: Path, model: ModelServer, tmp_path: Path, first: int
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    outcomes: Counter[str] = Counter()
    one, two = [await opened(await editor(), workspace) for _ in range(2)]
    for seed in range(first, first + TOGETHER_ON_ONE_SERVER):
        storm = Storm(one, two, model, marks, seed)
        await storm.begin()
        await storm.answered()
        two = await editor()
        await storm.comes_back(two, workspace)
        await storm.rest()
        await storm.check()
        outcomes.update(each for expected in storm.expected.values() for each in expected)
        for client in (one, two):
            client.checkpoint()
            client.hold("agent/permission")
    assert set(outcomes) == {ALLOWED, REFUSED, "withdrawn"}

"""Agents that launch agents: real SDK, scripted model over HTTP."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core.disk import Disk
from agent_core.disk_target import DiskTarget
from agent_core.event_log import EventLog
from agent_core.events import AgentInfo, MessageAdded, StatusChanged
from agent_core.messages import ToolResultBlock
from agent_core.permissions.types import PermissionAnswer, PermissionRequest
from agent_core.processes import LocalProcesses
from agent_core.repository import GitCommand
from agent_core.runtime import Runtime, SpawnRequest, open_runtime
from agent_core.task import TaskStatus
from lsp_server.demo.loading import load_script
from lsp_server.demo.model_server import ModelServer

pytestmark = pytest.mark.anyio
TASK_TOOLS = ["TaskCreate", "TaskGet", "TaskList", "TaskUpdate"]


def call(tool: str, /, **input: Any) -> dict[str, Any]:
    return {"type": "tool_use", "name": tool, "input": input}


def job(prompt: str, **more: Any) -> dict[str, Any]:
    return call("Agent", description=f"job {prompt}", prompt=f"child {prompt}", **more)


def turns(*turns: Any, user: str | None = None) -> dict[str, Any]:
    """Texts and calls of one turn in a list; a conversation is chosen by what its first message holds."""
    listed = [{"content": turn if isinstance(turn, list) else [turn]} for turn in turns]
    return {"name": user or "root", "turns": listed, **({"match": {"first_user": user}} if user else {})}


SLOW = {
    "name": "slow",
    "match": {"first_user": "child "},
    "turns": [{"content": ["word " * 400], "chunk": 5, "per_delta_ms": 20}],
}


class Person:
    def __init__(self, option: str) -> None:
        self.option, self.asked = option, list[PermissionRequest]()

    async def ask(self, request: PermissionRequest) -> PermissionAnswer | None:
        self.asked.append(request)
        return PermissionAnswer(self.option)


class Desk:
    def __init__(self, runtime: Runtime, model: ModelServer, repository: Path) -> None:
        self.runtime, self.model, self.repository = runtime, model, repository

    async def run(self, *conversations: dict[str, Any], **request: Any) -> AgentInfo:
        self.model.set_script(load_script({"conversations": list(conversations)}), reset=True)
        info = await self.runtime.spawn(SpawnRequest(**{"prompt": "root", "cwd": self.repository, **request}))
        with anyio.fail_after(30):
            return await self.runtime.wait(info.id)

    async def children(self, root: AgentInfo) -> list[AgentInfo]:
        found = [info for info in await self.runtime.list() if info.parent_id == root.id]
        return sorted(found, key=lambda info: info.description)

    async def results(self, agent: AgentInfo) -> list[tuple[str, bool]]:
        """Text and error flag of every tool result that an agent read."""
        events = (await self.runtime.transcript(agent.id)).events
        messages = [event.body.message for event in events if isinstance(event.body, MessageAdded)]
        blocks = [block for message in messages for block in message.content if isinstance(block, ToolResultBlock)]
        return [("\n".join(part.text for part in block.content), block.is_error) for block in blocks]  # type: ignore[union-attr]


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    repository = tmp_path / "repo"
    repository.mkdir()
    (repository / "a.txt").write_text("hello\n")
    for line in ("git init -q", "git add -A", "git -c user.name=a -c user.email=a@b commit -qm x"):
        subprocess.run(line.split(), cwd=repository, check=True)
    async with ModelServer(load_script({"conversations": [turns("ok")]})) as model:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path / "home"),
            "AGENT_LS_STATE_DIR": str(tmp_path / "state"),
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "test",
        }
        runtime = Runtime(env=env, folders=(repository,))
        opened = open_runtime(runtime, files=Disk(), target=DiskTarget(), processes=LocalProcesses(), git=GitCommand())
        async with opened:
            yield Desk(runtime, model, repository)
        assert model.problems == []


@pytest.mark.spec("RUN-1", "RUN-7", "CTX-1", "CTX-9", "RES-1")
async def test_two_at_once_and_their_answers_only(desk: Desk) -> None:
    root = await desk.run(
        turns(call("Read", file_path="a.txt"), "one found it", user="child one"),
        turns("two is done", user="child two"),
        turns([job("one"), job("two")], "all done"),
    )
    one, two = await desk.children(root)
    assert (root.status, root.result) == (TaskStatus.COMPLETED, "all done")
    assert [(each.depth, each.root_id, each.status) for each in (one, two)] == [(1, root.id, TaskStatus.COMPLETED)] * 2
    assert await desk.results(root) == [(expected(one, "one found it"), False), (expected(two, "two is done"), False)]
    told = desk.model.requests("root")[-1].body.decode()
    assert "hello" not in told


def expected(info: AgentInfo, answer: str) -> str:
    usage = info.usage
    counts = f"total_tokens: {usage.total_tokens}\ntool_uses: {usage.tool_uses}\nduration_ms: {usage.duration_ms}"
    return f"{answer}\nagentId: {info.id}\n<usage>\n{counts}\n</usage>"


@pytest.mark.spec("RES-6")
async def test_a_one_shot_agent_gives_its_answer_and_nothing_else(desk: Desk) -> None:
    root = await desk.run(turns("found", user="child x"), turns([job("x", subagent_type="Explore")], "done"))
    assert await desk.results(root) == [("found", False)]
    (child,) = await desk.children(root)
    assert child.model.startswith("claude-haiku")


@pytest.mark.spec("RES-2")
async def test_nothing_said_is_said_as_such(desk: Desk) -> None:
    root = await desk.run(turns([], user="child x"), turns([job("x", subagent_type="Explore")], "done"))
    assert await desk.results(root) == [("(Subagent completed but returned no output.)", False)]


@pytest.mark.spec("RES-7")
async def test_a_long_answer_is_shortened_in_the_middle_and_whole_in_the_output_file(desk: Desk) -> None:
    long = "a" * 40_000 + "MIDDLE" + "z" * 40_000
    root = await desk.run(turns(long, user="child x"), turns([job("x", subagent_type="Explore")], "done"))
    ((text, _),) = await desk.results(root)
    (child,) = await desk.children(root)
    assert len(text) < 33_000 and text.startswith("aaa") and "MIDDLE" not in text
    assert f"(The whole answer is in {child.output_file})" in text
    assert long in child.output_file.read_text()


@pytest.mark.spec("TL-4", "TL-1")
async def test_the_agent_tool_is_taken_at_the_depth_limit(desk: Desk) -> None:
    await desk.run(turns("ok", user="child x"), turns([job("x")], "done"))
    names = [[tool["name"] for tool in entry.json["tools"]] for entry in desk.model.requests()]
    own = ["Bash", "Edit", "Glob", "Grep", "Read", "Write"]
    whole = sorted(["Agent", *own, "ListAgents", "SendMessage", "TaskOutput", "TaskStop", *TASK_TOOLS])
    assert names == [whole, own, whole]


async def test_deeper_when_the_setting_allows_it(desk: Desk) -> None:
    desk.runtime.client_settings = {"maxDepth": 2}
    root = await desk.run(
        turns("grandchild", user="child inner"),
        turns([job("inner")], "child", user="child outer"),
        turns([job("outer")], "root"),
    )
    (child,) = await desk.children(root)
    (grandchild,) = await desk.children(child)
    assert (grandchild.depth, grandchild.root_id, grandchild.result) == (2, root.id, "grandchild")


@pytest.mark.spec("SEL-3", "SEL-5", "IN-3", "IN-13")
@pytest.mark.parametrize(
    ("input", "text"),
    [
        ({"subagent_type": "Explor"}, "there is no agent type 'Explor'; did you mean 'Explore'?"),
        ({"subagent_type": "Plan"}, "denied by the rule Agent(Plan) in the editor's settings"),
        ({"cwd": "/"}, "cwd: '/' is outside the folders of the workspace"),
        ({"cwd": ".", "isolation": "worktree"}, "exclude each other"),
    ],
)
async def test_a_bad_value_is_an_error_result_and_the_loop_goes_on(
    desk: Desk, input: dict[str, Any], text: str
) -> None:
    desk.runtime.client_settings = {"permissions": {"deny": ["Agent(Plan)"]}}
    root = await desk.run(turns([job("x", **input)], "went on"))
    ((said, is_error),) = await desk.results(root)
    assert (text in said, is_error, root.result) == (True, True, "went on")
    assert await desk.children(root) == []


@pytest.mark.spec("SEL-5")
async def test_b11_a_denied_agent_is_not_in_the_list_and_a_name_does_not_help(desk: Desk) -> None:
    desk.runtime.client_settings = {"permissions": {"deny": ["Agent(Plan)"]}}
    root = await desk.run(turns([job("x", subagent_type="Plan", name="helper")], "went on"))
    description = desk.model.requests()[0].json["tools"][0]["description"]
    assert ("- Explore:" in description, "- Plan:" in description) == (True, False)
    assert [is_error for _, is_error in await desk.results(root)] == [True]


async def test_a28_an_ask_of_a_child_names_the_child_and_whom_it_works_for(desk: Desk) -> None:
    person = Person("rejectOnce")
    desk.runtime.attach(person)
    root = await desk.run(
        turns(call("Bash", command="make it"), "could not", user="child x"), turns([job("x")], "done")
    )
    (child,) = await desk.children(root)
    (asked,) = person.asked
    assert (asked.agent_id, asked.root_id, asked.description) == (child.id, root.id, "job x")
    assert [(link.id, link.description) for link in asked.chain] == [(root.id, "root")]
    desk.runtime.detach(person)


async def test_e9_a_child_that_the_user_stopped_is_told_as_such(desk: Desk) -> None:
    async def stop_child() -> None:
        await desk.model.wait_for(1, conversation="slow")
        running = [info for info in await desk.runtime.list() if info.depth == 1]
        await desk.runtime.stop(running[0].id)

    async with anyio.create_task_group() as group:
        group.start_soon(stop_child)
        root = await desk.run(SLOW, turns([job("x")], "understood"))
    ((said, is_error),) = await desk.results(root)
    assert said.startswith("The user stopped this agent. Don't launch it again") and is_error
    assert root.status is TaskStatus.COMPLETED


async def test_a_parent_that_is_stopped_takes_its_children_along(desk: Desk) -> None:
    script = [SLOW, turns([job("x"), job("y")], "never")]
    desk.model.set_script(load_script({"conversations": script}), reset=True)
    root = await desk.runtime.spawn(SpawnRequest("root", desk.repository))
    await desk.model.wait_for(2, conversation="slow")
    await desk.runtime.stop(root.id)
    children = await desk.children(root)
    assert [info.status for info in children] == [TaskStatus.STOPPED] * 2
    assert (await desk.runtime.info(root.id)).status is TaskStatus.STOPPED


async def test_a_failing_child_keeps_what_it_had_said(desk: Desk) -> None:
    broken = {"fault": {"kind": "status", "status": 400, "type": "invalid_request_error", "message": "bad"}}
    script = {"turns": [{"content": ["I found half", call("Read", file_path="a.txt")]}, broken]}
    root = await desk.run({**script, "match": {"first_user": "child x"}}, turns([job("x")], "went on"))
    ((said, is_error),) = await desk.results(root)
    assert said.startswith("The agent failed: the model service answered 400 invalid_request_error: bad") and is_error
    assert "What it had said last:\nI found half" in said


@pytest.mark.spec("RUN-7")
async def test_waiting_parents_hold_no_place(desk: Desk) -> None:
    """With one place only, a parent's children still run, one after the other, and the queue is shown."""
    desk.runtime.client_settings = {"maxConcurrentAgents": 1}
    known: list[str] = []

    def watch(log: EventLog) -> None:
        """The first child answers once all three are there."""
        known.append(log.agent_id)
        if len(known) == 4:
            desk.model.gate("g").set()

    desk.runtime.watch(watch)
    held = {"name": "held", "match": {"first_user": "child "}, "turns": [{"content": ["ok"], "gate": "g"}]}
    root = await desk.run(held, turns([job("a"), job("b"), job("c")], "done"))
    children = await desk.children(root)
    assert (root.result, [info.status for info in children]) == ("done", [TaskStatus.COMPLETED] * 3)
    positions = []
    for info in children:
        events = (await desk.runtime.transcript(info.id)).events
        positions += [
            e.body.queue_position for e in events if isinstance(e.body, StatusChanged) and e.body.queue_position
        ]
    assert sorted(positions) == [1, 1, 2]


@pytest.mark.spec("IN-10")
async def test_an_isolated_child_works_in_its_own_worktree_and_says_where(desk: Desk) -> None:
    edit = [call("Read", file_path="a.txt"), call("Edit", file_path="a.txt", old_string="hello", new_string="moon")]
    root = await desk.run(
        turns(*edit, "edited", user="child x"),
        turns([job("x", subagent_type="general-purpose", isolation="worktree")], "done"),
    )
    (child,) = await desk.children(root)
    assert child.worktree is not None
    ((said, _),) = await desk.results(root)
    assert f"worktreePath: {child.worktree.path}\nworktreeBranch: {child.worktree.branch}" in said
    assert (desk.repository / "a.txt").read_text() == "hello\n"
    assert (child.worktree.path / "a.txt").read_text() == "moon\n"


@pytest.mark.spec("SEL-10")
async def test_b13_a_main_thread_launches_only_what_its_definition_names(desk: Desk) -> None:
    agents = desk.repository / ".claude" / "agents"
    agents.mkdir(parents=True)
    (agents / "lead.md").write_text(
        "---\nname: lead\ndescription: leads\ntools: Agent(Explore), Read\n---\nYou lead.\n"
    )
    desk.runtime.client_settings = {"agent": "lead"}
    desk.model.set_script(
        load_script({"conversations": [turns([job("x", subagent_type="Plan")], "went on")]}), reset=True
    )
    main = await desk.runtime.send("main", "go")
    main = await desk.runtime.wait(main.id)
    assert (main.agent_type, main.result) == ("lead", "went on")
    assert [said for said, _ in await desk.results(main)] == [
        "The agent was not launched: lead may launch Explore, not 'Plan'"
    ]


async def test_k2_leaving_the_runtime_kills_what_its_clean_up_has_left(tmp_path: Path) -> None:
    ended: list[str] = []

    class Watched(LocalProcesses):
        def kill_all(self) -> None:
            ended.append("killed")
            super().kill_all()

    runtime = Runtime(env={"HOME": str(tmp_path)}, folders=(tmp_path,))
    async with open_runtime(runtime, files=Disk(), target=DiskTarget(), processes=Watched(), git=GitCommand()):
        assert ended == []
    assert ended == ["killed"]

"""The façade: agents by id and by name, further runs, the main thread, lists over processes, transcripts."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import evolve

from agent_core import project
from agent_core.errors import (
    AgentDenied,
    AlreadyTerminal,
    InvalidParams,
    MissingCredentials,
    TranscriptFailed,
    UnknownAgent,
)
from agent_core.events import Ended, Event, MessageAdded, Started, StatusChanged, TextDelta, ToolOutput
from agent_core.ids import MAIN
from agent_core.messages import StopReason, Usage
from agent_core.permissions.types import PermissionAnswer, PermissionMode
from agent_core.runtime import Page
from agent_core.state import unanswered
from agent_core.task import TaskStatus
from agent_core.tool import ToolContext
from agent_core.transcript.repair import recover
from lsp_server.demo.script import conversation, say, use
from tests.git_helpers import Repo, clean_git, repo
from tests.unit.agent_core.conftest import AddTools
from tests.unit.agent_core.workshop import SECONDS, Person, Probe, Shop, kinds, open_shop

__all__ = ["clean_git", "repo"]  # fixtures

pytestmark = pytest.mark.anyio

LOOK = use("Glob", pattern="*")


# Further runs and messages


@pytest.mark.spec("TR-1")
async def test_a_further_run_extends_the_conversation_byte_for_byte(shop: Shop) -> None:
    shop.says(say("looking", LOOK), say("first"), say("second"))
    info = await shop.run("look")
    before = shop.runtime._agents[info.id].prompt
    again = await shop.send(info, "and now?")
    assert shop.runtime._agents[info.id].prompt.starts_with(before)
    assert (again.status, again.result, again.usage.turns) == (TaskStatus.COMPLETED, "second", 3)
    assert [kind for kind in kinds(shop.bodies(info)) if kind in ("Started", "Ended")] == ["Started", "Ended", "Ended"]
    last = [entry.usage for entry in shop.model.requests()][-1]
    assert last is not None and last["cache_read_input_tokens"] > 0
    assert shop.told(2)[-1] == "and now?"
    shop.check(again, runs=2)


async def test_the_end_of_the_last_run_is_not_shown_while_the_next_goes_on(shop: Shop) -> None:
    shop.says(say("first"), say("second", gate="g"))
    info = await shop.run()
    await shop.runtime.send(info.id, "again")
    await shop.model.wait_for(2)
    now = await shop.runtime.info(info.id)
    assert now == evolve(info, status=TaskStatus.RUNNING, stop_reason=None, result=None, ended_at=None, usage=now.usage)
    shop.model.gate("g").set()
    assert (await shop.ended(info)).result == "second"


async def test_a_message_to_a_running_agent_comes_after_the_results_and_before_the_next_request(
    shop: Shop, tools: AddTools
) -> None:
    go = anyio.Event()

    async def wait(label: str, ctx: ToolContext) -> str:
        ctx.report("waiting")
        await go.wait()
        return "result"

    tools(Probe("Wait", wait))
    shop.says(say(use("Wait", label="a")), say("done"))
    started = await shop.spawn(permission_mode=PermissionMode.BYPASS)
    await shop.event(started, ToolOutput, lambda body: body.output == "waiting")
    assert (await shop.runtime.send(started.id, "be quick")).status is TaskStatus.RUNNING
    await shop.runtime.send(started.id, "please")
    go.set()
    info = await shop.ended(started)
    assert shop.told(1) == ["result", "be quick", "please"]
    messages = [body.message for body in shop.of(info, MessageAdded)]
    assert [message.role for message in messages] == ["user", "assistant", "user", "user", "user", "assistant"]
    shop.check(info)


async def test_a_message_during_the_last_answer_is_answered_in_the_same_run(shop: Shop) -> None:
    shop.says(say("one", gate="g"), say("two"))
    started = await shop.spawn()
    await shop.model.wait_for(1)
    await shop.runtime.send(started.id, "wait, also this")
    shop.model.gate("g").set()
    info = await shop.ended(started)
    assert (info.result, shop.told(1)) == ("two", ["wait, also this"])
    shop.check(info)


async def test_agents_are_found_by_name_the_latest_first(shop: Shop) -> None:
    shop.says(say("first"), say("again"))
    old, new = await shop.run("a", name="helper"), await shop.run("b", name="helper")
    assert (await shop.runtime.send("helper", "more")).id == new.id
    assert (await shop.ended(new)).result == "again"
    assert (await shop.runtime.info(old.id)).result == "first"
    with pytest.raises(AlreadyTerminal):
        await shop.runtime.stop("helper")


@pytest.mark.parametrize("name", ["nobody", "", "../x"])
async def test_an_unknown_agent_is_unknown_everywhere(shop: Shop, name: str) -> None:
    await shop.runtime.project(shop.folder)
    for ask in (
        shop.runtime.send(name, "x"),
        shop.runtime.stop(name),
        shop.runtime.wait(name),
        shop.runtime.info(name),
        shop.runtime.transcript(name),
        shop.runtime.review(name),
    ):
        with pytest.raises(UnknownAgent, match="agent/list names th"):
            await ask


# The main thread


async def test_the_main_thread_is_made_once_and_remembers(shop: Shop) -> None:
    shop.says(say("hello"), say("I said hello"))
    assert await shop.runtime.list() == []
    info = await shop.ended(await shop.runtime.send(MAIN, "hi"))
    assert (info.agent_type, info.description, info.permission_mode, info.result) == (
        "main",
        "Main thread",
        PermissionMode.DEFAULT,
        "hello",
    )
    again = await shop.ended(await shop.runtime.send(MAIN, "what did you say?"))
    assert (again.id, again.result) == (info.id, "I said hello")
    assert [each.id for each in await shop.runtime.list()] == [info.id]


@pytest.mark.spec("SEL-10")
async def test_the_main_thread_may_be_a_named_agent_with_its_own_pool(tmp_path: Path) -> None:
    async with open_shop(tmp_path, settings={"agent": "boss"}) as shop:
        write_agent(shop, "boss", "tools: Read, Agent(Explore)")
        shop.says(say(use("Agent", description="plan it", prompt="p", subagent_type="Plan")), say("done"))
        info = await shop.ended(await shop.runtime.send(MAIN, "hi"))
        body = shop.asked(0)
        assert (info.agent_type, body["system"][0]["text"]) == ("boss", "You are boss.")
        assert [tool["name"] for tool in body["tools"]] == ["Agent", "Read"]
        words = "The agent was not launched: boss may launch Explore, not 'Plan'"
        assert shop.results(1) == [("toolu_conversation_0_0", True, words)]


async def test_the_model_forced_on_sub_agents_is_not_forced_on_the_main_thread(tmp_path: Path) -> None:
    env = {"CLAUDE_CODE_SUBAGENT_MODEL": "haiku"}
    async with open_shop(tmp_path, env=env, settings={"model": "opus"}) as shop:
        shop.says(say("ok"))
        main, child = await shop.ended(await shop.runtime.send(MAIN, "hi")), await shop.run()
        assert (main.model, child.model) == ("claude-opus-5-5", "claude-haiku-5-5")


@pytest.mark.parametrize("to", [MAIN, "helper"])
async def test_two_messages_at_the_same_moment_go_to_one_run(shop: Shop, to: str) -> None:
    shop.says(say("one"), say("two"), say("three"), say("four"))
    if to != MAIN:
        await shop.run(name=to)
    answers: list[str] = []

    async def send(message: str) -> None:
        answers.append((await shop.runtime.send(to, message)).id)

    async with anyio.create_task_group() as group:
        group.start_soon(send, "first")
        group.start_soon(send, "second")
    [agent_id] = set(answers)
    info = await shop.ended(await shop.runtime.info(agent_id))
    said = "\n".join(text for number in range(len(shop.model.requests())) for text in shop.told(number))
    assert ("first" in said, "second" in said, len(shop.of(info, Ended))) == (True, True, 1 if to == MAIN else 2)
    assert [each.id for each in await shop.runtime.list()] == [agent_id]


# Refusals


async def test_without_credentials_nothing_is_registered(tmp_path: Path) -> None:
    async with open_shop(tmp_path, env={"ANTHROPIC_API_KEY": ""}) as shop:
        for ask in (shop.spawn(), shop.runtime.send(MAIN, "hi")):
            with pytest.raises(MissingCredentials, match="set ANTHROPIC_API_KEY"):
                await ask
        assert (await shop.runtime.list(), shop.logs) == ([], {})
        shop.runtime.api_key = "from the editor"
        shop.says(say("ok"))
        assert (await shop.run()).result == "ok"


@pytest.mark.spec("IN-11")
async def test_a_folder_outside_the_workspace_is_refused(shop: Shop, tmp_path: Path) -> None:
    (shop.folder / "link").symlink_to(tmp_path)
    for cwd, words in (
        (tmp_path, "is outside the folders of the workspace"),
        (shop.folder / "link", "is outside the folders of the workspace"),
        (shop.folder / "..", "is outside the folders of the workspace"),
        (shop.folder / "no", "is no folder"),
        (Path("work"), "must be an absolute path"),
    ):
        with pytest.raises(InvalidParams, match=words):
            await shop.spawn(cwd=cwd)
    assert (await shop.runtime.list(), shop.logs) == ([], {})


@pytest.mark.spec("SEL-5")
async def test_b11_a_denied_agent_is_not_resumed_either(shop: Shop) -> None:
    shop.says(say("one"), say("two"))
    info = await shop.run(agent_type="Explore", name="scout")
    shop.runtime.client_settings = {"permissions": {"deny": ["Agent(Explore)"]}}
    for to in (info.id, "scout"):
        with pytest.raises(AgentDenied, match=r"the agent 'Explore' is denied by the rule Agent\(Explore\)"):
            await shop.runtime.send(to, "more")
    shop.runtime.client_settings = {}
    assert (await shop.send(info, "more")).result == "two"
    shop.check(info, runs=2)


# What another process sees


@pytest.mark.spec("TR-4")
async def test_an_agent_that_lives_elsewhere_is_listed_as_running_and_a_dead_ones_as_interrupted(
    tmp_path: Path,
) -> None:
    """Two processes on one state folder."""
    async with open_shop(tmp_path) as second:
        async with open_shop(tmp_path) as first:
            first.script(
                conversation(say("looking", LOOK), say("never", first_byte_ms=60_000), name="slow", first_user="slow"),
                conversation(say("done")),
            )
            done, slow = await first.run("quick"), await first.spawn("slow")
            await first.model.wait_for(2, conversation="slow")
            running = await first.runtime.info(slow.id)
            assert await second.runtime.list() == [running, done]
            assert await second.runtime.info(done.id) == done
        ended, other = await second.runtime.list()
        assert other == done
        assert (ended.id, ended.status, ended.stop_reason) == (slow.id, TaskStatus.INTERRUPTED, StopReason.CANCELLED)
        assert (ended.result, ended.usage.tool_uses) == ("looking", 1)
        page = await second.runtime.transcript(slow.id)
        assert page.events == tuple(first.events(slow))
        assert (page.next_seq, page.complete) == (len(page.events), True)
        assert unanswered(tuple(each.body.message for each in page.events if isinstance(each.body, MessageAdded))) == ()


@pytest.mark.spec("TR-4")
async def test_a_process_that_was_killed_leaves_interrupted_agents_with_all_that_was_known(
    tmp_path: Path, repo: Repo
) -> None:
    async with open_shop(tmp_path, folder=repo.path) as shop:
        shop.says(say("one"), say(LOOK), say("never", first_byte_ms=60_000))
        done = await shop.run(isolation="worktree", name="helper")
        await shop.runtime.send(done.id, "more")
        await shop.model.wait_for(3)
        live = await shop.runtime.info(done.id)
        assert live.worktree is not None
        project = await shop.runtime.project(repo.path)
        path = project.files_of(done.id).transcript
        lines = path.read_bytes().splitlines(keepends=True)
    second_run = [json.loads(line)["event"]["type"] for line in lines].index("Ended") + 1
    for cut in range(second_run + 1, len(lines) + 1):
        path.write_bytes(b"".join(lines[:cut]))
        async with open_shop(tmp_path, folder=repo.path) as shop:
            [info] = await shop.runtime.list()
            state = recover(path.read_bytes()).state
            assert state is not None
            assert (info.status, info.name, info.result) == (TaskStatus.INTERRUPTED, "helper", None)
            assert (info.worktree, info.usage) == (state.info.worktree, state.info.usage)


# Transcripts and the output file


async def test_a_transcript_comes_in_pages(shop: Shop) -> None:
    shop.says(say("looking", LOOK), say("done", gate="g"))
    started = await shop.spawn()
    await shop.model.wait_for(2)
    events = shop.events(started)
    assert await shop.runtime.transcript(started.id, 0, 2) == Page(tuple(events[:2]), 2, False)
    assert await shop.runtime.transcript(started.id, 2) == Page(tuple(events[2:]), len(events), False)
    shop.model.gate("g").set()
    await shop.ended(started)
    whole = shop.events(started)
    assert await shop.runtime.transcript(started.id, len(events)) == Page(tuple(whole[len(events) :]), len(whole), True)
    assert await shop.runtime.transcript(started.id, len(whole)) == Page((), len(whole), True)
    assert await shop.runtime.transcript(started.id, 0, len(whole) - 1) == Page(
        tuple(whole[:-1]), len(whole) - 1, False
    )


@pytest.mark.spec("CTX-9")
async def test_an_ended_agent_leaves_memory_and_is_told_again_whole(shop: Shop) -> None:
    """The scripted model refuses a further run whose request does not extend the one before it byte by byte."""
    shop.says(say("looking", LOOK), say("done"), say("more"))
    info = await shop.run()
    log, agent = shop.logs[info.id], shop.runtime._agents[info.id]
    assert (log.kept(), log.state.messages, agent.prompt.messages) == ([], (), ())
    assert await shop.runtime.info(info.id) == info
    for _ in range(2):
        page = await shop.runtime.transcript(info.id)
        assert ([each.seq for each in page.events], page.complete) == (list(range(1, log.seq + 1)), True)
    again = await shop.send(info, "go on")
    assert (again.status, again.result) == (TaskStatus.COMPLETED, "more")
    assert [len(shop.asked(number)["messages"]) for number in range(3)] == [1, 3, 5]
    shop.check(info, runs=2)
    late: list[Event] = []
    with anyio.fail_after(2):
        async for event in log.read(written=True):
            late.append(event)
            if event.seq == log.seq:
                break
    assert late == shop.events(info)
    assert (log.kept(), log.state.messages, agent.prompt.messages) == ([], (), ())


@pytest.mark.spec("CTX-9")
async def test_a_further_run_without_its_transcript_fails_and_says_why(shop: Shop) -> None:
    shop.says(say("done"), say("more"))
    info = await shop.run()
    info.output_file.with_suffix(".jsonl").unlink()
    with pytest.raises(TranscriptFailed, match="cannot be read: No such file"):
        await shop.runtime.transcript(info.id)
    again = await shop.send(info, "go on")
    assert again.status is TaskStatus.FAILED
    # The writer may have begun a new file already.
    whys = ("cannot be read: No such file", "damaged or removed: it holds 0 of its first 6 events")
    assert again.error is not None and again.error.startswith("the transcript ")
    assert any(why in again.error for why in whys)


@pytest.mark.spec("TR-1")
async def test_the_transcript_on_disk_is_the_log(shop: Shop) -> None:
    shop.says(say("looking", LOOK), say("done"))
    info = await shop.run()
    project = await shop.runtime.project(shop.folder)
    place = project.sessions / info.conversation_id / "subagents" / f"agent-{info.id}.jsonl"
    records = [json.loads(line) for line in place.read_bytes().splitlines()]
    assert recover(place.read_bytes()).events == tuple(shop.events(info))
    assert [(record["uuid"], record["parentUuid"]) for record in records[:2]] == [
        (f"{info.id}-1", None),
        (f"{info.id}-2", f"{info.id}-1"),
    ]
    assert [record["type"] for record in records if record["event"]["type"] == "MessageAdded"] == [
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert place.is_relative_to(shop.state / "projects")


@pytest.mark.spec("RES-8")
async def test_the_output_file_grows_while_the_agent_works(shop: Shop) -> None:
    shop.says(say("I look.", LOOK), say("All done.", gate="g"))
    started = await shop.spawn("Look around", description="look")
    await shop.model.wait_for(2)
    head = f"# look\n\ngeneral-purpose `{started.id}`, model claude-sonnet-5-5\n\n## Task\n\nLook around\n\n"
    so_far = started.output_file.read_text()
    assert so_far.startswith(f"{head}I look.\n\n### Glob *\n\n")
    shop.model.gate("g").set()
    info = await shop.ended(started)
    rest = started.output_file.read_text().removeprefix(so_far)
    assert rest.startswith("All done.\n\n---\n\n*completed, ")
    assert info.output_file != (await shop.runtime.project(shop.folder)).files_of(info.id).transcript


async def test_one_who_watches_sees_agents_that_were_there_and_those_that_come(shop: Shop) -> None:
    shop.says(say("ok"))
    first = await shop.run()
    seen: list[str] = []
    shop.runtime.watch(lambda log: seen.append(log.agent_id))
    second = await shop.run()
    assert seen == [first.id, second.id]


async def test_leaving_ends_every_run_and_writes_its_end(tmp_path: Path) -> None:
    async with open_shop(tmp_path, settings={"maxConcurrentAgents": 2}) as shop:
        shop.runtime.attach(Person())
        shop.script(
            conversation(say(use("Bash", command="/bin/true")), name="asks", first_user="asks"),
            conversation(say("word " * 99, per_delta_ms=50)),
        )
        asks, talks, queued = [await shop.spawn(task) for task in ("asks", "talks", "queued")]
        await shop.event(asks, StatusChanged, lambda body: body.status is TaskStatus.WAITING)
        await shop.event(talks, TextDelta)
    for info in (asks, talks, queued):
        [transcript] = shop.state.glob(f"projects/*/*/subagents/agent-{info.id}.jsonl")
        events = recover(transcript.read_bytes()).events
        last = events[-1].body
        assert isinstance(last, Ended)
        assert (last.info.status, last.info.pending_permissions) == (TaskStatus.INTERRUPTED, 0)
        assert events == tuple(shop.events(info))
        assert isinstance(events[0].body, Started)
    assert shop.runtime.answer("req_1", PermissionAnswer("allowOnce")) is not None


# Small things


async def test_usage_adds_up_over_runs_and_time_is_measured(shop: Shop) -> None:
    usage = {"input_tokens": 1, "output_tokens": 2}
    shop.says(say("one", usage=usage), say("two", usage=usage))
    first = await shop.run()
    again = await shop.send(first, "more")
    tokens = {"cache_creation_tokens": 0, "cache_read_tokens": 0, "duration_ms": 0}
    assert evolve(first.usage, **tokens) == Usage(1, 2, turns=1)
    assert evolve(again.usage, **tokens) == Usage(2, 4, turns=2)
    assert again.usage.duration_ms >= first.usage.duration_ms > 0


def write_agent(shop: Shop, name: str, *lines: str) -> None:
    path = shop.folder / ".claude" / "agents" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    front: list[Any] = ["---", f"name: {name}", f"description: the {name}", *lines, "---", f"You are {name}.", ""]
    path.write_text("\n".join(front))


async def test_a_folder_that_is_still_being_read_keeps_nobody_from_running(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shop.runtime.project(shop.folder)
    go = threading.Event()
    read = project._signature
    slow = tmp_path / "slow"

    def waiting(found: Any, env: Any) -> Any:
        assert found.root != slow or go.wait(SECONDS)
        return read(found, env)

    monkeypatch.setattr(project, "_signature", waiting)
    shop.says(say("done"))
    async with anyio.create_task_group() as group:
        group.start_soon(shop.runtime.project, slow)
        await anyio.sleep(0.01)
        assert (await shop.run()).result == "done"
        go.set()

"""Agents that talk to one another: by id and name, while they work and after their end; waiting, stopping, listing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core import subagents
from agent_core.events import AgentInfo, MessageAdded, Notified
from agent_core.task import TaskStatus
from lsp_server.demo.script import conversation, say, use
from tests.git_helpers import Repo, clean_git, repo
from tests.unit.agent_core.test_background import child, child_of, job, opened, root, runs
from tests.unit.agent_core.test_subagents import PausingGit
from tests.unit.agent_core.workshop import SECONDS, Shop, open_shop

__all__ = ["clean_git", "repo"]  # fixtures

pytestmark = pytest.mark.anyio
ID = "{{any~agentId: (\\w+)}}"
"""The id of the agent that was launched first, as the model reads it."""


def send(to: str, message: str) -> Any:
    return use("SendMessage", to=to, message=message)


@pytest.mark.spec("MSG-1", "IN-7")
@pytest.mark.parametrize("to", [ID, "helper"])
async def test_a_running_agent_reads_it_at_its_next_turn(shop: Shop, to: str) -> None:
    (shop.folder / "a.txt").write_text("hello\n")
    shop.script(
        child("x", say(use("Read", file_path="a.txt"), gate="late"), say("the end")),
        root(say(job("x", run_in_background=True, name="helper")), say(send(to, "look at b")), say("ok"), say("ok")),
    )
    info = await shop.run()
    made = await child_of(shop, info)
    assert shop.results(2, "root")[0][2] == f"Delivered: {made.id} reads it at its next turn."
    shop.model.gate("late").set()
    await shop.ended(made)
    result, message = shop.told(1, "x")
    assert result == "     1\thello"
    assert message == f"Message from general-purpose ({info.id}):\nlook at b"
    await shop.ended(info)


@pytest.mark.spec("MSG-1", "RUN-5")
async def test_a_finished_agent_goes_on_in_the_background_with_all_that_it_knew(shop: Shop) -> None:
    shop.script(
        child("x", say("first answer"), say("second answer")),
        root(say(job("x")), say(send(ID, "and then?")), say("It thinks."), say("Now I know.")),
    )
    info = await shop.run()
    made = await child_of(shop, info)
    info = await runs(shop, info, 2)
    assert info.result == "Now I know."
    assert "Launched in the background" in shop.results(2, "root")[0][2]
    assert "<result>second answer</result>" in shop.told(3, "root")[0]
    messages = shop.asked(1, "x")["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert shop.told(1, "x")[-1] == "and then?"
    assert (await shop.runtime.info(made.id)).id == made.id


@pytest.mark.spec("MSG-1", "RUN-3")
async def test_without_background_its_answer_is_waited_for(tmp_path: Path) -> None:
    async with opened(tmp_path, {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"}) as shop:
        shop.script(
            child("x", say("first answer"), say("second answer")),
            root(say(job("x")), say(send(ID, "and then?")), say("done")),
        )
        await shop.run()
        assert shop.results(2, "root")[0][2].startswith("second answer")
        names = [tool["name"] for tool in shop.asked(0, "root")["tools"]]
        assert "SendMessage" in names and "TaskOutput" not in names and "TaskStop" not in names


@pytest.mark.spec("MSG-1")
async def test_a_name_that_has_moved_on_is_refused_with_both_ids(shop: Shop) -> None:
    shop.script(
        child("one", say("1"), say("1 again")),
        child("two", say("2")),
        root(
            say(job("one", name="helper")),
            say(send("helper", "again")),
            say(job("two", name="helper")),
            say(send("helper", "hello?")),
            *(say("over"),) * 2,
        ),
    )
    info = await shop.run()
    one, two = [await child_of(shop, info, f"job {name}") for name in ("one", "two")]
    ((_, failed, text),) = [each for each in shop.results(4, "root") if "moved on" in each[2]]
    assert failed and f"you talked to {one.id}, and a newer agent, {two.id}, has it now" in text


@pytest.mark.spec("MSG-1", "IN-13")
async def test_unknown_addresses_and_oneself_are_errors_that_help(shop: Shop) -> None:
    shop.script(
        child("x", say("done")),
        root(say(job("x", name="helper")), say(send("nobody", "hi"), send("main", "hi")), say("over")),
    )
    await shop.run()
    nobody, me = shop.results(2, "root")
    assert nobody[1] and nobody[2] == "There is no agent 'nobody' here. There are: helper."
    assert me[1] and me[2] == "That is you. Do it yourself."


@pytest.mark.spec("MSG-1")
async def test_whom_the_user_has_stopped_the_model_does_not_start_again(shop: Shop) -> None:
    shop.script(
        child("x", say("slow", gate="never")),
        root(say(job("x", run_in_background=True)), say("It works."), say(send(ID, "go on!")), say("I see.")),
    )
    info = await shop.run()
    made = await child_of(shop, info)
    await shop.stopped(made)
    info = await shop.send(info, "well?")
    ((_, failed, text),) = shop.results(3, "root")
    assert failed and text.startswith("The user stopped this agent.")
    assert (await shop.runtime.info(made.id)).status is TaskStatus.STOPPED


@pytest.mark.spec("SEL-5", "MSG-1")
async def test_b11_a_denied_agent_is_not_resumed_either(shop: Shop) -> None:
    shop.script(
        child("x", say("done")),
        root(say(job("x")), say(send(ID, "go on"), gate="late"), say("I see.")),
    )
    info = await shop.spawn()
    await shop.ended(await child_of(shop, info))
    settings = shop.folder / ".claude" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text('{"permissions": {"deny": ["Agent(general-purpose)"]}}')
    await shop.runtime.project(shop.folder)
    shop.model.gate("late").set()
    await shop.ended(info)
    ((_, failed, text),) = shop.results(2, "root")
    assert failed and "Agent(general-purpose)" in text and "settings.json" in text


@pytest.mark.spec("MSG-2", "RUN-6")
async def test_task_output_waits_for_the_end(shop: Shop) -> None:
    shop.script(
        child("x", say("found it", first_byte_ms=100)),
        root(say(job("x", run_in_background=True)), say(use("TaskOutput", task_id=ID)), say("over"), say("over")),
    )
    info = await shop.spawn()
    await shop.ended(info)
    ((_, failed, text),) = shop.results(2, "root")
    assert not failed and text.startswith("found it\nagentId: ")


@pytest.mark.spec("MSG-2", "RUN-6")
async def test_who_waits_has_the_answer_before_the_worktree_is_settled_and_the_notification_comes_after(
    tmp_path: Path, repo: Repo, clean_git: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subagents, "CLEANUP_SECONDS", SECONDS)
    git = PausingGit("unlock")
    async with open_shop(tmp_path, folder=repo.path, git=git) as shop:
        launch = job("x", run_in_background=True, isolation="worktree")
        wait = use("TaskOutput", task_id=ID)
        shop.script(child("x", say("found it")), root(say(launch), say(wait), say("I have it."), say("It is over.")))
        info = await shop.run()
        assert info.result == "I have it."
        assert shop.results(2, "root")[0][2].startswith("found it\nworktreePath: ")
        with anyio.fail_after(SECONDS):
            await git.reached.wait()
        assert shop.of(info, Notified) == []
        git.go.set()
        assert (await runs(shop, info, 2)).result == "It is over."
        assert "<result>found it</result>" in shop.told(3, "root")[0]


@pytest.mark.spec("MSG-2")
@pytest.mark.parametrize("more", [{"block": False}, {"timeout": 50}])
async def test_task_output_tells_how_far_it_is(shop: Shop, more: dict[str, Any]) -> None:
    (shop.folder / "a.txt").write_text("hello\n")
    shop.script(
        child("x", say("I look <usage>", use("Read", file_path="a.txt")), say("the end", gate="never")),
        root(
            say(job("x", run_in_background=True)),
            say(use("TaskOutput", task_id=ID, **more), gate="late"),
            say("It works."),
        ),
    )
    info = await shop.spawn()
    made = await child_of(shop, info)
    await shop.event(made, MessageAdded, lambda body: "hello" in str(body.message.content))
    shop.model.gate("late").set()
    await shop.ended(info)
    ((_, failed, text),) = shop.results(2, "root")
    assert not failed and f"{made.id} is running: 1 turns, 1 tool uses so far.\nLast tool: Read" in text
    assert "I look \\<usage>" in text
    await shop.runtime.stop(info.id, "tree")


@pytest.mark.spec("MSG-2")
async def test_a_wait_holds_no_slot(tmp_path: Path) -> None:
    async with opened(tmp_path, maxConcurrentAgents=1) as shop:
        shop.script(
            child("x", say("found it")),
            root(say(job("x", run_in_background=True)), say(use("TaskOutput", task_id=ID)), say("over"), say("over")),
        )
        await shop.ended(await shop.spawn())
        assert shop.results(2, "root")[0][2].startswith("found it")


@pytest.mark.spec("MSG-2")
async def test_task_stop_ends_it_and_the_model_may_resume_it(shop: Shop) -> None:
    (shop.folder / "a.txt").write_text("hello\n")
    shop.script(
        child(
            "x",
            say("I look", use("Read", file_path="a.txt")),
            (*say("resumed", when="go on"), *say("the end", gate="never")),
        ),
        root(
            say(job("x", run_in_background=True)),
            say(use("TaskStop", task_id=ID), gate="late"),
            say(use("TaskStop", task_id=ID)),
            say(send(ID, "go on")),
            *(say("over"),) * 2,
        ),
    )
    info = await shop.spawn()
    made = await child_of(shop, info)
    await shop.model.wait_for(2, conversation="x")
    shop.model.gate("late").set()
    await shop.ended(info)
    assert shop.results(2, "root")[0][2] == f"Stopped {made.id}. What it had said last:\nI look"
    assert re.match(rf"{made.id} does not work: Agent \"job x\" was stopped", shop.results(3, "root")[0][2])
    assert "Launched in the background" in shop.results(4, "root")[0][2]
    assert (await ended(shop, made)).result == "resumed"
    notified = [text for number in range(len(shop.model.requests("root"))) for text in shop.told(number, "root")]
    assert not any("<status>stopped</status>" in text for text in notified), "it had its answer"


async def ended(shop: Shop, info: AgentInfo) -> AgentInfo:
    with anyio.fail_after(10):
        while True:
            found = await shop.ended(info)
            if found.status is TaskStatus.COMPLETED:
                return found
            await anyio.sleep(0.01)


@pytest.mark.spec("MSG-2")
async def test_the_conversation_itself_cannot_be_stopped_by_a_tool(shop: Shop) -> None:
    shop.script(root(say(use("TaskStop", task_id="main")), say("over")))
    await shop.run()
    assert shop.results(1, "root")[0][2].startswith("You can stop agents that were launched")


async def test_agents_are_listed_with_how_they_stand(shop: Shop) -> None:
    shop.script(
        child("x", say("done")),
        root(say(use("ListAgents")), say(job("x", name="helper")), say(use("ListAgents")), say("over")),
    )
    info = await shop.run()
    made = await child_of(shop, info)
    assert shop.results(1, "root")[0][2] == "No agent was launched yet."
    assert shop.results(3, "root")[0][2] == f"- {made.id} helper (general-purpose): job x: completed"


@pytest.mark.spec("MSG-1", "MSG-2")
async def test_a_persons_stop_outranks_that_of_a_model(shop: Shop) -> None:
    shop.script(
        child("x", say("slow", gate="never")),
        root(
            say(job("x", run_in_background=True)),
            say(use("TaskStop", task_id=ID), gate="stopped"),
            say(send(ID, "go on")),
            say("over"),
        ),
    )
    info = await shop.spawn()
    made = await child_of(shop, info)
    await shop.model.wait_for(1, conversation="x")
    agent = shop.runtime.engine.agents[made.id]
    agent.stop()
    agent.stop(by_model=True)
    shop.model.gate("stopped").set()
    assert not agent.stopped_by_model
    await shop.ended(info)
    assert any(text.startswith("The user stopped this agent") for _, _, text in shop.results(3, "root"))


@pytest.mark.spec("MSG-2")
async def test_after_its_own_stop_the_model_is_not_told_that_the_user_did_it(shop: Shop) -> None:
    shop.script(
        child("x", say("slow", gate="never")),
        root(
            say(job("x", run_in_background=True)),
            say(use("TaskStop", task_id=ID)),
            say(use("TaskOutput", task_id=ID)),
            say("over"),
        ),
    )
    await shop.run()
    ((_, _, text),) = shop.results(3, "root")
    assert text.startswith("This agent was stopped by TaskStop.")


@pytest.mark.spec("MSG-2", "IN-13")
async def test_waiting_for_oneself_is_an_error_at_once(shop: Shop) -> None:
    shop.script(root(say(use("TaskOutput", task_id="main", timeout=600_000)), say("over")))
    await shop.run()
    assert shop.results(1, "root")[0][2].startswith("There is nothing to wait for")


@pytest.mark.spec("MSG-1", "RUN-8")
async def test_a_fork_that_resumes_its_sibling_knows_who_is_told(shop: Shop) -> None:
    """And the parent is told, with no id that it never gave."""
    shop.script(
        child("x", say("first"), say("second")),
        conversation(say(send("helper", "again")), say("fork over"), user="directive f", name="f", offset=2),
        root(
            say(job("x", name="helper")),
            say(use("Agent", description="f", prompt="directive f", fork=True, run_in_background=False)),
            *(say("over"),) * 2,
        ),
    )
    info = await shop.run()
    made = await child_of(shop, info, "job x")
    ((_, _, text),) = shop.results(1, "f")
    assert text.startswith(f"{made.id} goes on. Its own parent is told when it ends")
    assert (await shop.ended(made)).result == "second"
    await shop.ended(info)

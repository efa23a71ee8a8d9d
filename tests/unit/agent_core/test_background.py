"""Agents that nobody waits for: launched so, moved there, forced there; how their parents are told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core.background import launched, runs_in_background
from agent_core.definitions import AgentDefinition
from agent_core.errors import AlreadyTerminal, NotAllowed
from agent_core.events import AgentInfo, Ended, MessageAdded, Notified, StatusChanged, TextDelta
from agent_core.permissions.types import PermissionMode
from agent_core.settings import Settings
from agent_core.task import TaskStatus
from lsp_server.demo.script import Conversation, Fault, conversation, say, use
from tests.git_helpers import Repo, clean_git, repo
from tests.unit.agent_core.workshop import SECONDS, Shop, open_shop

__all__ = ["clean_git", "repo"]  # fixtures

pytestmark = pytest.mark.anyio


def job(prompt: str, **more: Any) -> Any:
    return use("Agent", description=f"job {prompt}", prompt=f"child {prompt}", **more)


def child(prompt: str, *turns: Any) -> Conversation:
    return conversation(*turns, first_user=f"child {prompt}", name=prompt)


def root(*turns: Any) -> Conversation:
    return conversation(*turns, first_user="go", name="root")


@asynccontextmanager
async def opened(place: Path, env: dict[str, str] | None = None, **settings: Any) -> AsyncIterator[Shop]:
    async with open_shop(place, env=env, settings=settings) as shop:
        yield shop
        assert shop.model.problems == []


async def child_of(shop: Shop, parent: AgentInfo, description: str = "") -> AgentInfo:
    with anyio.fail_after(SECONDS):
        while True:
            for info in await shop.runtime.list():
                if info.parent_id == parent.id and description in info.description:
                    return info
            await anyio.sleep(0.005)


async def runs(shop: Shop, info: AgentInfo, count: int) -> AgentInfo:
    """The agent at the end of its run of that number."""
    with anyio.fail_after(SECONDS):
        seen = 0
        async for event in shop.logs[info.id].read():
            seen += isinstance(event.body, Ended)
            if isinstance(event.body, Ended) and seen == count:
                return event.body.info
    raise AssertionError("the log ended")


def request_bodies(shop: Shop, name: str) -> list[str]:
    return [json.dumps(each.json, sort_keys=True) for each in shop.model.requests(name)]


# RUN-2, RUN-3: what decides


@pytest.mark.spec("RUN-2", "RUN-3", "RUN-10", "IN-5", "FK-8")
@pytest.mark.parametrize(
    ("asked", "definition", "settings", "env", "fork", "background"),
    [
        (None, False, {}, {}, False, False),
        (True, False, {}, {}, False, True),
        (False, False, {}, {}, False, False),
        (None, True, {}, {}, False, True),
        (False, True, {}, {}, False, True),
        (None, False, {"default_background": True}, {}, False, True),
        (False, False, {"default_background": True}, {}, False, False),
        (False, False, {"coordinator": True}, {}, False, True),
        (False, False, {"assistant": True}, {}, False, True),
        (False, False, {"proactive": True}, {}, False, True),
        (False, False, {"forking": "on"}, {}, False, True),
        (None, False, {"forking": "explicit"}, {}, True, True),
        (False, False, {"forking": "explicit"}, {}, True, False),
        (
            True,
            True,
            {"coordinator": True, "forking": "on"},
            {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"},
            True,
            False,
        ),
        (True, False, {}, {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "0"}, False, True),
    ],
)
def test_who_runs_in_the_background(
    asked: bool | None, definition: bool, settings: dict[str, Any], env: dict[str, str], fork: bool, background: bool
) -> None:
    agent = AgentDefinition("a", "b", "c", "user", background=definition)
    assert runs_in_background(asked, agent, Settings(**settings), env, fork=fork) is background


@pytest.mark.spec("RUN-3", "IN-12")
async def test_switched_off_it_is_not_in_the_schema_and_an_agent_file_cannot_ask_for_it(tmp_path: Path) -> None:
    agents = tmp_path / "home" / ".claude" / "agents"
    agents.mkdir(parents=True)
    (agents / "slow.md").write_text("---\nname: slow\ndescription: d\nbackground: true\n---\nWork.")
    async with opened(tmp_path, {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"}) as shop:
        shop.script(child("x", say("found")), root(say(job("x", subagent_type="slow")), say("done")))
        info = await shop.run()
        assert info.result == "done"
        (result,) = shop.results(1, "root")
        assert result[2].startswith("found")
        (tool,) = [each for each in shop.asked(0, "root")["tools"] if each["name"] == "Agent"]
        assert "run_in_background" not in tool["input_schema"]["properties"]
        made = await child_of(shop, info)
        assert not made.background
        with pytest.raises(NotAllowed, match="CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"):
            await shop.runtime.background(made.id)


# RUN-5, RUN-6, RUN-8: launched, not waited for, told


@pytest.mark.spec("RUN-5", "RUN-6", "RUN-8", "RES-3", "IN-5")
async def test_the_parent_goes_on_at_once_and_is_woken_by_the_end(shop: Shop) -> None:
    shop.script(
        child("x", say("found it", gate="late")),
        root(say(job("x", run_in_background=True)), say("It works."), say("It found it.")),
    )
    info = await shop.run()
    assert info.result == "It works."
    made = await child_of(shop, info)
    assert (made.status, made.background) == (TaskStatus.RUNNING, True)
    (told,) = shop.results(1, "root")
    assert told == (made_by(shop, info), False, launched(made, ("Read", "Bash")))
    shop.model.gate("late").set()
    info = await runs(shop, info, 2)
    assert info.result == "It found it."
    made = shop.logs[made.id].state.info
    (message,) = shop.told(2, "root")
    usage = made.usage
    assert message == (
        f"<task-notification>\n<task-id>{made.id}</task-id>\n<tool-use-id>{made_by(shop, info)}</tool-use-id>\n"
        f"<output-file>{made.output_file}</output-file>\n<status>completed</status>\n"
        f'<summary>Agent "job x" is done</summary>\n<result>found it</result>\n'
        f"<usage>\ntotal_tokens: {usage.total_tokens}\ntool_uses: 0\nduration_ms: {usage.duration_ms}\n</usage>\n"
        "</task-notification>"
    )
    assert shop.of(info, Notified) == [Notified(made.id, TaskStatus.COMPLETED, 'Agent "job x" is done')]
    shop.check(info, runs=2)
    shop.check(made)


@pytest.mark.spec("RES-3")
@pytest.mark.parametrize(
    ("tools", "look"), [("Agent, Glob", None), ("Agent, Bash", "Bash"), ("Agent, Bash, Read", "Read")]
)
async def test_how_to_look_at_it_is_told_to_who_can(shop: Shop, tools: str, look: str | None) -> None:
    agents = shop.folder / ".claude" / "agents"
    agents.mkdir(parents=True)
    (agents / "lead.md").write_text(f"---\nname: lead\ndescription: d\ntools: {tools}\n---\nLead.")
    shop.script(
        child("x", say("found it", gate="late")), root(say(job("x", run_in_background=True)), *(say("ok"),) * 2)
    )
    info = await shop.run(agent_type="lead")
    made = await child_of(shop, info)
    assert shop.results(1, "root")[0][2].splitlines() == [
        "Launched in the background. You are told when it ends; until then neither poll nor guess its result.",
        f"agentId: {made.id}",
        f"outputFile: {made.output_file}",
        *([f"If the user asks how far it is: {look} the end of that file."] if look else ()),
    ]
    shop.model.gate("late").set()
    await runs(shop, info, 2)


def made_by(shop: Shop, parent: AgentInfo) -> str:
    calls = [use for body in shop.of(parent, MessageAdded) for use in body.message.tool_uses]
    return next(each.id for each in calls if each.name == "Agent")


@pytest.mark.spec("RUN-8")
async def test_a_parent_that_works_is_told_at_its_next_turn_and_only_once(shop: Shop) -> None:
    (shop.folder / "a.txt").write_text("hello\n")
    shop.script(
        child("x", say("found it")),
        root(
            say(job("x", run_in_background=True)), say(use("Read", file_path="a.txt"), gate="late"), say("Both done.")
        ),
    )
    info = await shop.spawn()
    await shop.ended(await child_of(shop, info))
    shop.model.gate("late").set()
    info = await shop.ended(info)
    assert info.result == "Both done."
    notifications = [text for text in shop.told(2, "root") if text.startswith("<task-notification>")]
    assert len(notifications) == 1 and len(shop.model.requests("root")) == 3
    shop.check(info)


@pytest.mark.spec("RUN-5")
async def test_e1_three_survive_an_interrupt_of_their_parent(shop: Shop) -> None:
    jobs = [job(name, run_in_background=True) for name in ("one", "two", "three")]
    shop.script(
        *(child(name, say("found", gate="late")) for name in ("one", "two", "three")),
        root(say(*jobs), (*say("I heard of three.", when="well then"), *say("too slow", gate="never"))),
    )
    info = await shop.spawn()
    children = [await child_of(shop, info, f"job {name}") for name in ("one", "two", "three")]
    await shop.model.wait_for(2, conversation="root")
    info = await shop.stopped(info)
    assert info.status is TaskStatus.STOPPED
    shop.model.gate("late").set()
    assert [(await shop.ended(each)).status for each in children] == [TaskStatus.COMPLETED] * 3
    await anyio.sleep(0.05)
    assert shop.logs[info.id].state.info.status is TaskStatus.STOPPED, "whom the user stopped nobody wakes"
    info = await shop.send(info, "well then")
    assert sum(text.startswith("<task-notification>") for text in shop.told(2, "root")) == 3


@pytest.mark.spec("RUN-5")
async def test_e6_the_scope_tree_ends_them_too(shop: Shop) -> None:
    shop.script(child("x", say("found", gate="never")), root(say(job("x", run_in_background=True)), say("It works.")))
    info = await shop.run()
    made = await child_of(shop, info)
    with pytest.raises(AlreadyTerminal):
        await shop.runtime.stop(info.id)
    await shop.runtime.stop(info.id, "tree")
    assert shop.logs[made.id].state.info.status is TaskStatus.STOPPED
    with pytest.raises(AlreadyTerminal):
        await shop.runtime.stop(info.id, "tree")


# RUN-9: other ends


@pytest.mark.spec("RUN-9")
async def test_a_failure_is_told_with_what_was_found(tmp_path: Path) -> None:
    async with opened(tmp_path, {"CLAUDE_CODE_MAX_RETRIES": "0"}) as shop:
        (shop.folder / "a.txt").write_text("hello\n")
        shop.script(
            child(
                "x",
                say("I saw hello.", use("Read", file_path="a.txt")),
                say("", fault=Fault("status", status=400), gate="late"),
            ),
            root(say(job("x", run_in_background=True)), say("It works."), say("It failed.")),
        )
        info = await shop.run()
        shop.model.gate("late").set()
        info = await runs(shop, info, 2)
        (message,) = shop.told(2, "root")
        assert "<status>failed</status>" in message and "<result>I saw hello.</result>" in message
        assert '<summary>Agent "job x" failed: the model service answered 400' in message
        assert info.result == "It failed."


@pytest.mark.spec("RUN-9")
async def test_e6_a_stop_by_the_user_wakes_nobody_and_is_told_at_the_next_turn(shop: Shop) -> None:
    shop.script(
        child("x", say("found", gate="never")),
        root(say(job("x", run_in_background=True)), say("It works."), say("You stopped it.")),
    )
    info = await shop.run()
    await shop.stopped(await child_of(shop, info))
    await anyio.sleep(0.05)
    assert len(shop.model.requests("root")) == 2
    info = await shop.send(info, "well?")
    texts = shop.told(2, "root")
    assert "<status>stopped</status>" in texts[0] and "well?" in texts[-1]
    assert info.result == "You stopped it."


# RUN-4: moved


@pytest.mark.spec("RUN-4")
async def test_a_move_in_the_middle_of_an_answer_loses_and_repeats_nothing(tmp_path: Path) -> None:
    words = "word " * 60
    seen: list[list[str]] = []
    for move in (False, True):
        async with opened(tmp_path / str(move)) as shop:
            (shop.folder / "a.txt").write_text("hello\n")
            shop.script(
                child(
                    "x",
                    say(words, use("Read", file_path=str(shop.folder / "a.txt")), chunk=5, per_delta_ms=5),
                    say("found it"),
                ),
                root(say(job("x")), say("It works."), say("Done.")),
            )
            info = await shop.spawn()
            made = await child_of(shop, info)
            await shop.event(made, TextDelta)
            if move:
                moved = await shop.runtime.background(made.id)
                assert moved.background
                assert StatusChanged(TaskStatus.RUNNING, True) in shop.of(made, StatusChanged)
                assert (await runs(shop, info, 1)).result == "It works."
                assert shop.results(1, "root")[0][2] == launched(moved, ("Read", "Bash"))
                info = await runs(shop, info, 2)
                assert "<result>found it</result>" in shop.told(2, "root")[0]
            made = await shop.ended(made)
            await shop.ended(info)
            assert (made.background, made.result) == (move, "found it")
            texts = [body.message.text for body in shop.of(made, MessageAdded) if body.message.role == "assistant"]
            assert texts == [words, "found it"]
            seen.append([text.replace(str(shop.folder), "") for text in request_bodies(shop, "x")])
    assert strip_ids(seen[0]) == strip_ids(seen[1])


def strip_ids(bodies: list[str]) -> list[Any]:
    """Without the ids that the scripted model counts up for itself."""
    import re

    return [re.sub(r"toolu_\w+", "toolu", body) for body in bodies]


@pytest.mark.spec("RUN-4")
async def test_it_moves_by_itself_when_it_takes_long(tmp_path: Path) -> None:
    async with opened(tmp_path, autoBackgroundMs=50) as shop:
        shop.script(child("x", say("found", gate="late")), root(say(job("x")), say("It takes long."), say("Found.")))
        info = await shop.run()
        assert info.result == "It takes long."
        shop.model.gate("late").set()
        assert (await runs(shop, info, 2)).result == "Found."


@pytest.mark.spec("RUN-4")
async def test_zero_means_never(tmp_path: Path) -> None:
    async with opened(tmp_path, autoBackgroundMs=0) as shop:
        shop.script(child("x", say("found", first_byte_ms=200)), root(say(job("x")), say("Found.")))
        info = await shop.run()
        assert info.result == "Found." and shop.results(1, "root")[0][2].startswith("found")


@pytest.mark.spec("RUN-4")
async def test_an_agent_that_waits_for_its_place_can_be_moved_too(tmp_path: Path) -> None:
    async with opened(tmp_path, maxConcurrentAgents=1) as shop:
        shop.script(
            child("one", say("first", gate="late")),
            child("two", say("second", gate="late")),
            root(say(job("one"), job("two")), say("Started.", gate="go"), say("All."), say("All.")),
        )
        info = await shop.spawn()
        queued = await one_that_queues(shop, [await child_of(shop, info, f"job {name}") for name in ("one", "two")])
        await shop.runtime.background(queued.id)
        shop.model.gate("late").set()
        shop.model.gate("go").set()
        assert (await shop.ended(queued)).background
        await shop.ended(info)
        assert [
            text for _, _, text in shop.results(1, "root") if "Launched in the background" in text and queued.id in text
        ]


async def one_that_queues(shop: Shop, agents: list[AgentInfo]) -> AgentInfo:
    """Which of them came second is not ours to say."""
    with anyio.fail_after(SECONDS):
        while True:
            for each in agents:
                if any(body.queue_position is not None for body in shop.of(each, StatusChanged)):
                    return each
            await anyio.sleep(0.005)


@pytest.mark.spec("RUN-8")
async def test_a_child_woken_by_its_own_child_reports_to_its_parent(tmp_path: Path) -> None:
    """Its first answer was given already, so the second one is a notification of its own."""
    async with opened(tmp_path, maxDepth=2) as shop:
        shop.script(
            child("deep", say("bottom", gate="late")),
            child("mid", say(job("deep", run_in_background=True)), say("not yet"), say("now I know: bottom")),
            root(say(job("mid")), say("Waiting."), say("Bottom it is.")),
        )
        info = await shop.run()
        assert info.result == "Waiting."
        shop.model.gate("late").set()
        info = await runs(shop, info, 2)
        assert info.result == "Bottom it is."
        assert "<result>now I know: bottom</result>" in shop.told(2, "root")[0]


@pytest.mark.spec("WT-3", "WT-4", "RUN-5")
async def test_a_worktree_stays_while_children_work_in_it(tmp_path: Path, repo: Repo, clean_git: None) -> None:
    """Their parent has ended without a change of its own."""
    async with open_shop(tmp_path, folder=repo.path) as shop:
        shop.script(
            child("x", say(use("Write", file_path="new.txt", content="x"), gate="late"), say("written")),
            root(say(job("x", run_in_background=True)), say("I wait."), say("Both done.")),
        )
        info = await shop.run(isolation="worktree", permission_mode=PermissionMode.ACCEPT_EDITS)
        assert info.worktree is not None and info.worktree.path.is_dir()
        shop.model.gate("late").set()
        info = await runs(shop, info, 2)
        assert info.worktree is not None and (info.worktree.path / "new.txt").read_text() == "x"
        assert "locked" not in repo.git("worktree", "list", "--porcelain")


@pytest.mark.spec("WT-3")
async def test_the_last_one_who_leaves_unlocks_it(tmp_path: Path, repo: Repo, clean_git: None) -> None:
    async with open_shop(tmp_path, folder=repo.path) as shop:
        shop.script(
            child("x", say("never", gate="never")),
            root(say(job("x", run_in_background=True)), say("I wait.")),
        )
        info = await shop.run(isolation="worktree")
        assert "locked" in repo.git("worktree", "list", "--porcelain")
        await shop.stopped(await child_of(shop, info))
        assert "locked" not in repo.git("worktree", "list", "--porcelain")


async def test_a_message_that_comes_during_a_stop_begins_a_run_of_its_own(tmp_path: Path) -> None:
    async with opened(tmp_path, permissions={"allow": ["Bash"]}) as shop:
        command = "trap '' TERM; touch begun; sleep 30"
        shop.script(root(say(use("Bash", command=command)), say("I do that instead.")))
        info = await shop.spawn()
        with anyio.fail_after(SECONDS):
            while not (shop.folder / "begun").exists():
                await anyio.sleep(0.005)
        async with anyio.create_task_group() as group:
            group.start_soon(shop.runtime.stop, info.id)
            await anyio.sleep(0.02)
            await shop.runtime.send(info.id, "do this instead")
        info = await runs(shop, info, 2)
        assert info.result == "I do that instead."
        assert shop.told(1, "root")[-1] == "do this instead"


async def test_what_was_said_before_a_stop_stays_in_the_conversation(shop: Shop) -> None:
    shop.script(root((*say("heard", when="one more"), *say("slow", gate="never"))))
    info = await shop.spawn()
    await shop.model.wait_for(1)
    await shop.runtime.send(info.id, "mind the tests")
    info = await shop.stopped(info)
    assert info.status is TaskStatus.STOPPED
    info = await shop.send(info, "one more thing")
    assert info.result == "heard"
    assert "mind the tests" in json.dumps(shop.asked(1, "root")["messages"])

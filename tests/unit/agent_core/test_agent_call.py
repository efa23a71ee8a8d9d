"""One call of the Agent tool: what its fields do, what the child is given, and what it shares with its parent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core.events import AgentInfo, Ended, FilesChanged, MessageAdded, Started, ToolCalled
from agent_core.permissions.types import PermissionMode
from agent_core.task import TaskStatus
from agent_core.tool import ToolContext
from lsp_server.demo.script import Content, Conversation, ToolUse, Turn, conversation, say, use
from tests.git_helpers import Repo, clean_git, repo
from tests.unit.agent_core.conftest import AddTools
from tests.unit.agent_core.workshop import Probe, Shop, open_shop

__all__ = ["clean_git", "repo"]  # fixtures

pytestmark = pytest.mark.anyio

FREE: dict[str, Any] = {"permission_mode": PermissionMode.BYPASS}
OWN = ["Bash", "Edit", "Glob", "Grep", "Read", "Write"]
TALK = {"ListAgents", "SendMessage", "TaskOutput", "TaskStop", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate"}
DONE = say("child is done")


def job(**more: Any) -> ToolUse:
    return ToolUse("Agent", {"description": "look at it", "prompt": "child: look", **more}, unchecked=True)


def child(*turns: tuple[Turn, ...]) -> Conversation:
    return conversation(*(turns or (DONE,)), name="child", first_user="child: look")


async def launched(
    shop: Shop, *calls: Content, child_turns: tuple[tuple[Turn, ...], ...] = (), **fields: Any
) -> AgentInfo:
    """The root after it made these calls in one turn and said that it goes on."""
    shop.script(child(*child_turns), conversation(say(*calls), say("went on"), name="root"))
    root = await shop.run(**fields)
    assert (root.status, root.result) == (TaskStatus.COMPLETED, "went on")
    return root


async def children(shop: Shop, root: AgentInfo) -> list[AgentInfo]:
    return [info for info in await shop.runtime.list() if info.parent_id == root.id]


def tool_names(shop: Shop, name: str, number: int = 0) -> list[str]:
    """But for those with which agents talk to each other and keep their tasks."""
    return [tool["name"] for tool in shop.asked(number, name)["tools"] if tool["name"] not in TALK]


def agent_tool(shop: Shop) -> dict[str, Any]:
    [tool] = [tool for tool in shop.asked(0, "root")["tools"] if tool["name"] == "Agent"]
    found: dict[str, Any] = tool
    return found


# The fields


@pytest.mark.spec("IN-1", "IN-2")
async def test_the_description_is_what_people_see_and_the_prompt_is_what_the_child_is_told(shop: Shop) -> None:
    root = await launched(shop, job(description="count the files", prompt="child: look\nand count"))
    [info] = await children(shop, root)
    assert info.description == "count the files"
    assert [body.title for body in shop.of(root, ToolCalled)] == ["general-purpose: count the files"]
    assert shop.told(0, "child")[-1] == "child: look\nand count"
    assert "count the files" not in str(shop.asked(0, "child"))
    schema = agent_tool(shop)["input_schema"]
    assert {"description", "prompt"} <= set(schema["required"])
    assert "3 to 5 words" in schema["properties"]["description"]["description"]


@pytest.mark.spec("IN-4")
@pytest.mark.parametrize(
    ("model", "runs"),
    [
        ("opus", "claude-opus-5-5"),
        ("sonnet", "claude-sonnet-5-5"),
        ("haiku", "claude-haiku-5-5"),
        ("claude-opus-5-5-20260101", "claude-opus-5-5-20260101"),
        ("inherit", "claude-haiku-5-5"),
        (None, "claude-haiku-5-5"),
    ],
)
async def test_the_child_runs_the_model_of_the_call(shop: Shop, model: str | None, runs: str) -> None:
    root = await launched(shop, job(**({"model": model} if model else {})), model="haiku")
    [info] = await children(shop, root)
    assert (info.model, shop.asked(0, "child")["model"]) == (runs, runs)
    assert [shop.asked(number, "root")["model"] for number in (0, 1)] == ["claude-haiku-5-5"] * 2


@pytest.mark.spec("IN-9")
@pytest.mark.parametrize(
    ("mode", "runs", "note"),
    [
        (None, PermissionMode.ACCEPT_EDITS, None),
        ("plan", PermissionMode.PLAN, None),
        ("dontAsk", PermissionMode.DONT_ASK, None),
        ("default", PermissionMode.DEFAULT, None),
        ("bubble", PermissionMode.BUBBLE, None),
        ("acceptEdits", PermissionMode.ACCEPT_EDITS, None),
    ],
)
async def test_the_child_has_the_mode_of_the_call(
    tmp_path: Path, mode: str | None, runs: PermissionMode, note: str | None
) -> None:
    async with open_shop(tmp_path, trusted=True) as shop:
        root = await launched(shop, job(**({"mode": mode} if mode else {})))
        [info] = await children(shop, root)
        [(_, failed, said)] = shop.results(1, "root")
        assert (info.permission_mode, root.permission_mode) == (runs, PermissionMode.BUBBLE)
        assert (failed, "wider" in said) == (False, False)


@pytest.mark.spec("IN-9")
async def test_a_mode_that_is_too_wide_is_capped_and_the_parent_is_told(tmp_path: Path) -> None:
    async with open_shop(tmp_path, trusted=True, settings={"defaultPermissionMode": "default"}) as shop:
        root = await launched(shop, job(mode="acceptEdits"))
        [info] = await children(shop, root)
        [(_, failed, said)] = shop.results(1, "root")
        assert (info.permission_mode, failed) == (PermissionMode.DEFAULT, False)
        assert "(mode acceptEdits is wider than the agent may have; it ran with default.)" in said


@pytest.mark.spec("IN-9")
async def test_a_child_in_plan_mode_writes_nothing(shop: Shop) -> None:
    write = say(use("Write", file_path="new.txt", content="x"))
    await launched(shop, job(mode="plan"), child_turns=(write, DONE), **FREE)
    [(_, failed, _)] = shop.results(1, "child")
    assert (failed, (shop.folder / "new.txt").exists()) == (True, False)


@pytest.mark.spec("IN-10")
async def test_isolation_is_offered_inside_a_repository_only_and_remote_nowhere(tmp_path: Path, repo: Repo) -> None:
    async with open_shop(tmp_path, folder=repo.path) as shop:
        await launched(shop, job())
        assert agent_tool(shop)["input_schema"]["properties"]["isolation"]["enum"] == ["worktree"]
    async with open_shop(tmp_path) as shop:
        root = await launched(shop, job(isolation="worktree"))
        assert "isolation" not in agent_tool(shop)["input_schema"]["properties"]
        [(_, failed, said)] = shop.results(1, "root")
        assert (failed, "'isolation' was unexpected" in said, await children(shop, root)) == (True, True, [])


@pytest.mark.spec("IN-10")
async def test_an_isolated_child_and_its_sibling_that_is_not(tmp_path: Path, repo: Repo) -> None:
    async with open_shop(tmp_path, folder=repo.path) as shop:
        write = conversation(
            say(use("Write", file_path="new.txt", content="isolated\n")), DONE, name="child", first_user="child: look"
        )
        other = conversation(say(use("Read", file_path="a.txt")), DONE, name="other", first_user="child: read")
        calls = (job(isolation="worktree"), job(prompt="child: read", description="read it"))
        shop.script(write, other, conversation(say(*calls), say("went on"), name="root"))
        root = await shop.run(**FREE)
        isolated, plain = sorted(await children(shop, root), key=lambda info: info.description)
        assert (isolated.isolation, plain.isolation, plain.worktree) == ("worktree", "none", None)
        assert isolated.worktree is not None
        assert (isolated.worktree.path / "new.txt").read_text() == "isolated\n"
        assert not (repo.path / "new.txt").exists()


@pytest.mark.spec("IN-1", "IN-2", "IN-4", "IN-9", "IN-10", "IN-13")
@pytest.mark.parametrize(
    ("input", "wrong", "allowed"),
    [
        ({"prompt": "p"}, "'description' is a required property", ""),
        ({"description": "d"}, "'prompt' is a required property", ""),
        ({"description": "d", "prompt": ""}, "Bad input of Agent, prompt: ", "non-empty"),
        ({"description": "", "prompt": "p"}, "Bad input of Agent, description: ", "non-empty"),
        ({"description": 5, "prompt": "p"}, "Bad input of Agent, description: 5 is not of type", "'string'"),
        ({"description": "d", "prompt": "p", "mode": "free"}, "'free' is not one of", "'acceptEdits'"),
        ({"description": "d", "prompt": "p", "mode": "bypassPermissions"}, "'bypassPermissions' is not one", "'plan'"),
        ({"description": "d", "prompt": "p", "isolation": "remote"}, "isolation: 'remote' is not one of", "'worktree'"),
        ({"description": "d", "prompt": "p", "model": ["opus"]}, "Agent, model: ['opus'] is not of type", "'string'"),
        ({"description": "d", "prompt": "p", "model": "no pe\n"}, "model: 'no pe\\n' is no name of a model", "haiku"),
        ({"description": "d", "prompt": "p", "agent": "x"}, "('agent' was unexpected)", "subagent_type"),
        ({"description": "d", "prompt": "p", "subagent_type": "nobody"}, "no agent type 'nobody'", "Explore"),
    ],
)
async def test_a_bad_field_is_told_with_what_is_allowed_and_the_loop_goes_on(
    tmp_path: Path, repo: Repo, input: dict[str, Any], wrong: str, allowed: str
) -> None:
    async with open_shop(tmp_path, folder=repo.path) as shop:
        root = await launched(shop, ToolUse("Agent", input, unchecked=True), use("Glob", pattern="*.txt"))
        (_, failed, said), (_, other_failed, found) = shop.results(1, "root")
        assert (failed, wrong in said, allowed in said) == (True, True, True), said
        assert (other_failed, "a.txt" in found) == (False, True)
        assert await children(shop, root) == []


# Its own state


@pytest.mark.spec("CTX-1")
async def test_what_one_has_read_the_other_has_not(shop: Shop) -> None:
    """Neither may change a file on the strength of what the other has seen."""
    for name in ("mine.txt", "its.txt"):
        (shop.folder / name).write_text("one\n")
    change = {"old_string": "one", "new_string": "two"}
    shop.script(
        child(
            say(use("Edit", file_path="mine.txt", **change)),
            say(use("Read", file_path="its.txt")),
            DONE,
        ),
        conversation(
            say(use("Read", file_path="mine.txt")),
            say(job()),
            say(use("Edit", file_path="its.txt", **change)),
            say(use("Edit", file_path="mine.txt", **change)),
            say("went on"),
            name="root",
        ),
    )
    await shop.run(**FREE)
    [(_, childs, _)], [(_, parents, _)], [(_, own, _)] = (
        shop.results(1, "child"),
        shop.results(3, "root"),
        shop.results(4, "root"),
    )
    assert (childs, parents, own) == (True, True, False)
    assert ((shop.folder / "mine.txt").read_text(), (shop.folder / "its.txt").read_text()) == ("two\n", "one\n")


@pytest.mark.spec("CTX-1")
async def test_a_fork_has_a_copy_of_what_its_parent_has_read(tmp_path: Path) -> None:
    """Its conversation shows those files; what it reads itself is its own."""
    async with open_shop(tmp_path, settings={"permissions": {"allow": ["Edit"]}}, trusted=True) as shop:
        for name in ("mine.txt", "its.txt"):
            (shop.folder / name).write_text("one\n")
        change = {"old_string": "one", "new_string": "two"}
        fork = ToolUse("Agent", {"description": "d", "prompt": "go", "fork": True, "run_in_background": False})
        shop.script(
            conversation(
                say(use("Edit", file_path="mine.txt", **change)),
                say(use("Read", file_path="its.txt")),
                say("forked"),
                name="fork",
                user="<fork-boilerplate>",
                offset=2,
            ),
            conversation(
                say(use("Read", file_path="mine.txt")),
                say(fork),
                say(use("Edit", file_path="its.txt", **change)),
                say("went on"),
                name="root",
            ),
        )
        root = await shop.run()
        assert root.result == "went on"
        assert ([failed for _, failed, _ in shop.results(1, "fork")], shop.results(3, "root")[0][1]) == ([False], True)
        assert ((shop.folder / "mine.txt").read_text(), (shop.folder / "its.txt").read_text()) == ("two\n", "one\n")


@pytest.mark.spec("CTX-1")
async def test_a_child_has_its_own_id_messages_and_log(shop: Shop) -> None:
    write = say(use("Write", file_path="new.txt", content="x"))
    root = await launched(shop, job(), job(), child_turns=(write, DONE), **FREE)
    first, second = await children(shop, root)
    assert len({root.id, first.id, second.id}) == 3
    assert [(info.root_id, info.depth) for info in (root, first, second)] == [(root.id, 0), (root.id, 1), (root.id, 1)]
    assert sorted(len(shop.of(info, FilesChanged)) for info in (first, second)) == [0, 1]  # it was there already
    for info in (first, second):
        assert len(shop.of(info, Started)) == 1
        sent = [body.message for body in shop.of(info, MessageAdded)]
        assert [message.role for message in sent] == ["user", "assistant", "user", "assistant"]
    assert (shop.of(root, FilesChanged), len(shop.of(root, Started))) == ([], 1)
    assert [body.name for body in shop.of(root, ToolCalled)] == ["Agent", "Agent"]
    assert "Write" not in str(shop.asked(1, "root")["messages"])
    assert "child: look" not in str(shop.asked(0, "root")["messages"])
    assert [message["role"] for message in shop.asked(0, "child")["messages"]] == ["user"]


# Its tools


@pytest.mark.spec("TL-1")
async def test_the_pool_is_made_anew_and_not_cut_from_the_parents(tmp_path: Path) -> None:
    settings = {"permissions": {"deny": ["Grep"]}}
    async with open_shop(tmp_path, settings=settings, trusted=True) as shop:
        folder = shop.folder / ".claude" / "agents"
        folder.mkdir(parents=True)
        (folder / "lead.md").write_text("---\nname: lead\ndescription: d\ntools: Agent, Read\n---\nYou lead.\n")
        await launched(shop, job(), agent_type="lead")
        assert tool_names(shop, "root") == ["Agent", "Read"]
        assert tool_names(shop, "child") == [name for name in OWN if name != "Grep"]


@pytest.mark.spec("TL-2")
async def test_what_belongs_to_the_users_conversation_is_taken_from_a_child_only(shop: Shop, tools: AddTools) -> None:
    async def nothing(label: str, context: ToolContext) -> str:
        return label

    tools(*(Probe(name, nothing) for name in ("ScheduleWakeup", "Workflow", "ExitPlanMode", "Other")))
    await launched(shop, job())
    assert set(tool_names(shop, "root")) == {"Agent", *OWN, "ScheduleWakeup", "Workflow", "ExitPlanMode", "Other"}
    assert tool_names(shop, "child") == sorted([*OWN, "Other"])
    await launched(shop, job(mode="plan"))
    assert tool_names(shop, "child") == sorted([*OWN, "Other", "ExitPlanMode"])


@pytest.mark.spec("TL-2")
async def test_the_definition_narrows_further(shop: Shop) -> None:
    folder = shop.folder / ".claude" / "agents"
    folder.mkdir(parents=True)
    (folder / "some.md").write_text(
        "---\nname: some\ndescription: d\ntools: Agent(Explore), Read, Bash, Write\ndisallowedTools: Write\n---\nx\n"
    )
    (folder / "every.md").write_text("---\nname: every\ndescription: d\ntools: '*'\n---\nx\n")
    await launched(shop, job(subagent_type="some"))
    assert tool_names(shop, "child") == ["Bash", "Read"]
    await launched(shop, job(subagent_type="every"))
    assert tool_names(shop, "child") == OWN


@pytest.mark.spec("TL-4")
@pytest.mark.parametrize("depth", [1, 2])
async def test_the_agent_tool_is_there_above_the_limit_only(tmp_path: Path, depth: int) -> None:
    async with open_shop(tmp_path, settings={"maxDepth": depth}) as shop:
        inner = conversation(DONE, name="inner", first_user="child: inner")
        turns = (say(job(prompt="child: inner")), DONE) if depth > 1 else (say(job()), DONE)
        shop.script(inner, child(*turns), conversation(say(job()), say("went on"), name="root"))
        root = await shop.run()
        assert ("Agent" in tool_names(shop, "root"), "Agent" in tool_names(shop, "child")) == (True, depth > 1)
        depths = sorted(info.depth for info in await shop.runtime.list())
        assert depths == list(range(depth + 1))
        if depth > 1:
            assert "Agent" not in tool_names(shop, "inner")
        else:
            [(_, failed, said)] = shop.results(1, "child")
            assert (failed, said.startswith("There is no tool Agent. Yours are: Bash, ")) == (True, True)
        assert root.result == "went on"


# Its model, its answer


@pytest.mark.spec("MD-5")
@pytest.mark.parametrize(
    ("main", "mode", "call", "parents", "childs"),
    [
        ("opusplan", PermissionMode.PLAN, {}, "claude-opus-5-5", "claude-opus-5-5"),
        ("opusplan", PermissionMode.DEFAULT, {}, "claude-sonnet-5-5", "claude-sonnet-5-5"),
        ("opusplan", PermissionMode.DEFAULT, {"model": "inherit"}, "claude-sonnet-5-5", "claude-sonnet-5-5"),
        ("opusplan", PermissionMode.DEFAULT, {"mode": "plan"}, "claude-sonnet-5-5", "claude-sonnet-5-5"),
        ("haiku", PermissionMode.DEFAULT, {"model": "opusplan"}, "claude-haiku-5-5", "claude-sonnet-5-5"),
        ("haiku", PermissionMode.DEFAULT, {"model": "opusplan", "mode": "plan"}, "claude-haiku-5-5", "claude-opus-5-5"),
        ("claude-opus-5-5-20260101", PermissionMode.PLAN, {}, "claude-opus-5-5-20260101", "claude-opus-5-5-20260101"),
    ],
)
async def test_inherit_is_what_the_parent_really_runs(
    tmp_path: Path, main: str, mode: PermissionMode, call: dict[str, str], parents: str, childs: str
) -> None:
    async with open_shop(tmp_path, settings={"model": main}) as shop:
        root = await launched(shop, job(**call), permission_mode=mode)
        [info] = await children(shop, root)
        assert (root.model, info.model) == (parents, childs)
        assert (shop.asked(0, "root")["model"], shop.asked(0, "child")["model"]) == (parents, childs)


@pytest.mark.spec("MD-5")
async def test_the_main_thread_plans_with_opus(tmp_path: Path) -> None:
    settings = {"model": "opusplan", "permissions": {"defaultMode": "plan"}}
    async with open_shop(tmp_path, settings=settings, trusted=True) as shop:
        shop.says(say("planned"))
        main = await shop.ended(await shop.runtime.send("main", "plan it"))
        assert (main.permission_mode, main.model) == (PermissionMode.PLAN, "claude-opus-5-5")


@pytest.mark.spec("RES-6")
@pytest.mark.parametrize("name", ["Explore", "Plan"])
async def test_a_one_shot_agent_with_a_worktree_says_where_it_is(tmp_path: Path, repo: Repo, name: str) -> None:
    async with open_shop(tmp_path, folder=repo.path) as shop:
        calls = (job(subagent_type=name, isolation="worktree"), job(subagent_type=name))
        turns = (say("child is done", gate="g"),)
        shop.script(child(*turns), conversation(say(calls[0]), say(calls[1]), say("went on"), name="root"))
        started = await shop.spawn()
        await shop.model.wait_for(1, conversation="child")
        [info] = await children(shop, started)
        assert info.worktree is not None
        (info.worktree.path / "new.txt").write_text("somebody wrote here, so it is kept\n")
        shop.model.gate("g").set()
        await shop.ended(started)
        where = f"worktreePath: {info.worktree.path}\nworktreeBranch: {info.worktree.branch}"
        assert shop.results(1, "root")[0][2] == "\n".join(["child is done", where, f"agentId: {info.id}"])
        assert shop.results(2, "root")[0][2] == "child is done"


@pytest.mark.spec("RES-6")
async def test_an_agent_of_the_user_by_such_a_name_is_no_one_shot(shop: Shop) -> None:
    folder = shop.folder / ".claude" / "agents"
    folder.mkdir(parents=True)
    (folder / "Explore.md").write_text("---\nname: Explore\ndescription: d\n---\nx\n")
    root = await launched(shop, job(subagent_type="Explore"))
    [info] = await children(shop, root)
    [(_, _, said)] = shop.results(1, "root")
    assert f"agentId: {info.id}\n" in said and "<usage>" in said


# What it shares


@pytest.mark.spec("CTX-2")
async def test_a_child_that_is_waited_for_ends_with_its_parent_and_never_the_other_way_round(shop: Shop) -> None:
    slow = say("word " * 400, chunk=5, per_delta_ms=20)
    for end_parent in (True, False):
        shop.script(child(slow), conversation(say(job()), say("went on"), name="root"))
        root = await shop.spawn()
        await shop.model.wait_for(1, conversation="child")
        [info] = await children(shop, root)
        await shop.stopped(root if end_parent else info)
        with anyio.fail_after(10):
            ends = [(await shop.ended(each)).status for each in (root, info)]
        assert ends == [TaskStatus.STOPPED if end_parent else TaskStatus.COMPLETED, TaskStatus.STOPPED]


@pytest.mark.spec("CTX-2", "CTX-1")
@pytest.mark.parametrize("stops", ["parent", "child"])
async def test_a_child_in_the_background_shares_no_end_with_its_parent(shop: Shop, stops: str) -> None:
    """Its answer comes while the parent is at work, so neither ends before the test says so."""
    slow = say("word " * 400, chunk=5, per_delta_ms=20)
    turn = say("child is done", gate="g") if stops == "parent" else slow
    then = slow if stops == "parent" else say("went on")
    shop.script(child(turn), conversation(say(job(run_in_background=True)), then, name="root", repeat_last=True))
    root = await shop.spawn()
    await shop.model.wait_for(2, conversation="root")
    await shop.model.wait_for(1, conversation="child")
    [info] = await children(shop, root)
    assert (info.background, info.status) == (True, TaskStatus.RUNNING)
    if stops == "parent":
        assert (await shop.stopped(root)).status is TaskStatus.STOPPED
        assert (await shop.runtime.info(info.id)).status is TaskStatus.RUNNING
        shop.model.gate("g").set()
        assert (await shop.ended(info)).result == "child is done"
    else:
        assert (await shop.ended(root)).status is TaskStatus.COMPLETED
        assert (await shop.stopped(info)).status is TaskStatus.STOPPED
        assert {body.info.status for body in shop.of(root, Ended)} == {TaskStatus.COMPLETED}


@pytest.mark.spec("TL-2")
async def test_in_the_background_a_child_has_what_the_list_names_and_tools_of_servers(
    shop: Shop, tools: AddTools
) -> None:
    async def nothing(label: str, context: ToolContext) -> str:
        return label

    tools(*(Probe(name, nothing) for name in ("Other", "mcp__server__look", "WebFetch", "Workflow")))
    shop.script(child(), conversation(say(job(run_in_background=True)), say("went on"), name="root", repeat_last=True))
    root = await shop.run()
    await shop.model.wait_for(1, conversation="child")
    assert tool_names(shop, "child") == sorted([*OWN, "WebFetch", "mcp__server__look"])
    [info] = await children(shop, root)
    await shop.ended(info)


@pytest.mark.spec("CTX-5")
async def test_no_request_of_a_child_has_thinking(shop: Shop) -> None:
    await launched(shop, job(), job(subagent_type="Plan"))
    assert ["thinking" in entry.json for entry in shop.model.requests("child")] == [False, False]

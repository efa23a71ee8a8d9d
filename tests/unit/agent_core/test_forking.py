"""Forks: the same bytes as their parent up to the directive, and what that costs by the rules of the prompt cache."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent_core.errors import AgentDenied, InvalidParams, NotAllowed
from agent_core.events import AgentInfo
from agent_core.forking import PLACEHOLDER, is_fork
from agent_core.permissions.types import PermissionMode
from agent_core.task import TaskStatus
from lsp_server.demo.script import Conversation, conversation, say, use
from tests.git_helpers import Repo, clean_git, repo
from tests.unit.agent_core.test_background import child_of, opened, root, runs
from tests.unit.agent_core.workshop import Shop, open_shop

__all__ = ["clean_git", "repo"]  # fixtures

pytestmark = pytest.mark.anyio
CONTEXT = "All of this was said before. " * 9_000
"""About 64,000 tokens."""


def fork(task: str, **more: Any) -> Any:
    return use("Agent", description=f"fork {task}", prompt=f"directive {task}", fork=True, **more)


def forked(task: str, *turns: Any, offset: int = 1) -> Conversation:
    return conversation(*turns, user=f"directive {task}", name=task, offset=offset)


def forks(count: int, *turns: Any) -> list[Conversation]:
    """Launched in the second turn."""
    return [forked(f"no {n}.", *(turns or (say(f"answer {n}"),)), offset=2) for n in range(count)]


def unmarked(value: Any) -> Any:
    """Without the breakpoints, which are no part of what is cached."""
    if isinstance(value, dict):
        return {name: unmarked(each) for name, each in value.items() if name != "cache_control"}
    return [unmarked(each) for each in value] if isinstance(value, list) else value


async def children_of(shop: Shop, parent: AgentInfo) -> list[AgentInfo]:
    found = [info for info in await shop.runtime.list() if info.parent_id == parent.id]
    return sorted(found, key=lambda info: info.description)


@pytest.mark.spec("FK-1", "FK-2", "FK-3", "FK-5", "FK-8", "IN-6", "SEL-2", "SEL-4")
async def test_siblings_differ_in_their_directive_only(shop: Shop) -> None:
    (shop.folder / "a.txt").write_text("hello\n")
    shop.script(
        *forks(3),
        root(
            say("First I read.", use("Read", file_path="a.txt")),
            say("I send three.", *(fork(f"no {number}.") for number in range(3)), use("Glob", pattern="*.txt")),
            say("They work."),
            *(say("one more"),) * 3,
        ),
    )
    info = await shop.spawn()
    await runs(shop, info, 1)
    children = await children_of(shop, info)
    for each in children:
        await shop.ended(each)
    parent = shop.asked(2, "root")
    bodies = [shop.asked(0, f"no {number}.") for number in range(3)]
    parent_before = shop.asked(1, "root")
    for number, body in enumerate(bodies):
        assert unmarked(body["tools"]) == unmarked(parent["tools"])
        assert unmarked(body["system"]) == unmarked(parent["system"])
        assert (body["model"], body["max_tokens"]) == (parent["model"], parent["max_tokens"])
        messages, seen = unmarked(body["messages"]), unmarked(parent_before["messages"])
        assert messages[: len(seen)] == seen
        assert messages[len(seen)] == unmarked(parent["messages"])[len(seen)], "with all calls of its last turn"
        *results, directive = messages[-1]["content"]
        assert [each["content"] for each in results] == [[{"type": "text", "text": PLACEHOLDER}]] * 4
        assert directive["text"].startswith("<fork-boilerplate>\n")
        assert directive["text"].endswith(f"Your task:\ndirective no {number}.\n</fork-boilerplate>")
        assert json.dumps({**body, "messages": body["messages"][:-1]}) == json.dumps(
            {**bodies[0], "messages": bodies[0]["messages"][:-1]}
        )
        assert body["messages"][-1]["content"][:-1] == bodies[0]["messages"][-1]["content"][:-1]
        marks = json.dumps(body).count('"cache_control"')
        assert marks == 4
    assert [(each.fork, each.agent_type, each.depth, each.background) for each in children] == [
        (True, "fork", 0, True)
    ] * 3
    assert {each.permission_mode for each in children} == {PermissionMode.BUBBLE}
    await shop.ended(info)


@pytest.mark.spec("FK-3", "FK-4", "FK-9")
@pytest.mark.parametrize("count", [5, 10, 20])
async def test_forks_of_a_large_context_read_nearly_all_of_it(shop: Shop, count: int) -> None:
    (shop.folder / "a.txt").write_text("hello\n")
    shop.script(
        *forks(count, say("answer", use("Read", file_path=str(shop.folder / "a.txt"))), say("done")),
        root(
            say(use("Read", file_path="a.txt")),
            say(*(fork(f"no {number}.") for number in range(count))),
            say("They work."),
            *(say("more"),) * (count + 1),
        ),
        unique_ids=True,
    )
    info = await shop.spawn(f"go {CONTEXT}")
    await runs(shop, info, 1)
    children = await children_of(shop, info)
    assert len(children) == count
    for each in children:
        await shop.ended(each)
    shares = [share(shop, f"no {number}.", 0) for number in range(count)]
    leader, *others = sorted(shares)
    assert leader >= 0.97, "it alone pays for the turn that launched them"
    assert min(others) >= 0.99, shares
    assert min(share(shop, f"no {number}.", 1) for number in range(count)) >= 0.99
    await shop.ended(info)
    parent = [usage.values() for usage in (tokens(shop, "root", n) for n in range(len(shop.model.requests("root"))))]
    for before, (read, _, _) in pairwise(parent):
        assert read >= 0.99 * sum(before), "its later turns read what the one before held"


def share(shop: Shop, name: str, number: int) -> float:
    """Of the tokens of a request what was read from the cache."""
    counts = tokens(shop, name, number)
    return counts["cache_read_input_tokens"] / sum(counts.values())


def tokens(shop: Shop, name: str, number: int) -> dict[str, int]:
    """What a request read from the cache, wrote to it, and neither."""
    usage = shop.model.requests(name)[number].usage
    return {key: usage[key] for key in ("cache_read_input_tokens", "cache_creation_input_tokens", "input_tokens")}


@pytest.mark.spec("FK-9")
@pytest.mark.parametrize("model_ms", [200, 1500])
async def test_of_siblings_launched_together_one_pays(tmp_path: Path, model_ms: int) -> None:
    """Named agents of one type: what they share is their tools and system prompt."""
    agents = tmp_path / "home" / ".claude" / "agents"
    agents.mkdir(parents=True)
    (agents / "wide.md").write_text(f"---\nname: wide\ndescription: d\n---\n{'Know this. ' * 8_000}")
    async with opened(tmp_path, maxConcurrentAgents=64) as shop:
        jobs = [use("Agent", description=f"job {n}", prompt=f"child {n}.", subagent_type="wide") for n in range(50)]
        shop.script(
            *(
                conversation(say("ok", first_byte_ms=model_ms), first_user=f"child {n}.", name=f"{n}.")
                for n in range(50)
            ),
            root(say(*jobs), say("done")),
        )
        await shop.run()
        shares = sorted(share(shop, f"{n}.", 0) for n in range(50))
        assert shares[0] == 0 and shares[1] >= 0.95, shares[:3]


@pytest.mark.spec("FK-9")
async def test_the_hold_ends_when_the_first_one_never_answers(tmp_path: Path) -> None:
    async with opened(tmp_path, staggerMs=200) as shop:
        jobs = [use("Agent", description=f"job {n}", prompt=f"child {n}.") for n in range(3)]
        shop.script(
            conversation(say("never", first_byte_ms=60_000), first_user="child 0.", name="0."),
            *(conversation(say("ok"), first_user=f"child {n}.", name=f"{n}.") for n in (1, 2)),
            root(say(*jobs), say("done")),
        )
        info = await shop.spawn()
        others = [await child_of(shop, info, f"job {n}") for n in (1, 2)]
        assert [(await shop.ended(each)).result for each in others] == ["ok", "ok"]
        await shop.stopped(info, 5)


@pytest.mark.spec("FK-6", "TL-4")
async def test_a_fork_starts_no_fork_but_ordinary_agents(shop: Shop) -> None:
    shop.script(
        forked(
            "deep",
            say(fork("deeper"), use("Agent", description="job", prompt="child x"), use("Glob", pattern="*")),
            say("done"),
        ),
        conversation(say("ordinary"), first_user="child x", name="x"),
        root(say(fork("deep", run_in_background=False)), say("over")),
    )
    info = await shop.run()
    assert info.result == "over"
    told = shop.results(1, "deep")
    assert told[0][1] and "a fork starts no further fork" in told[0][2]
    assert not told[1][1] and told[1][2].startswith("ordinary")
    (one,) = await children_of(shop, info)
    (inner,) = await children_of(shop, one)
    assert (one.depth, inner.depth) == (0, 1)
    live = shop.runtime.engine.agents[one.id]
    live.prompt = evolve(live.prompt, messages=())
    assert is_fork(live), "whatever becomes of its messages"


@pytest.mark.spec("FK-5")
@pytest.mark.parametrize(
    ("parents", "forks_mode"),
    [
        (PermissionMode.ACCEPT_EDITS, PermissionMode.BUBBLE),
        (PermissionMode.DEFAULT, PermissionMode.BUBBLE),
        (PermissionMode.PLAN, PermissionMode.PLAN),
        (PermissionMode.DONT_ASK, PermissionMode.DONT_ASK),
    ],
)
async def test_a_fork_asks_by_way_of_its_parent_unless_that_may_not(
    shop: Shop, parents: PermissionMode, forks_mode: PermissionMode
) -> None:
    shop.script(forked("x", say("done")), root(say(fork("x", run_in_background=False)), say("over")))
    info = await shop.run(permission_mode=parents)
    (made,) = await children_of(shop, info)
    assert (info.permission_mode, made.permission_mode, made.model) == (parents, forks_mode, info.model)


@pytest.mark.spec("FK-6")
async def test_the_mark_in_the_messages_is_a_guard_of_its_own(shop: Shop) -> None:
    shop.script(root(say(fork("x")), say("no fork")))
    info = await shop.run("go <fork-boilerplate> was pasted here")
    assert "a fork starts no further fork" in shop.results(1, "root")[0][2]
    assert await children_of(shop, info) == []


@pytest.mark.spec("IN-13", "IN-12", "SEL-4")
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"model": "opus"}, "model: a fork runs its parent's model"),
        ({"cwd": "."}, "cwd: a fork works where its parent works"),
        ({"subagent_type": "Explore"}, "subagent_type: a fork is no other agent"),
    ],
)
async def test_what_a_fork_cannot_have_is_said(shop: Shop, more: dict[str, Any], words: str) -> None:
    shop.script(root(say(fork("x", **more)), say("understood")))
    info = await shop.run()
    ((_, failed, text),) = shop.results(1, "root")
    assert failed and words in text
    assert info.result == "understood" and await children_of(shop, info) == []


@pytest.mark.spec("SEL-4", "IN-12")
@pytest.mark.parametrize(
    ("settings", "env", "words"),
    [
        ({"forking": "off"}, {}, "forking is switched off"),
        ({}, {"CLAUDE_CODE_FORK_SUBAGENT": "0"}, "forking is switched off"),
        ({"coordinator": True}, {}, "coordinator mode has no forks"),
    ],
)
async def test_an_explicit_fork_without_forking_is_an_error_that_says_why(
    tmp_path: Path, settings: dict[str, Any], env: dict[str, str], words: str
) -> None:
    async with opened(tmp_path, env, **settings) as shop:
        task = use("Agent", description="f", prompt="directive x", subagent_type="fork")
        shop.script(root(say(task), say("understood")))
        await shop.run()
        ((_, failed, text),) = shop.results(1, "root")
        assert failed and words in text
        (tool,) = [each for each in shop.asked(0, "root")["tools"] if each["name"] == "Agent"]
        assert "fork" not in tool["input_schema"]["properties"]


@pytest.mark.spec("SEL-2", "SEL-4", "FK-8")
@pytest.mark.parametrize(
    ("settings", "interactive", "is_fork"),
    [
        ({"forking": "on"}, True, True),
        ({"forking": "on"}, False, False),
        ({"forking": "on", "coordinator": True}, True, False),
        ({"forking": "explicit"}, True, False),
        ({"forking": "off"}, True, False),
    ],
)
async def test_what_an_omitted_type_means(
    tmp_path: Path, settings: dict[str, Any], interactive: bool, is_fork: bool
) -> None:
    async with open_shop(tmp_path, settings=settings) as shop:
        shop.runtime.engine.interactive = interactive
        shop.script(
            conversation(say("named"), first_user="directive x", name="named"),
            forked("x", say("forked"), offset=0),
            root(say(use("Agent", description="f", prompt="directive x")), say("ok"), say("ok")),
        )
        info = await shop.run()
        made = await child_of(shop, info)
        assert made.fork is is_fork
        assert made.background is (settings["forking"] == "on" and interactive)
        await shop.ended(made)
        await shop.ended(info)


@pytest.mark.spec("SEL-2")
@pytest.mark.parametrize("named", [{"subagent_type": "general-purpose"}, {"fork": False}], ids=str)
async def test_with_forking_on_what_is_named_is_no_fork(tmp_path: Path, named: dict[str, Any]) -> None:
    async with opened(tmp_path, forking="on") as shop:
        shop.script(
            conversation(say("named"), first_user="directive x", name="named"),
            root(say(use("Agent", description="f", prompt="directive x", **named)), say("ok"), say("ok")),
        )
        info = await shop.spawn()
        made = await shop.ended(await child_of(shop, info))
        assert (made.fork, made.agent_type) == (False, "general-purpose")
        await shop.ended(info)


@pytest.mark.spec("SEL-5")
async def test_a_rule_denies_forks_by_name(tmp_path: Path) -> None:
    async with opened(tmp_path, permissions={"deny": ["Agent(fork)"]}) as shop:
        shop.script(root(say(fork("x")), say("understood")))
        info = await shop.run()
        ((_, failed, text),) = shop.results(1, "root")
        assert failed and "Agent(fork)" in text
        assert await children_of(shop, info) == []


@pytest.mark.spec("FK-7", "CTX-4")
async def test_a_fork_in_a_worktree_is_told_where_it_works_at_the_tail(
    tmp_path: Path, repo: Repo, clean_git: None
) -> None:
    async with open_shop(tmp_path, folder=repo.path) as shop:
        shop.script(
            forked("x", say("done")),
            root(say(fork("x", isolation="worktree", run_in_background=False)), say("over")),
        )
        info = await shop.run()
        (made,) = await children_of(shop, info)
        assert made.status is TaskStatus.COMPLETED
        body = shop.asked(0, "x")
        assert unmarked(body["system"]) == unmarked(shop.asked(0, "root")["system"])
        assert str(repo.path) in json.dumps(body["messages"][0]), "the parent's own words stay as they were"
        notice = body["messages"][-1]["content"][-1]["text"]
        assert f"Paths in the conversation above that begin with {repo.path} are now below" in notice


# From the editor


@pytest.mark.spec("FK-1", "FK-8")
async def test_a_person_forks_an_idle_conversation(shop: Shop) -> None:
    shop.script(
        forked("x", say("forked")),
        root(say("I know all about it."), say("I heard.")),
    )
    info = await shop.run(f"go {CONTEXT}")
    made = await shop.spawn("directive x", description="f", fork=True, parent_id=info.id)
    made = await shop.ended(made)
    assert (made.result, made.fork, made.background, made.parent_id) == ("forked", True, True, info.id)
    assert share(shop, "x", 0) >= 0.99
    assert (await runs(shop, info, 2)).result == "I heard."
    shop.check(info, runs=2)


@pytest.mark.spec("TR-2", "FK-4")
async def test_a_resumed_agent_reads_what_it_had(shop: Shop) -> None:
    (shop.folder / "a.txt").write_text("hello\n")
    shop.script(root(say(use("Read", file_path="a.txt")), say("done"), say("more")))
    info = await shop.run(f"go {CONTEXT}")
    await shop.send(info, "and then?")
    assert share(shop, "root", 2) >= 0.99


async def test_what_a_person_cannot_fork(shop: Shop) -> None:
    shop.script(root(say("slow", gate="never")))
    info = await shop.spawn()
    with pytest.raises(InvalidParams, match="parentId: names an agent without a turn"):
        await shop.spawn("directive x", fork=True, parent_id=info.id)
    with pytest.raises(InvalidParams, match="model: a fork takes it from its parent"):
        await shop.spawn("directive x", fork=True, parent_id=info.id, model="opus")
    await shop.stopped(info)


async def test_a_person_cannot_fork_where_forking_is_off_or_denied(tmp_path: Path) -> None:
    async with open_shop(tmp_path, settings={"forking": "off"}) as shop:
        shop.script(root(say("ok")))
        info = await shop.run()
        with pytest.raises(NotAllowed, match="switched off"):
            await shop.spawn("directive x", fork=True, parent_id=info.id)
    async with open_shop(tmp_path, settings={"permissions": {"deny": ["Agent(fork)"]}}) as shop:
        shop.script(root(say("ok")))
        info = await shop.run()
        with pytest.raises(AgentDenied):
            await shop.spawn("directive x", fork=True, parent_id=info.id)

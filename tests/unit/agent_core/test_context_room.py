"""Agents whose work does not fit into the model's context: old results leave the prompt, all else stays (J3, J4)."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent_core.events import AgentInfo, Compacted, MessageAdded
from agent_core.messages import ToolResultBlock
from agent_core.model.prompt import CLEARED
from agent_core.task import TaskStatus
from lsp_server.demo.script import conversation, say, use
from tests.unit.agent_core.test_background import child, child_of, job, opened, root
from tests.unit.agent_core.test_forking import fork, forked, unmarked
from tests.unit.agent_core.workshop import Shop, open_shop

pytestmark = pytest.mark.anyio
LOOK = use("Read", file_path="a.txt")
TENTH = {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "10"}
"""Of 200,000 tokens."""
MOVED = "old results were removed to make room"


def look(**options: Any) -> Any:
    return say("I look.", LOOK, **options)


def write_file(shop: Shop, tokens: int = 2_500) -> None:
    (shop.folder / "a.txt").write_text(("words " * 32 + "\n") * (tokens // 50))


def removed(body: Any) -> list[bool]:
    """For each result in a request, whether it was removed."""
    blocks = [block for message in body["messages"] for block in message["content"] if block["type"] == "tool_result"]
    return [block["content"][0]["text"] == CLEARED["text"] for block in blocks]


def size(body: Any) -> int:
    return len(json.dumps(body)) // 4


def whole_results(shop: Shop, info: AgentInfo) -> list[int]:
    messages = [body.message for body in shop.of(info, MessageAdded)]
    blocks = [block for message in messages for block in message.content if isinstance(block, ToolResultBlock)]
    return [len(block.content[0].text) for block in blocks if hasattr(block.content[0], "text")]


@pytest.mark.spec("TR-1", "CTX-9")
async def test_j4_the_oldest_results_leave_before_the_context_is_full(tmp_path: Path) -> None:
    async with open_shop(tmp_path, env=TENTH) as shop:
        write_file(shop)
        shop.says(*(look() for _ in range(4)), *(look(prefix_changed=MOVED) for _ in range(10)), say("done"))
        info = await shop.run()
        assert (info.status, info.result) == (TaskStatus.COMPLETED, "done")
        sizes = [size(shop.asked(number)) for number in range(15)]
        made = shop.of(info, Compacted)
        assert max(sizes) < 22_000 and len(made) >= 2, sizes
        assert all(each.before_tokens >= 20_000 > each.after_tokens and each.trigger == "auto" for each in made)
        flags = removed(shop.asked(14))
        assert flags == sorted(flags, reverse=True) and flags[0] and not any(flags[-3:])
        assert min(whole_results(shop, info)) > 9_000, "the transcript keeps all of it"
        seen = [removed(shop.asked(number)) for number in range(15)]
        changes = [later[: len(before)] != before for before, later in pairwise(seen)]
        assert sum(changes) == len(made), "between two removals the prefix only grows"
        shop.check(info)


async def test_j4_a_request_that_is_refused_as_too_long_is_made_shorter_and_sent_again(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as shop:
        write_file(shop)
        looks = [*(look() for _ in range(4)), *(look(prefix_changed=MOVED) for _ in range(6))]
        shop.script(conversation(*looks, say("done", prefix_changed=MOVED)), context_tokens=20_000)
        info = await shop.run()
        assert (info.status, info.result) == (TaskStatus.COMPLETED, "done"), info.error
        assert shop.of(info, Compacted)


async def test_j3_what_cannot_be_made_shorter_ends_with_what_was_found(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as shop:
        write_file(shop, tokens=20_000)
        shop.script(
            child("x", say("I found the half.", LOOK)), root(say(job("x")), say("I go on.")), context_tokens=12_000
        )
        info = await shop.run()
        ((_, failed, text),) = shop.results(1, "root")
        assert failed and "prompt is too long" in text and "What it had said last:\nI found the half." in text
        made = await child_of(shop, info)
        assert shop.of(made, Compacted) == [], "the newest result stays"


@pytest.mark.spec("TR-5")
async def test_an_agent_that_is_resumed_sends_the_same_shortened_bytes(tmp_path: Path) -> None:
    async with open_shop(tmp_path, env=TENTH) as shop:
        write_file(shop)
        shop.says(*(look() for _ in range(4)), *(look(prefix_changed=MOVED) for _ in range(5)), say("done"))
        info = await shop.run()
        before = shop.asked(9)
        assert any(removed(before))
    async with open_shop(tmp_path, env=TENTH) as shop:
        shop.says(*(say("") for _ in range(10)), say("second"))
        assert (await shop.send(info, "and then?")).result == "second"
        body = shop.asked(0)
        assert unmarked(body["messages"])[: len(before["messages"])] == unmarked(before["messages"])


@pytest.mark.spec("FK-1", "FK-3", "TR-5")
async def test_a_fork_of_a_shortened_conversation_shares_its_bytes_also_when_it_is_resumed(tmp_path: Path) -> None:
    async with opened(tmp_path, env=TENTH) as shop:
        write_file(shop)
        looks = [*(look() for _ in range(4)), *(look(prefix_changed=MOVED) for _ in range(5))]
        shop.script(forked("one", say("forked"), offset=10), root(*looks, say(fork("one")), say("told"), say("more")))
        info = await shop.run()
        made = await child_of(shop, info)
        await shop.ended(made)
        parent, first = shop.asked(9, "root"), shop.asked(0, "one")
        assert any(removed(parent))
        count = len(parent["messages"])
        assert unmarked(first["messages"])[:count] == unmarked(parent["messages"])
    async with opened(tmp_path, env=TENTH) as shop:
        shop.script(forked("one", say(""), say("again"), offset=10))
        assert (await shop.send(made, "and?")).result == "again"
        assert unmarked(shop.asked(0, "one")["messages"])[:count] == unmarked(parent["messages"])


async def test_answers_of_other_agents_leave_last(tmp_path: Path) -> None:
    async with opened(tmp_path, env={"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "20"}) as shop:
        write_file(shop)
        looks = [*(look() for _ in range(10)), *(look(prefix_changed=MOVED) for _ in range(8))]
        shop.script(child("x", say("An answer. " * 100)), root(say(job("x")), *looks, say("done")))
        await shop.run()
        flags = removed(shop.asked(18, "root"))
        assert not flags[0] and any(flags[1:])

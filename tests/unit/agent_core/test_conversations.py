"""Conversations: listed, left, come back to, with what was allowed in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_core.errors import InvalidParams
from agent_core.ids import MAIN
from agent_core.permissions.types import PermissionAnswer
from lsp_server.demo.script import conversation, say, use
from tests.unit.agent_core.workshop import Person, Shop, open_shop

pytestmark = pytest.mark.anyio


async def main_says(shop: Shop, message: str) -> str | None:
    info = await shop.runtime.send(MAIN, message)
    return (await shop.ended(info)).result


@pytest.mark.spec("TR-2", "TR-4")
async def test_one_is_left_and_come_back_to_in_another_process(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as shop:
        shop.script(
            conversation(say("first answer"), first_user="first of all", name="one"),
            conversation(say("second answer"), first_user="something else", name="two"),
        )
        assert await main_says(shop, "first of all, look at the tests") == "first answer"
        (one,) = await shop.runtime.conversations()
        assert (one.title, one.agents) == ("first of all, look at the tests", 0)
        fresh = await shop.runtime.conversation(None)
        assert fresh.id != one.id
        assert await main_says(shop, "something else") == "second answer"
        assert [each.title for each in await shop.runtime.conversations()] == [
            "something else",
            "first of all, look at the tests",
        ]
    async with open_shop(tmp_path) as shop:
        shop.script(conversation(say(""), say("third answer"), first_user="first of all", name="one"))
        assert (await shop.runtime.conversation(one.id)).title == one.title
        assert await main_says(shop, "and then?") == "third answer"
        assert shop.told(0, "one")[-1] == "and then?"
        with pytest.raises(InvalidParams, match="agent/conversations"):
            await shop.runtime.conversation("nope")


@pytest.mark.spec("PM-5")
async def test_what_was_allowed_for_the_session_holds_in_its_conversation_only_and_after_a_restart(
    tmp_path: Path,
) -> None:
    touch = use("Bash", command="touch made")
    async with open_shop(tmp_path) as shop:
        person = Person([PermissionAnswer("allowSession")])
        shop.runtime.attach(person)
        shop.script(
            conversation(say(touch), say("done"), say(touch), say("again"), first_user="one", name="one"),
            conversation(say(touch), say("refused"), first_user="two", name="two"),
        )
        await main_says(shop, "one")
        assert await main_says(shop, "once more") == "again" and len(person.requests) == 1
        (one,) = await shop.runtime.conversations()
        await shop.runtime.conversation(None)
        person.answers.append(PermissionAnswer("rejectOnce"))
        assert await main_says(shop, "two") == "refused" and len(person.requests) == 2
    async with open_shop(tmp_path) as shop:
        person = Person()
        shop.runtime.attach(person)
        shop.script(conversation(*(say(""),) * 4, say(touch), say("still"), first_user="one", name="one"))
        await shop.runtime.conversation(one.id)
        assert await main_says(shop, "and now?") == "still" and person.requests == []

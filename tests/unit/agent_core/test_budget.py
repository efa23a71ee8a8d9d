"""What agents cost, by the prices that are set, and the end of a budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_core.messages import Usage
from agent_core.model.prices import Price, cost
from agent_core.settings import BadSetting, dollars, prices
from agent_core.task import TaskStatus
from lsp_server import convert
from lsp_server.demo.script import say, use
from tests.unit.agent_core.test_background import child, child_of, job, opened, root

SONNET = {"sonnet": {"input": 3, "output": 15}}
USED = Usage(1_000, 100, 10_000, 2_000)


def test_cost_is_by_kind_of_token_and_by_the_longest_name() -> None:
    table = prices(
        {"prices": {**SONNET, "sonnet-5-5": {"input": 1, "output": 2, "cacheRead": 0.5, "cacheWrite": 4}}}, "prices"
    )
    assert table["sonnet"] == Price(3, 15, 0.3, 3.75)
    assert cost("claude-sonnet-4-5", USED, table) == pytest.approx((3_000 + 1_500 + 3_000 + 7_500) / 1e6)
    assert cost("claude-sonnet-5-5", USED, table) == pytest.approx((1_000 + 200 + 5_000 + 8_000) / 1e6)
    assert cost("claude-opus-5-5", USED, table) == 0.0


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], None),
        ("x", "prices must be an object"),
        ({"sonnet": 3}, "prices.sonnet must be an object"),
        ({"sonnet": {"input": 3}}, "prices.sonnet must name input and output"),
        ({"sonnet": {"input": "3", "output": 1}}, "input must be a number"),
        ({"sonnet": {"input": -1, "output": 1}}, "above 0"),
    ],
)
def test_bad_prices_are_named(value: Any, words: str | None) -> None:
    if words is None:
        assert prices({"prices": value}, "prices") == {}
    else:
        with pytest.raises(BadSetting, match=words):
            prices({"prices": value}, "prices")


def test_a_budget_is_a_number_above_zero() -> None:
    assert dollars({"budgetUsd": 0.5}, "budgetUsd") == 0.5 and dollars({}, "budgetUsd") is None
    with pytest.raises(BadSetting, match="budgetUsd"):
        dollars({"budgetUsd": True}, "budgetUsd")


@pytest.mark.anyio
async def test_usage_says_what_an_agent_cost_where_a_price_is_known(tmp_path: Path) -> None:
    for known in (True, False):
        async with opened(tmp_path / str(known), prices=SONNET if known else {}) as shop:
            shop.script(child("x", say("found")), root(say(job("x")), say("done")))
            info = await shop.run()
            shown = convert.agent(info).usage
            expected = cost(info.model, info.usage, prices({"prices": SONNET}, "prices"))
            assert shown.cost_usd == (pytest.approx(expected, abs=1e-6) if known else None)


@pytest.mark.anyio
async def test_over_its_budget_a_tree_launches_nothing_and_ends_with_the_reason(tmp_path: Path) -> None:
    async with opened(tmp_path, prices=SONNET, budgetUsd=0.000001) as shop:
        (shop.folder / "a.txt").write_text("hello\n")
        shop.script(root(say(job("x"), use("Read", file_path="a.txt")), say("never")))
        info = await shop.run()
        assert info.status is TaskStatus.FAILED
        assert "the budget of 1e-06 USD is used up (setting budgetUsd)" in (info.error or "")
        assert len(shop.model.requests("root")) == 1
        assert [each for each in await shop.runtime.list() if each.parent_id == info.id] == []
        shop.script(root(say("another tree")))
        again = await shop.run()
        assert again.result == "another tree", "its own budget is not touched"


@pytest.mark.anyio
async def test_what_children_spend_counts(tmp_path: Path) -> None:
    async with opened(
        tmp_path, prices={**SONNET, "haiku": {"input": 100_000, "output": 100_000}}, budgetUsd=50
    ) as shop:
        shop.script(child("x", say("found")), root(say(job("x", model="haiku")), say("never")))
        info = await shop.run()
        assert info.status is TaskStatus.FAILED and "budgetUsd" in (info.error or "")
        made = await child_of(shop, info)
        assert made.status is TaskStatus.COMPLETED and made.usage.cost_usd > 50

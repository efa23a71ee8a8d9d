"""How much is written for one run: each thing once (F1)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_core.permissions.types import PermissionMode
from agent_core.tool import ToolContext
from lsp_server.demo.script import conversation, say, use
from tests.unit.agent_core.conftest import AddTools
from tests.unit.agent_core.workshop import Probe, Shop, open_shop

pytestmark = pytest.mark.anyio

PROGRESS, REPORTS = "a line of progress, which people see\n", 10


async def sizes(shop: Shop, calls: int) -> tuple[list[int], list[int], list[int]]:
    """Bytes of the parent's files and of its child's, transcript first, and of the records of the child. The child
    makes so many calls in as many turns."""
    job = use("Agent", description="work", prompt="child: work")
    shop.script(
        conversation(
            *(say(use("Work", label=f"{number:04}")) for number in range(calls)),
            say("done"),
            name="child",
            first_user="child: work",
        ),
        conversation(say(job), say("all done"), name="root"),
    )
    root = await shop.run(permission_mode=PermissionMode.BYPASS)
    [child] = [info for info in await shop.runtime.list() if info.parent_id == root.id]
    assert (root.result, child.usage.tool_uses) == ("all done", calls)
    files = [_files(info.output_file) for info in (root, child)]
    lines = files[1][0].read_bytes().splitlines(keepends=True)
    assert len({json.loads(line)["uuid"] for line in lines}) == len(lines)
    return [path.stat().st_size for path in files[0]], [path.stat().st_size for path in files[1]], list(map(len, lines))


def _files(output: Path) -> tuple[Path, Path]:
    return output.with_suffix(".jsonl"), output


@pytest.mark.spec("TR-1")
async def test_f1_two_hundred_calls_with_progress_each_cost_four_times_what_fifty_do(
    tmp_path: Path, tools: AddTools
) -> None:
    async def work(label: str, context: ToolContext) -> str:
        for _ in range(REPORTS):
            context.report(PROGRESS)
        return "result " * 20

    tools(Probe("Work", work))
    async with open_shop(tmp_path) as shop:
        parent_of_few, few, few_records = await sizes(shop, 50)
        parent_of_many, many, many_records = await sizes(shop, 200)
    for one, other in zip(few, many, strict=True):
        assert 3.5 < other / one < 4.1
    for one, other in zip(parent_of_few, parent_of_many, strict=True):
        assert abs(other - one) < 100
    assert len(many_records) / len(few_records) < 4.1
    assert max(many_records) <= max(few_records) + 20
    assert many[0] < 200 * (5 * 600 + len("result ") * 20)

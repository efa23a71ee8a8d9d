"""The task list of a conversation: its four tools, who has them, and that it outlives the process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core.errors import ToolError
from agent_core.events import AgentInfo
from agent_core.permissions.types import PermissionMode
from agent_core.task_items import TaskItem
from agent_core.task_list import TaskFile
from lsp_server.demo.script import conversation, say, use
from tests.unit.agent_core.test_background import child, job, root
from tests.unit.agent_core.workshop import Shop

pytestmark = pytest.mark.anyio
NAMES = {"TaskCreate", "TaskGet", "TaskList", "TaskUpdate"}


async def said(shop: Shop, *calls: Any, **fields: Any) -> list[tuple[bool, str]]:
    """What each call, one a turn, is answered."""
    shop.script(root(*(say(each) for each in calls), say("done")))
    await shop.run(**fields)
    return [shop.results(number + 1, "root")[0][1:] for number in range(len(calls))]


@pytest.mark.spec("MSG-4")
@pytest.mark.parametrize("mode", [PermissionMode.DEFAULT, PermissionMode.PLAN, PermissionMode.DONT_ASK])
async def test_a_list_is_made_changed_and_read_without_any_ask(shop: Shop, mode: PermissionMode) -> None:
    answers = await said(
        shop,
        use("TaskList"),
        use("TaskCreate", subject="find it", description="look in src"),
        use("TaskCreate", subject="mend it", blocked_by=["1"]),
        use("TaskUpdate", task_id="1", status="in_progress", owner="helper"),
        use("TaskList"),
        use("TaskUpdate", task_id="1", status="completed", owner=""),
        use("TaskGet", task_id="1"),
        use("TaskList"),
        permission_mode=mode,
    )
    assert answers == [
        (False, "There are no tasks."),
        (False, "Created 1 [pending] find it"),
        (False, "Created 2 [pending] mend it (blocked by 1)"),
        (False, "Now 1 [in_progress] find it (owner: helper)"),
        (False, "1 [in_progress] find it (owner: helper)\n2 [pending] mend it (blocked by 1)"),
        (False, "Now 1 [completed] find it"),
        (False, "1 [completed] find it\nlook in src"),
        (False, "1 [completed] find it\n2 [pending] mend it"),
    ]


@pytest.mark.spec("MSG-4", "IN-13")
async def test_what_cannot_be_is_said_and_changes_nothing(shop: Shop) -> None:
    answers = await said(
        shop,
        use("TaskGet", task_id="7"),
        use("TaskCreate", subject="one"),
        use("TaskCreate", subject="two", blocked_by=["1", "9"]),
        use("TaskCreate", subject="two", blocked_by=["1"]),
        use("TaskUpdate", task_id="1", blocked_by=["2"]),
        use("TaskUpdate", task_id="1", blocked_by=["1"]),
        use("TaskList"),
    )
    loop = "Task 1 would wait for itself: take it, or what waits for it, out of blocked_by."
    assert answers == [
        (True, "There is no task '7'. There are: none."),
        (False, "Created 1 [pending] one"),
        (True, "There is no task '9'. There are: 1, 2."),
        (False, "Created 2 [pending] two (blocked by 1)"),
        (True, loop),
        (True, loop),
        (False, "1 [pending] one\n2 [pending] two (blocked by 1)"),
    ]


@pytest.mark.spec("MSG-4", "TL-2")
async def test_roots_and_the_main_thread_have_it_their_children_have_not_and_forks_share_it(shop: Shop) -> None:
    fork = use("Agent", description="f", prompt="directive f", fork=True, run_in_background=False)
    shop.script(
        child("x", say("found")),
        conversation(
            say(use("TaskUpdate", task_id="1", status="completed")),
            say("forked"),
            user="directive f",
            name="f",
            offset=2,
        ),
        root(say(use("TaskCreate", subject="one")), say(job("x"), fork), say(use("TaskList")), say("done")),
        conversation(say("ok"), first_user="hello", name="main"),
    )
    await shop.run()
    await shop.ended(await shop.runtime.send("main", "hello"))
    assert [NAMES & names(shop, each) for each in ("root", "main", "x")] == [NAMES, NAMES, set()]
    assert shop.results(3, "root")[0][2] == "1 [completed] one"


def names(shop: Shop, name: str) -> set[str]:
    return {tool["name"] for tool in shop.asked(0, name)["tools"]}


@pytest.mark.spec("MSG-4")
async def test_the_list_lies_beside_the_transcripts_and_another_process_reads_it(shop: Shop) -> None:
    create = use("TaskCreate", subject="täsk", description="d")
    shop.script(root(say(create), say("done"), say(use("TaskList")), say("done")))
    info = await shop.run()
    again = TaskFile(path_of(info))
    assert await again.all() == (TaskItem("1", "täsk", "d"),)
    assert path_of(info).stat().st_mode & 0o077 == 0
    await again.update("1", {"status": "in_progress"})
    await shop.send(info, "and now?")
    assert shop.results(3, "root")[0][2] == "1 [in_progress] täsk"


def path_of(info: AgentInfo) -> Path:
    return info.output_file.parents[1] / "tasks.json"


@pytest.mark.spec("MSG-4")
async def test_changes_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    store = TaskFile(tmp_path / "tasks.json")
    async with anyio.create_task_group() as group:
        for number in range(30):
            group.start_soon(store.create, {"subject": f"task {number}"})
    tasks = await store.all()
    assert [task.id for task in tasks] == [str(number + 1) for number in range(30)]
    assert {task.subject for task in tasks} == {f"task {number}" for number in range(30)}


@pytest.mark.spec("MSG-4")
@pytest.mark.parametrize("content", ["[", "[]", "{}", json.dumps({"tasks": [{"id": "1"}]}), json.dumps({"tasks": 1})])
async def test_a_damaged_list_is_an_error_and_stays_as_it_is(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(content)
    with pytest.raises(ToolError, match=r"The task list .*tasks.json cannot be read"):
        await TaskFile(path).create({"subject": "x"})
    assert path.read_text() == content

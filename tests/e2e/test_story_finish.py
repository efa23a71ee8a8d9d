"""agent/finish over the wire: what was accepted in the editor and what was not, in git."""

from __future__ import annotations

from typing import Any

import pytest

from lsp_server.demo.script import say, use
from tests.e2e.desk import Desk
from tests.e2e.editor import Editor
from tests.e2e.wire import ResponseError

pytestmark = [pytest.mark.anyio, pytest.mark.spec("ED-1", "ED-3", "WT-4")]

NEW = "def add(a, b):\n    return a + b\n"


async def worked(desk: Desk) -> str:
    """The id of an agent that has repaired app.py and made new.txt in a worktree."""
    edit = use("Edit", file_path="app.py", old_string="a - b", new_string="a + b")
    desk.says(
        say(use("Read", file_path="app.py")), say(edit, use("Write", file_path="new.txt", content="new\n")), say("done")
    )
    return str((await desk.run("Repair it", description="Repair it", isolation="worktree"))["id"])


async def finish(desk: Desk, agent: str, **params: Any) -> Any:
    return await desk.client.request("agent/finish", {"agentId": agent, **params})


async def test_one_commit_without_what_was_rejected(desk: Desk):
    agent = await worked(desk)
    await desk.review(agent)
    await desk.client.request("agent/discard", {"agentId": agent, "files": [{"path": "new.txt"}]})
    done = await finish(desk, agent, **{"as": "commit", "branch": "kept", "message": "Repaired"})
    assert done == {"commit": desk.repo.git("rev-parse", "kept"), "branch": "kept", "conflicts": []}
    assert desk.repo.git("show", "--format=%s", "--name-status", "kept").split() == ["Repaired", "M", "app.py"]
    assert desk.repo.git("status", "--porcelain") == ""


async def test_a_merge_waits_until_the_file_below_the_editor_is_saved(desk: Desk):
    editor, path = Editor(desk.client, desk.encoding), desk.repo.path / "app.py"
    agent = await worked(desk)
    editor.open(path)
    editor.change(path, "# mine\n" + path.read_text())
    done = await finish(desk, agent, **{"as": "merge"})
    reason = "it is not saved in the editor; save it first"
    assert done == {"conflicts": [{"path": "app.py", "reason": reason}]}
    editor.close(path)
    done = await finish(desk, agent, **{"as": "merge"})
    assert done == {"commit": desk.repo.git("rev-parse", "main"), "branch": "main", "conflicts": []}
    assert (path.read_text(), (desk.repo.path / "new.txt").read_text()) == (NEW, "new\n")


async def test_bad_calls_name_the_field(desk: Desk):
    agent = await worked(desk)
    for params, text in (({"as": "push"}, "as: "), ({"as": "commit", "branch": "a b"}, "branch: 'a b' cannot be")):
        with pytest.raises(ResponseError) as caught:
            await finish(desk, agent, **params)
        assert (caught.value.code, text in caught.value.message) == (-32602, True), caught.value.message
    desk.says(say("read only"))
    reader = (await desk.run(isolation="worktree"))["id"]
    with pytest.raises(ResponseError) as caught:
        await finish(desk, reader, **{"as": "branch"})
    assert caught.value.data["code"] == "notReviewable"

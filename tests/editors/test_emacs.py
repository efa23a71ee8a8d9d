"""The story of an agent in real Emacs: eglot, which shares no code with us and has never heard of `agent/*` (ED-4)."""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lsp_server.demo.model_server import ModelServer
from lsp_server.demo.script import Script, conversation, say, use
from tests.e2e.processes import ProcessWatch
from tests.git_helpers import Repo

pytestmark = pytest.mark.anyio

STORY = Path(__file__).with_name("story.el")
DISK = "# 🎉 first\ndef add(a, b):\n    return a - b\n"
UNSAVED = "# 🎉 mine, not saved\n"
WANTED = UNSAVED + DISK.replace("a - b", "a + b")


async def emacs(env: Mapping[str, str], workspace: Path, result: Path, **story: str) -> Any:
    """What the story found. Fails unless Emacs ends well and leaves no process."""
    (workspace / "app.py").write_text(DISK)
    whole = {
        "command": [sys.executable, "-m", "lsp_server", "serve"],
        "file": str(workspace / "app.py"),
        "unsaved": UNSAVED,
        "label": "Allow once",
        "result": str(result),
        **story,
    }
    tag = uuid.uuid4().hex
    process = await asyncio.create_subprocess_exec(
        *("emacs", "--batch", "-q", "-l", str(STORY)),
        cwd=workspace,
        env={**env, "STORY": json.dumps(whole), "LC_ALL": "C.UTF-8", ProcessWatch.VARIABLE: tag},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    watch = ProcessWatch(process.pid, tag)
    try:
        output, _ = await asyncio.wait_for(process.communicate(), 90)
    finally:
        left = await watch.left_behind(patience=3)
        await watch.kill_all()
    assert process.returncode == 0, output.decode()
    assert left == []
    assert "Traceback" not in output.decode()
    return json.loads(result.read_text("utf-8"))


def repairs(model: ModelServer, *more: Any) -> None:
    turns = (
        say(use("Read", file_path="app.py")),
        say(use("Edit", file_path="app.py", old_string="a - b", new_string="a + b")),
        *more,
        say("Repaired."),
    )
    model.set_script(Script((conversation(*turns),)))


@pytest.mark.spec("ED-3", "ED-4")
async def test_an_isolated_agent_is_asked_reviewed_and_applied_onto_the_unsaved_buffer(
    model: ModelServer, server_env: dict[str, str], workspace: Path, tmp_path: Path
):
    (workspace / "app.py").write_text(DISK)
    Repo(workspace).commit(message="with an emoji")
    repairs(model, say(use("Bash", command="/bin/true")))
    found = await emacs(server_env, workspace, tmp_path / "result", prompt="Repair it", isolation="worktree")
    [question] = found["questions"]
    labels = [
        "Allow once",
        "Allow for this session: Bash(/bin/true)",
        "Reject",
        "Reject for this session: Bash(/bin/true)",
        "Reject and stop the agent",
    ]
    assert question["choices"] == labels
    assert "general-purpose (Repair it) asks: Bash /bin/true" in question["question"]
    assert (found["agent"]["status"], found["agent"]["result"]) == ("completed", "Repaired.")
    [file] = found["review"]["files"]
    assert [hunk["text"] for hunk in file["hunks"]] == ["-    return a - b\n+    return a + b\n"]
    assert [applied["path"] for applied in found["apply"]["applied"]] == ["app.py"]
    assert (found["apply"]["remaining"], found["apply"]["conflicts"]) == (0, [])
    assert (found["buffer"], found["modified"], found["disk"]) == (WANTED, True, DISK)
    assert (workspace / "app.py").read_text() == DISK


async def test_an_agent_in_place_reads_and_edits_the_unsaved_buffer(
    model: ModelServer, server_env: dict[str, str], workspace: Path, tmp_path: Path
):
    repairs(model)
    found = await emacs(server_env, workspace, tmp_path / "result", prompt="Repair it", isolation="none")
    [question] = found["questions"]
    assert "general-purpose (Repair it) asks: Edit app.py" in question["question"]
    assert "-    return a - b\n+    return a + b" in question["question"]
    read = model.requests()[1].json["messages"][-1]["content"][0]["content"][0]["text"]
    assert "1\t# 🎉 mine, not saved\n" in read
    assert (found["agent"]["status"], found["buffer"], found["modified"]) == ("completed", WANTED, True)
    assert (found["disk"], (workspace / "app.py").read_text()) == (DISK, DISK)


async def test_a_refusal_in_emacs_reaches_the_model(
    model: ModelServer, server_env: dict[str, str], workspace: Path, tmp_path: Path
):
    repairs(model)
    found = await emacs(
        server_env, workspace, tmp_path / "result", prompt="Repair it", isolation="none", label="Reject"
    )
    assert (found["agent"]["status"], found["buffer"]) == ("completed", UNSAVED + DISK)
    refused = model.requests()[2].json["messages"][-1]["content"][0]
    assert refused["is_error"] is True
    assert refused["content"][0]["text"].startswith("The user refused this call.")

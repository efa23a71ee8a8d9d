"""How a server ends, with its editor or without it, and what the next one finds."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from lsp_server.demo.model_server import ModelServer
from lsp_server.demo.script import Script, conversation, say, use
from tests.e2e.conftest import ROOT, SERVER, StartServer
from tests.e2e.desk import CLIENTS, Desk, until
from tests.e2e.raw import message
from tests.git_helpers import Repo

pytestmark = pytest.mark.anyio

HUNG = "(sleep 300 & echo $! > grandchild; wait) & echo $$ > child; sleep 300"
OFFER = CLIENTS["trusted"]


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def allow(repo: Path, *commands: str) -> None:
    rules = {"permissions": {"allow": [f"Bash({command})" for command in commands]}}
    Repo(repo).write({".claude/settings.json": json.dumps(rules)})


def works_and_hangs(model: ModelServer) -> None:
    """The script of an agent that writes a file and then hangs in a command with a grandchild."""
    write = say("I write.", use("Write", file_path="new.txt", content="new\n"))
    model.set_script(Script((conversation(write, say(use("Bash", command=HUNG))),)))


async def pids(folder: Path) -> list[int]:
    files = [folder / name for name in ("child", "grandchild")]
    await until(lambda: all(file.exists() and file.read_text().strip() for file in files), 20)
    return [int(file.read_text()) for file in files]


def durable(progress: list[Any]) -> list[Any]:
    return [{name: each[name] for name in ("seq", "at", "event")} for each in progress if "deltaSeq" not in each]


def records(transcript: Path) -> list[tuple[int, str, str]]:
    lines = [json.loads(line) for line in transcript.read_text().splitlines()]
    return [(line["seq"], line["uuid"], line["agentId"]) for line in lines]


# The editor dies


class Editor:
    """The process that plays the editor, and what it wrote down."""

    def __init__(self, process: subprocess.Popen[bytes], place: Path) -> None:
        self.process, self.journal, self.stderr = process, place / "journal", place / "stderr"

    def received(self) -> list[Any]:
        return [json.loads(line) for line in self.journal.read_text().splitlines()] if self.journal.exists() else []

    def progress(self) -> list[Any]:
        return [each["params"] for each in self.received() if each.get("method") == "agent/progress"]

    @property
    def server(self) -> int:
        return int(self.received()[0]["pid"])


@pytest.fixture(params=["end of stdin", "stdin held open"])
def editor(
    request: pytest.FixtureRequest, server_env: dict[str, str], workspace: Path, tmp_path: Path
) -> Iterator[Editor]:
    """In the second variant this process keeps the server's stdin open, so that only the death itself tells."""
    allow(workspace, HUNG)
    ends = list(os.pipe()) if request.param == "stdin held open" else []
    folders = [{"uri": workspace.as_uri(), "name": "workspace"}]
    offer = {"capabilities": OFFER.capabilities, "initializationOptions": OFFER.options, "workspaceFolders": folders}
    config = {
        "command": [*SERVER, "serve"],
        "env": server_env,
        "cwd": str(workspace),
        "stdin": ends,
        "requests": [
            {"id": 1, "method": "initialize", "params": offer},
            {"method": "initialized", "params": {}},
            {"id": 2, "method": "agent/spawn", "params": {"prompt": "go", "isolation": "worktree"}},
        ],
        "journal": str(tmp_path / "journal"),
        "stderr": str(tmp_path / "stderr"),
    }
    command = [sys.executable, "-m", "tests.e2e.editor_process", json.dumps(config)]
    with subprocess.Popen(command, cwd=ROOT, pass_fds=ends) as process:
        found = Editor(process, tmp_path)
        yield found
        process.kill()
        if found.received() and alive(found.server):
            os.kill(found.server, signal.SIGKILL)
        for end in ends:
            os.close(end)


@pytest.mark.spec("TR-1", "TR-4")
async def test_k2_nothing_of_ours_outlives_an_editor_that_was_killed_and_nothing_is_lost(
    editor: Editor, model: ModelServer, server: StartServer, workspace: Path
):
    works_and_hangs(model)
    await until(lambda: any(params["event"]["kind"] == "filesChanged" for params in editor.progress()), 30)
    [written] = [p["event"]["paths"] for p in editor.progress() if p["event"]["kind"] == "filesChanged"]
    children = await pids(Path(written[0]["path"]).parent)
    assert [alive(pid) for pid in (editor.server, *children)] == [True] * 3
    editor.process.kill()
    await until(lambda: not any(alive(pid) for pid in children), 3)
    busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))  # the server still settles the worktree with git
    await until(lambda: not alive(editor.server), 3 * busy)
    assert "Traceback" not in editor.stderr.read_text()

    sent = durable(editor.progress())
    agent = editor.progress()[0]["agentId"]
    assert [each["seq"] for each in sent] == list(range(1, len(sent) + 1))
    started = sent[0]["event"]["agent"]
    transcript = Path(started["outputFile"]).with_suffix(".jsonl")
    kept = records(transcript)
    assert kept[: len(sent)] == [(n, f"{agent}-{n}", agent) for n in range(1, len(sent) + 1)]

    client = await server()
    await client.initialize(root=workspace, capabilities=OFFER.capabilities, options=OFFER.options)
    desk = Desk(client, model, Repo(workspace))
    [info] = (await client.request("agent/list", {}))["agents"]
    assert (info["id"], info["status"], info["usage"]["turns"]) == (agent, "interrupted", 2)
    page = await client.request("agent/transcript", {"agentId": agent})
    assert (page["events"][: len(sent)], page["nextSeq"], page["complete"]) == (sent, len(kept), True)
    review = await desk.review(agent)
    changed = [(file["path"], file["status"]) for file in review["files"]]
    assert changed == [("child", "added"), ("grandchild", "added"), ("new.txt", "added")]
    result = await desk.apply(agent, {"path": "new.txt"})
    assert ([file["path"] for file in result["applied"]], (workspace / "new.txt").read_text()) == (["new.txt"], "new\n")
    locked = Repo(workspace).git("worktree", "list", "--porcelain")
    assert "\nlocked" not in locked


async def test_k2_a_server_that_is_no_child_of_its_editor_watches_it(server: StartServer, workspace: Path):
    client = await server()
    other = await asyncio.create_subprocess_exec("sleep", "300")
    await client.initialize(root=workspace, processId=other.pid)
    await client.request("agent/list", {})
    other.kill()
    await client.finish(timeout=3)
    await other.wait()


@pytest.mark.spec("TR-3", "TR-4")
async def test_f6_after_a_kill_of_the_server_itself_its_agent_is_interrupted_and_its_work_is_there(
    own_desk: Desk, server: StartServer, model: ModelServer, workspace: Path
):
    desk = own_desk
    desk.says(
        say("I write.", use("Write", file_path="new.txt", content="new\n")),
        say("word " * 2000, chunk=5, per_delta_ms=5),
    )
    agent = await desk.spawn(isolation="worktree")
    await desk.event(agent, "filesChanged")
    await model.wait_for(2, 20)
    await until(lambda: len(desk.events(agent, "text")) > 3)
    os.kill(desk.client.process.pid, signal.SIGKILL)
    await desk.client.finish(expected_code=-signal.SIGKILL)
    sent = durable(desk.progress(agent))
    transcript = Path(sent[0]["event"]["agent"]["outputFile"]).with_suffix(".jsonl")
    with transcript.open("a") as file:
        file.write('{"v": 1, "uuid": "torn')  # as if the last write had been cut

    client = await server()
    await client.initialize(root=workspace, capabilities=OFFER.capabilities, options=OFFER.options)
    desk = Desk(client, model, Repo(workspace))
    [info] = (await client.request("agent/list", {}))["agents"]
    assert (info["id"], info["status"]) == (agent, "interrupted")
    page = await client.request("agent/transcript", {"agentId": agent})
    assert page["events"][: len(sent)] == sent
    assert [(file["path"], file["status"]) for file in (await desk.review(agent))["files"]] == [("new.txt", "added")]
    assert [file["path"] for file in (await desk.apply(agent))["applied"]] == ["new.txt"]
    assert (workspace / "new.txt").read_text() == "new\n"


# Orderly ends


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
async def test_a_signal_ends_agents_and_commands_and_says_so(own_desk: Desk, number: signal.Signals):
    desk = own_desk
    allow(desk.repo.path, HUNG)
    desk.says(say(use("Bash", command=HUNG)))
    agent = await desk.spawn()
    children = await pids(desk.repo.path)
    os.kill(desk.client.process.pid, number)
    await desk.client.finish(timeout=6)
    assert [alive(pid) for pid in children] == [False, False]
    output = desk.events(agent, "started")[0]["agent"]["outputFile"]
    last = json.loads(Path(output).with_suffix(".jsonl").read_text().splitlines()[-1])
    assert (last["event"]["type"], last["event"]["info"]["status"]) == ("Ended", "interrupted")


async def test_shutdown_and_exit_with_an_agent_at_work(own_desk: Desk):
    desk = own_desk
    allow(desk.repo.path, HUNG)
    desk.says(say(use("Bash", command=HUNG)))
    await desk.spawn()
    children = await pids(desk.repo.path)
    desk.client.hold("agent/permission")
    await desk.client.close(timeout=6)
    assert [alive(pid) for pid in children] == [False, False]


async def test_the_end_of_stdin_while_a_person_is_asked(own_desk: Desk):
    desk = own_desk
    desk.client.hold("agent/permission")
    desk.says(say(use("Bash", command="touch made")))
    await desk.spawn()
    await desk.client.held("agent/permission", timeout=20)
    desk.client.close_stdin()
    await desk.client.finish(timeout=6)
    assert not (desk.repo.path / "made").exists()


def test_k6_an_editor_that_stops_reading_first_is_left_quietly(alone: tuple[dict[str, str], Path]):
    server_env, workspace = alone
    pipe = subprocess.PIPE
    command = [*SERVER, "serve"]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=server_env, cwd=workspace) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        start = {"processId": None, "rootUri": workspace.as_uri(), "capabilities": OFFER.capabilities}
        process.stdin.write(message("initialize", start, 1))
        process.stdin.flush()
        assert process.stdout.readline().lower().startswith(b"content-length")
        process.stdout.close()
        process.stdin.write(b"".join(message("agent/definitions", {}, number) for number in range(2, 30)))
        process.stdin.write(message("shutdown", number=30) + message("exit"))
        process.stdin.close()
        errors = process.stderr.read().decode()
        assert (process.wait(10), errors) == (0, "")


async def test_k1_what_is_printed_inside_or_by_a_child_never_reaches_the_protocol(
    server: StartServer, model: ModelServer, workspace: Path, server_env: dict[str, str], tmp_path: Path
):
    noise = tmp_path / "noise"
    noise.mkdir()
    (noise / "sitecustomize.py").write_text(
        "import os, subprocess, sys, threading\n"
        "def shout():\n"
        "    print('noise by print', flush=True)\n"
        "    sys.__stdout__.write('noise by the real stdout\\n'); sys.__stdout__.flush()\n"
        "    os.write(1, b'noise by the descriptor\\n')\n"
        "    subprocess.run(['echo', 'noise by a child'])\n"
        "    threading.Timer(0.3, shout).start()\n"
        "if 'lsp_server' in ' '.join(sys.orig_argv):\n"
        "    timer = threading.Timer(1.5, shout)\n"
        "    timer.daemon = True\n"
        "    timer.start()\n"
    )
    client = await server(env={"PYTHONPATH": f"{noise}:{server_env['PYTHONPATH']}"})
    await client.initialize(root=workspace, capabilities=OFFER.capabilities, options=OFFER.options)
    desk = Desk(client, model, Repo(workspace))
    client.on("agent/permission", lambda params: {"optionId": "allowOnce"})
    loud = "echo out; echo err >&2; echo outside > /proc/$PPID/fd/1"
    desk.says(say(use("Bash", command=loud)), say("done"))
    info = await desk.run()
    await until(lambda: client.stderr.count("noise by a child") >= 2, 10)
    assert (info["status"], desk.told(1)) == ("completed", "out\nerr\n")
    assert "outside\n" in client.stderr
    await client.request("agent/list", {})
    await client.kill()
    assert client.problems == []


async def test_earlier_agents_are_listed_and_their_worktrees_reviewed_after_a_restart(
    own_desk: Desk, server: StartServer, model: ModelServer, workspace: Path
):
    desk = own_desk
    desk.says(say(use("Write", file_path="new.txt", content="new\n")), say("done"))
    done = await desk.run(isolation="worktree")
    before = await desk.client.request("agent/transcript", {"agentId": done["id"]})
    review = await desk.review(done["id"])
    await desk.client.close()
    client = await server()
    await client.initialize(root=workspace, capabilities=OFFER.capabilities, options=OFFER.options)
    desk = Desk(client, model, Repo(workspace))
    assert (await client.request("agent/list", {}))["agents"] == [done]
    assert await client.request("agent/transcript", {"agentId": done["id"]}) == before
    assert (await client.request("agent/wait", {"agentId": done["id"]}))["agent"] == done
    again = await desk.review(done["id"])
    assert [file["hunks"] for file in again["files"]] == [file["hunks"] for file in review["files"]]
    result = await desk.apply(done["id"])
    assert ([file["path"] for file in result["applied"]], result["remaining"]) == (["new.txt"], 0)
    text = await client.request("agent/content", {"uri": f"agent-transcript:/{done['id']}.md"})
    assert (text["languageId"], "done" in text["text"]) == ("markdown", True)

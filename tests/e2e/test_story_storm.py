"""Thirty isolated agents in one repository while git fails, files go and the server dies: nothing is lost (WT-4)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import define

from lsp_server.demo.model_server import ModelServer
from lsp_server.demo.script import Conversation, ToolUse, conversation, say, use
from tests.e2e.conftest import StartServer
from tests.e2e.desk import CLIENTS, Desk, Info
from tests.git_helpers import Repo

pytestmark = pytest.mark.anyio

SOAK = os.environ.get("AGENT_LS_SOAK") == "1"
AGENTS = 30
KILLED_AT = [10, 26] if SOAK else [15]
"""How many worktrees there are then: while others are still made, and when nearly all agents are at work."""
COMMIT = "git add -A && git commit -qm work"
HALF = "printf half > half.txt; touch begun; sleep 300"
OFFER = CLIENTS["trusted"]
KINDS = ("writes", "commits", "reads", "stopped", "locked", "deleted", "read-only", "detached")
"""What an agent does, or what is done to its worktree while the model thinks."""

WRAPPER = """#!/bin/sh
# git, but the product's own commands fail by a list: before they did anything, after they did it all, or killed
case "$*" in *--no-pager*) ;; *) exec "$STORM_GIT" "$@" ;; esac
printf . >> "$STORM_PLACE/count"
case "$(sed -n "$(($(wc -c < "$STORM_PLACE/count")))p" "$STORM_PLACE/plan")" in
before) echo "fatal: injected" >&2; exit 128 ;;
after) "$STORM_GIT" "$@" > /dev/null 2>&1; echo "fatal: injected after the work" >&2; exit 128 ;;
killed) "$STORM_GIT" "$@" & git=$!; sleep 0.005; kill -9 $git; wait $git; exit 137 ;;
*) exec "$STORM_GIT" "$@" ;;
esac
"""


def failing_git(place: Path, seed: int = 48927) -> dict[str, str]:
    """The environment of a server whose git fails three times in a hundred."""
    place.mkdir()
    (place / "git").write_text(WRAPPER)
    (place / "git").chmod(0o755)
    ways = random.Random(seed).choices(["", "before", "after", "killed"], [97, 1, 1, 1], k=9999)
    (place / "plan").write_text("\n".join(["", "", *ways, ""]))
    real = shutil.which("git")
    assert real is not None
    return {"PATH": f"{place}{os.pathsep}{os.environ['PATH']}", "STORM_GIT": real, "STORM_PLACE": str(place)}


def injected(place: Path) -> int:
    """How many commands failed by the list."""
    return sum(map(bool, (place / "plan").read_text().split("\n")[: (place / "count").stat().st_size]))


@define
class Checkout:
    """The user's: everything that agents must leave as it was, work that is in no commit included."""

    repo: Repo

    def prepare(self) -> None:
        self.repo.git("config", "user.name", "A")
        self.repo.git("config", "user.email", "a@example.com")
        rules = {"permissions": {"allow": [f"Bash({command})" for command in (COMMIT, HALF)]}}
        self.repo.commit({".claude/settings.json": json.dumps(rules), ".gitignore": "*.log\n"})
        self.repo.write({"README.md": "# Mine, stashed\n"})
        self.repo.git("stash")
        self.repo.write({"app.py": "mine = 'not committed'\n", "docs/mine.txt": "untracked\n", "x.log": "ignored\n"})
        self.repo.write({"staged.txt": "staged\n"})
        self.repo.git("add", "staged.txt")

    def state(self) -> dict[str, Any]:
        top = self.repo.path
        files = {
            str(path.relative_to(top)): path.read_bytes()
            for path in top.rglob("*")
            if path.is_file() and ".git" not in path.relative_to(top).parts
        }
        own = {name: (top / ".git" / name).read_bytes() for name in ("HEAD", "index", "config")}
        refs = {name: self.repo.git("rev-parse", name) for name in ("HEAD", "main", "stash")}
        return {"files": files, "own": own, "refs": refs}

    def check_sound(self) -> None:
        done = subprocess.run(
            ["git", "-C", str(self.repo.path), "fsck", "--full", "--strict", "--no-dangling"], capture_output=True
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")

    def kept(self, info: Info, name: str) -> bytes | None:
        """A file of an agent, in its folder or else on its branch."""
        worktree = info["worktree"]
        with contextlib.suppress(OSError):
            return (Path(worktree["path"]) / name).read_bytes()
        command = ["git", "-C", str(self.repo.path), "cat-file", "blob", f"{worktree['branch']}:{name}"]
        done = subprocess.run(command, capture_output=True)
        return done.stdout if done.returncode == 0 else None


def kind_of(number: int) -> str:
    return KINDS[number % len(KINDS)]


def task(number: int) -> str:
    return f"task {number:02} {kind_of(number)}"


def text(number: int) -> str:
    return f"the work of {number:02}\n"


def child(number: int) -> Conversation:
    last = say("done", gate="go")
    read = say(use("Read", file_path="docs/notes.txt"))
    write = say(use("Write", file_path="out.txt", content=text(number)))
    turns = {
        "reads": (read, last),
        "commits": (write, say(use("Bash", command=COMMIT)), last),
        "stopped": (write, say(use("Bash", command=HALF))),
    }.get(kind_of(number), (write, last))
    return conversation(*turns, name=task(number), first_user=task(number))


def storm(desk: Desk) -> None:
    def job(number: int) -> ToolUse:
        return use("Agent", description=task(number), prompt=task(number), isolation="worktree")

    jobs = say(*(job(number) for number in range(AGENTS)))
    desk.script(*map(child, range(AGENTS)), conversation(jobs, say("all are done"), name="root"))


async def opened(server: StartServer, workspace: Path, model: ModelServer, env: dict[str, str]) -> Desk:
    client = await server(env=env)
    options = {"trusted": True, "settings": {"maxConcurrentAgents": AGENTS}}
    await client.initialize(root=workspace, capabilities=OFFER.capabilities, options=options)
    return Desk(client, model, Repo(workspace))


async def children(desk: Desk) -> dict[int, Info]:
    agents = (await desk.client.request("agent/list", {}, timeout=60))["agents"]
    return {int(info["description"].split()[1]): info for info in agents if info["description"].startswith("task ")}


def refused(desk: Desk, root: str) -> int:
    """How many calls failed before there was an agent, in words for the model."""
    ends = [event for event in desk.events(root, "toolUpdate") if event["status"] == "failed"]
    return sum(event["output"].startswith("The agent was not launched: ") for event in ends)


async def all_at_the_gate(desk: Desk, root: str) -> None:
    """Until each child has failed, hangs in its command, or waits for the model with all that it does done."""

    async def ready() -> bool:
        found = await children(desk)
        return len(found) + refused(desk, root) == AGENTS and all(
            settled(number, info) for number, info in found.items()
        )

    def settled(number: int, info: Info) -> bool:
        if info["status"] == "failed":
            return True
        if kind_of(number) == "stopped":
            return "worktree" in info and (Path(info["worktree"]["path"]) / "begun").exists()
        return len(desk.model.requests(task(number))) == len(child(number).turns)

    await becomes(ready, 90)


async def becomes(holds: Callable[[], Awaitable[bool]], timeout: float) -> None:
    async with asyncio.timeout(timeout):
        while not await holds():
            await asyncio.sleep(0.1)


def harm(checkout: Checkout, number: int, info: Info) -> None:
    """What other programs do to a worktree while its agent is at work."""
    path = Path(info["worktree"]["path"])
    match kind_of(number):
        case "locked":
            (checkout.repo.path / ".git" / "worktrees" / path.name / "index.lock").touch()
        case "deleted":
            shutil.rmtree(path)
        case "read-only":
            path.chmod(0o555)
        case "detached":
            Repo(path).git("checkout", "-q", "--detach")


def check_children(checkout: Checkout, found: dict[int, Info], reports: str | None) -> None:
    """No change is lost, and each that there is is told of; what failed says so and has done nothing."""
    for number, info in found.items():
        if "worktree" not in info:
            assert info["status"] == "failed" or kind_of(number) == "reads", info
            continue
        if kind_of(number) not in ("reads", "deleted"):
            assert checkout.kept(info, "out.txt") == text(number).encode(), info
        if kind_of(number) == "stopped":
            assert checkout.kept(info, "half.txt") == b"half"
        checkout.repo.git("rev-parse", "--verify", f"refs/heads/{info['worktree']['branch']}")
        assert reports is None or f"worktreePath: {info['worktree']['path']}\n" in reports
        if kind_of(number) == "read-only":
            Path(info["worktree"]["path"]).chmod(0o755)


def check_nothing_else(checkout: Checkout, found: dict[int, Info]) -> None:
    """A branch that nobody was told of holds nothing that main does not."""
    known = {info["worktree"]["branch"] for info in found.values() if "worktree" in info}
    base = checkout.repo.git("rev-parse", "main")
    listed = checkout.repo.git("for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads/").splitlines()
    assert {name: at for name, at in map(str.split, listed) if name not in known and at != base} == {}
    for branch in (line.split()[0] for line in listed):
        assert branch == "main" or branch.startswith("agent-")


@pytest.mark.spec("WT-1", "WT-3", "WT-4", "RUN-7")
async def test_c1_many_isolated_agents_with_failures_in_between_lose_nothing(
    server: StartServer, workspace: Path, model: ModelServer, tmp_path: Path
):
    checkout = Checkout(Repo(workspace))
    checkout.prepare()
    before = checkout.state()
    desk = await opened(server, workspace, model, failing_git(tmp_path / "bin"))
    storm(desk)
    root = await desk.spawn("root")
    await all_at_the_gate(desk, root)
    for number, info in (await children(desk)).items():
        if info["status"] == "failed":
            continue
        if kind_of(number) == "stopped":
            await desk.client.request("agent/stop", {"agentId": info["id"]}, timeout=30)
        harm(checkout, number, info)
    model.gate("go").set()
    end = await desk.ended(root, timeout=90)
    assert (end["status"], end["result"]) == ("completed", "all are done")
    found = await children(desk)
    assert checkout.state() == before
    checkout.check_sound()
    assert len(found) + refused(desk, root) == AGENTS
    check_children(checkout, found, desk.told(1, "root"))
    check_nothing_else(checkout, found)
    statuses = {info["status"] for info in found.values()}
    assert {"completed", "stopped"} <= statuses <= {"completed", "stopped", "failed"}
    assert injected(tmp_path / "bin") >= 5
    assert {number for number, info in found.items() if info["status"] == "stopped"} <= set(
        range(3, AGENTS, len(KINDS))
    )


@pytest.mark.spec("WT-4", "TR-4")
@pytest.mark.parametrize("worktrees", KILLED_AT)
async def test_c1_many_isolated_agents_and_the_server_is_killed(
    server: StartServer, workspace: Path, model: ModelServer, worktrees: int
):
    checkout = Checkout(Repo(workspace))
    checkout.prepare()
    before = checkout.state()
    desk = await opened(server, workspace, model, {})
    storm(desk)
    await desk.spawn("root")

    async def made() -> bool:
        return sum("worktree" in info for info in (await children(desk)).values()) >= worktrees

    await becomes(made, 60)
    os.kill(desk.client.process.pid, signal.SIGKILL)
    await desk.client.kill()
    wrote = {each["agentId"] for each in desk.client.received("agent/progress") if is_write(each["event"])}

    desk = await opened(server, workspace, model, {})
    found = await children(desk)
    assert {info["status"] for info in found.values()} == {"interrupted"}
    assert checkout.state() == before
    checkout.check_sound()
    for number, info in found.items():
        if info["id"] in wrote:
            assert checkout.kept(info, "out.txt") == text(number).encode()
            review = await desk.client.request("agent/review", {"agentId": info["id"]}, timeout=30)
            assert "out.txt" in [file["path"] for file in review["files"]]
    check_nothing_else(checkout, found)
    assert checkout.state() == before


def is_write(event: Any) -> bool:
    return event["kind"] == "filesChanged" and any(each["path"].endswith("out.txt") for each in event["paths"])

"""The server is killed at any moment of making, working, applying, discarding and clearing up: nothing is lost (WT-4).

Each round is the whole life of four agents. One of its steps, at random, is cut off by SIGKILL after a random time;
then a new server lists, settles and finishes what there is.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from agent_core.worktree_journal import entries
from lsp_server.demo.model_server import ModelServer
from lsp_server.demo.script import conversation, say, use
from tests.e2e.conftest import StartServer
from tests.e2e.desk import Desk, Info
from tests.e2e.test_story_storm import Checkout, becomes, opened
from tests.git_helpers import Repo

pytestmark = pytest.mark.anyio

ROUNDS = 100 if os.environ.get("AGENT_LS_SOAK") == "1" else 10
WRITERS = range(3)
READER = 3
LINES = [f"line {number}\n" for number in range(40)]
Step = Callable[[], Awaitable[Any]]


def task(number: int) -> str:
    return f"task {number}"


def line_of(number: int) -> int:
    """The line of notes.txt that this agent changes."""
    return 10 * number + 5


def text(number: int) -> str:
    return f"made by {number}\n"


def script(desk: Desk) -> None:
    def writer(number: int) -> Any:
        old, new = LINES[line_of(number)], f"changed by {number}\n"
        return conversation(
            say(use("Read", file_path="notes.txt")),
            say(use("Edit", file_path="notes.txt", old_string=old, new_string=new)),
            say(use("Write", file_path=f"out-{number}.txt", content=text(number))),
            say("done"),
            name=task(number),
            first_user=task(number),
        )

    reader = conversation(
        say(use("Read", file_path="notes.txt")), say("read"), name=task(READER), first_user=task(READER)
    )
    desk.script(*map(writer, WRITERS), reader)


@define
class Story:
    """`ids` are the agents by number, as far as the editor was told."""

    desk: Desk
    ids: dict[int, str] = field(factory=dict)
    ref: str = ""

    def steps(self) -> list[Step]:
        names = [{"path": "notes.txt"}]
        return [
            *(lambda number=number: self.spawn(number) for number in (*WRITERS, READER)),  # type: ignore[misc]
            self.all_ended,
            lambda: self.desk.review(self.ids[0]),
            lambda: self.desk.apply(self.ids[0], *names),
            lambda: self.desk.apply(self.ids[0]),
            lambda: self.ask("discard", 1, files=names),
            self.apply_and_keep_the_ref,
            lambda: self.ask("restore", 1, recoverRef=self.ref),
            lambda: self.desk.apply(self.ids[2]),
        ]

    async def ask(self, method: str, number: int, **params: Any) -> Any:
        return await self.desk.client.request(f"agent/{method}", {"agentId": self.ids[number], **params})

    async def spawn(self, number: int) -> None:
        self.ids[number] = await self.desk.spawn(task(number), description=task(number), isolation="worktree")

    async def all_ended(self) -> None:
        for each in self.ids.values():
            await self.desk.ended(each)

    async def apply_and_keep_the_ref(self) -> None:
        self.ref = (await self.desk.apply(self.ids[1]))["recoverRef"]

    async def until_killed(self, chance: random.Random) -> int:
        """The number of the step that was cut off."""
        steps = self.steps()
        last = chance.randrange(len(steps))
        for step in steps[:last]:
            await step()
        cut = asyncio.ensure_future(steps[last]())
        await asyncio.sleep(chance.choice([0.002, 0.01, 0.03, 0.08, 0.3]) * chance.random())
        os.kill(self.desk.client.process.pid, signal.SIGKILL)
        await self.desk.client.kill()
        await asyncio.gather(cut, return_exceptions=True)
        return last

    def wrote(self, number: int) -> list[str]:
        """Files of an agent that the editor was told of."""
        told = self.desk.events(self.ids[number], "filesChanged") if number in self.ids else []
        return [Path(each["path"]).name for event in told for each in event["paths"]]


def prepare(checkout: Checkout) -> None:
    checkout.prepare()
    (checkout.repo.path / "app.py").rename(checkout.repo.path / "app.py.kept")
    checkout.repo.git("stash", "push", "-q", "--staged")
    checkout.repo.git("checkout", "-q", "--", "app.py")
    checkout.repo.commit({"notes.txt": "".join(LINES)}, "notes")
    checkout.repo.write({"app.py": "mine = 'not committed'\n", "mine.txt": "untracked\n"})


def check_users_files(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Byte for byte what they were, apart from whole hunks of agents in the files that were applied."""
    assert {name: before[name] for name in ("own", "refs")} == {name: after[name] for name in ("own", "refs")}
    made = {f"out-{number}.txt": text(number).encode() for number in WRITERS}
    for name, data in after["files"].items():
        if name == "notes.txt":
            lines = data.decode().splitlines(keepends=True)
            assert len(lines) == len(LINES)
            for number, (old, new) in enumerate(zip(LINES, lines, strict=True)):
                agents = [each for each in WRITERS if line_of(each) == number]
                assert new in (old, *(f"changed by {each}\n" for each in agents))
        else:
            assert data == made.get(name, before["files"].get(name)), name
    assert set(before["files"]) <= set(after["files"])


async def check_all_is_listed(desk: Desk, checkout: Checkout, location: Path) -> dict[int, Info]:
    """Worktrees, branches and folders are those of the agents in the list, once the server has looked through them."""

    async def listed() -> dict[int, Info]:
        agents = (await desk.client.request("agent/list", {}, timeout=30))["agents"]
        return {int(info["description"].split()[1]): info for info in agents if info["description"].startswith("task ")}

    found = await listed()
    known = {info["worktree"]["branch"] for info in found.values() if "worktree" in info}

    async def settled() -> bool:
        journal = {entry.path.name for entry in await asyncio.to_thread(entries, location)}
        return journal <= known and "\nlocked" not in checkout.repo.git("worktree", "list", "--porcelain")

    await becomes(settled, 30)
    registered = checkout.repo.git("worktree", "list", "--porcelain").split("\n\n")[1:]
    there = {block.splitlines()[0].rpartition("/")[2] for block in registered}
    branches = set(checkout.repo.git("for-each-ref", "--format=%(refname:short)", "refs/heads/agent-*").split())
    folders = {path.name for path in location.iterdir() if path.is_dir()} if location.exists() else set()
    assert (there - known, branches - known, folders - known) == (set(), set(), set())
    return found


@pytest.mark.spec("WT-3", "WT-4", "TR-4")
@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_c1_c2_after_a_kill_at_any_moment_nothing_is_lost_and_nothing_is_left_that_is_not_listed(
    server: StartServer, workspace: Path, model: ModelServer, tmp_path: Path, seed: int
):
    checkout = Checkout(Repo(workspace))
    prepare(checkout)
    before = checkout.state()
    story = Story(await opened(server, workspace, model, {}))
    script(story.desk)
    step = await story.until_killed(random.Random(seed))
    check_users_files(before, checkout.state())

    desk = await opened(server, workspace, model, {})
    [location] = [*(tmp_path / "agent-state" / "worktrees").glob("*"), tmp_path / "none"][:1]
    found = await check_all_is_listed(desk, checkout, location)
    checkout.check_sound()
    for number, info in found.items():
        assert info["status"] in ("completed", "interrupted"), (step, info)
        for name in story.wrote(number):
            kept = checkout.kept(info, name)
            assert kept is not None and (f"changed by {number}".encode() in kept or kept == text(number).encode())
    for number, info in found.items():
        if info["status"] == "interrupted":
            await desk.client.request("agent/resume", {"agentId": info["id"]})
            # a git that was killed, too, leaves a lock in its new worktree, which is waited for half a minute
            ended = (await desk.client.request("agent/wait", {"agentId": info["id"]}, timeout=60))["agent"]
            assert ended["status"] == "completed", (step, ended)
        if number != READER:
            await desk.review(info["id"])
            applied = await desk.apply(info["id"])
            assert applied["conflicts"] == [], (step, applied)
    after = checkout.state()
    check_users_files(before, after)
    for number in found:
        if number != READER:
            assert after["files"][f"out-{number}.txt"] == text(number).encode()
    checkout.check_sound()

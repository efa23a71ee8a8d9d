"""Isolation that begins at once: the model is asked while git still writes the files; the first call on them waits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core import worktree as worktrees
from agent_core.checkouts import Checkouts
from agent_core.events import Ended, ToolOutput
from agent_core.repository import GitCommand, find_repository
from agent_core.task import TaskStatus
from agent_core.worktree import is_unfinished, register
from lsp_server.demo.script import conversation, say, use
from tests.git_helpers import AGENT, Repo, clean_git, repo
from tests.unit.agent_core.workshop import SECONDS, Shop, open_shop

__all__ = ["clean_git", "repo"]  # fixtures

pytestmark = pytest.mark.anyio


class SlowGit(GitCommand):
    """Real git, whose checkouts begin when `go` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.go, self.asked = anyio.Event(), anyio.Event()

    async def run(self, cwd: Path, *args: str, **options: Any) -> bytes:
        if "--hard" in args:
            self.asked.set()
            await self.go.wait()
        return await super().run(cwd, *args, **options)


@asynccontextmanager
async def opened(place: Path, repo: Repo) -> AsyncIterator[tuple[Shop, SlowGit]]:
    git = SlowGit()
    async with open_shop(place, folder=repo.path, git=git) as shop:
        yield shop, git


@pytest.mark.spec("WT-1", "WT-2")
async def test_the_model_is_asked_before_the_files_are_there_and_a_call_waits_for_them(
    tmp_path: Path, repo: Repo
) -> None:
    async with opened(tmp_path, repo) as (shop, git):
        shop.says(say(use("Read", file_path="a.txt")), say("done"))
        info = await shop.spawn(isolation="worktree")
        waiting = await shop.event(info, ToolOutput)
        assert waiting.output == "Waiting for git to write the files of the worktree ..."
        assert not git.go.is_set() and len(shop.model.requests()) == 1
        git.go.set()
        done = await shop.ended(info)
        assert (done.status, shop.results(1)[0][1]) == (TaskStatus.COMPLETED, False)
        assert done.worktree is None, "nothing changed"


@pytest.mark.spec("WT-3")
@pytest.mark.parametrize("how", ["ends", "stopped"])
async def test_an_agent_that_ends_before_leaves_nothing(tmp_path: Path, repo: Repo, how: str) -> None:
    before = repo.state()
    async with opened(tmp_path, repo) as (shop, git):
        turns = (say("I need no file"),) if how == "ends" else (say(use("Read", file_path="a.txt")),)
        shop.says(*turns)
        info = await shop.spawn(isolation="worktree")
        if how == "stopped":
            await shop.event(info, ToolOutput)
            await shop.stopped(info, within=6)
        done = await shop.ended(info)
        assert (done.status, done.worktree) == (TaskStatus("completed" if how == "ends" else "stopped"), None)
        assert not git.go.is_set()
        shop.check(done)
    assert repo.state() == before
    assert [*tmp_path.glob("state/worktrees/*/*")] == []


@pytest.mark.spec("WT-3", "WT-4")
@pytest.mark.parametrize("name", ["new.txt", "a.txt"])
async def test_what_somebody_writes_there_meanwhile_is_kept(tmp_path: Path, repo: Repo, name: str) -> None:
    async with opened(tmp_path, repo) as (shop, git):
        shop.says(say("I need no file", gate="end"))
        started = await shop.spawn(isolation="worktree")
        await git.asked.wait()
        await shop.model.wait_for(1)
        worktree = (await shop.runtime.info(started.id)).worktree
        assert worktree is not None
        (worktree.path / name).write_text("a person's")
        shop.model.gate("end").set()
        done = await shop.ended(started)
        assert not git.go.is_set()
        assert done.worktree == worktree
        assert (worktree.path / name).read_text() == "a person's"
        assert (worktree.path / "a.txt").exists()
        git.go.set()
        [file] = (await shop.runtime.review(started.id)).files
        assert file.path == name


@pytest.mark.spec("WT-2", "WT-4")
async def test_c7_files_that_cannot_be_written_fail_the_agent(tmp_path: Path, repo: Repo) -> None:
    repo.commit({".gitattributes": "a.txt filter=broken\n"})
    before = repo.state()
    repo.git("config", "filter.broken.smudge", "false")
    repo.git("config", "filter.broken.required", "true")
    async with open_shop(tmp_path, folder=repo.path) as shop:
        shop.says(say(use("Write", file_path="new.txt", content="x")), say("done"))
        done = await shop.run(isolation="worktree")
        assert done.status is TaskStatus.FAILED
        assert "the files of the worktree" in (done.error or "") and "could not be written" in (done.error or "")
        assert (done.worktree, len(shop.of(done, Ended))) == (None, 1)
        shop.check(done)
    assert not (repo.path / "new.txt").exists()
    repo.git("config", "--remove-section", "filter.broken")
    assert repo.state() == before


@pytest.mark.spec("WT-1")
async def test_children_and_reviews_wait_too(tmp_path: Path, repo: Repo) -> None:
    async with opened(tmp_path, repo) as (shop, git):
        job = use("Agent", description="child", prompt="child looks", run_in_background=False)
        shop.script(
            conversation(say(use("Read", file_path="a.txt")), say("seen"), first_user="child looks", name="child"),
            conversation(
                say(job),
                say(use("Write", file_path="n", content="x")),
                say("done", gate="end"),
                first_user="go",
                name="root",
            ),
        )
        info = await shop.spawn(isolation="worktree")
        await shop.model.wait_for(1, conversation="child")
        reviews: list[Any] = []

        async def review() -> None:
            reviews.append(await shop.runtime.review(info.id))

        async with anyio.create_task_group() as group:
            with anyio.fail_after(SECONDS):
                while (await shop.runtime.info(info.id)).worktree is None:
                    await anyio.sleep(0.005)
            group.start_soon(review)
            await git.asked.wait()
            await anyio.wait_all_tasks_blocked()
            assert reviews == []
            git.go.set()
        assert [file.status for file in reviews[0].files if file.path != "n"] == []
        shop.model.gate("end").set()
        done = await shop.ended(info)
        assert (done.status, done.result) == (TaskStatus.COMPLETED, "done")


@pytest.mark.spec("WT-1")
async def test_an_agent_for_a_folder_of_the_worktree_is_launched_when_that_is_there(tmp_path: Path, repo: Repo) -> None:
    repo.commit({"sub/b.txt": "b\n"})
    async with opened(tmp_path, repo) as (shop, git):
        job = use("Agent", description="child", prompt="child looks", cwd="sub", run_in_background=False)
        shop.script(
            conversation(say(use("Bash", command="pwd")), say("seen"), first_user="child looks", name="child"),
            conversation(say(job), say("done"), first_user="go", name="root"),
        )
        info = await shop.spawn(isolation="worktree")
        await shop.event(info, ToolOutput)
        git.go.set()
        done = await shop.ended(info)
        assert (done.status, shop.results(1, "root")[0][1]) == (TaskStatus.COMPLETED, False)
        assert shop.results(1, "child")[0][2].strip().endswith("/sub")


@pytest.mark.spec("WT-4", "TR-4")
async def test_what_an_earlier_process_did_not_finish_is_finished(
    tmp_path: Path, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = GitCommand()
    made = await register(git, await find_repository(git, repo.path), AGENT, tmp_path / "wt")
    made.claim.close()
    worktree = made.worktree
    monkeypatch.setattr(worktrees, "_LOCKED_SECONDS", 0.3)
    (worktree.git_dir / "index.lock").touch()  # of a git that was killed
    (worktree.path / "mine.txt").write_text("somebody's")
    assert is_unfinished(worktree)
    async with anyio.create_task_group() as group:
        checkouts = Checkouts(git, group)
        checkouts.go_on(worktree)
        checkouts.go_on(worktree)
        await checkouts.ready(worktree.path)
        assert not await checkouts.take_back(worktree.path)
    assert (worktree.path / "a.txt").read_bytes() == (repo.path / "a.txt").read_bytes()
    assert (worktree.path / "mine.txt").read_text() == "somebody's"
    assert not is_unfinished(worktree)
    (worktree.path / "a.txt").write_text("the agent's")
    async with anyio.create_task_group() as group:
        checkouts = Checkouts(git, group)
        checkouts.go_on(worktree)
        await checkouts.ready(worktree.path)
    assert (worktree.path / "a.txt").read_text() == "the agent's"


@pytest.mark.spec("WT-2")
async def test_a_session_in_a_folder_of_the_checkout_works_in_the_same_folder_of_the_worktree(
    tmp_path: Path, repo: Repo
) -> None:
    repo.commit({"sub/b.txt": "b\n"})
    (repo.path / "new").mkdir()
    for name in ("sub", "new"):
        async with open_shop(tmp_path / name, folder=repo.path / name) as shop:
            shop.says(say(use("Bash", command="pwd")), say("done"))
            await shop.run(isolation="worktree")
            where = shop.results(1)[0][2].strip()
            assert where.endswith("/sub") is (name == "sub"), "a folder that is in no commit is not there"

"""Isolation that hooks make and remove in place of git (WT-5, WT-3), with a plain copy and with git's own worktrees."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent_core.errors import AgentError, NotReviewable
from agent_core.events import AgentInfo
from agent_core.task import TaskStatus
from lsp_server.demo.script import say, use
from tests.git_helpers import Repo, clean_git, repo
from tests.unit.agent_core.hooks.hooking import command, listens, on, told, write
from tests.unit.agent_core.workshop import Shop, open_shop

__all__ = ["clean_git", "repo"]  # fixtures

pytestmark = pytest.mark.anyio

WRITE = use("Write", file_path="new.txt", content="x")
COPY = 'cp -r "$CLAUDE_PROJECT_DIR" ../copy && echo copied... && cd ../copy && pwd -P && echo'
GIT = "git worktree add -q -b hooked ../hooked >&2 && cd ../hooked && pwd -P"


@pytest.fixture
async def plain(tmp_path: Path) -> AsyncIterator[Shop]:
    """A trusted folder without any git."""
    async with open_shop(tmp_path, trusted=True) as shop:
        (shop.folder / "sub").mkdir()
        (shop.folder / "a.txt").write_text("mine")
        yield shop


def makes(shop: Shop, text: str, **more: Any) -> None:
    write(shop, WorktreeCreate=[on("", command(text))], WorktreeRemove=[on("", listens("remove"))], **more)


@pytest.mark.spec("WT-5", "WT-3", "HK-1", "HK-3")
async def test_a_hook_makes_the_folder_where_there_is_no_git(plain: Shop) -> None:
    makes(plain, f"cat > told; {COPY}")
    escape = use("Write", file_path=str(plain.folder / "a.txt"), content="y")
    plain.says(say(WRITE, escape, use("Bash", command="pwd")), say("done"))
    info = await plain.run(isolation="worktree", permission_mode=None)
    copy = (plain.folder / "../copy").resolve()
    assert info.worktree is not None
    assert (info.status, info.worktree.path, info.worktree.branch) == (TaskStatus.COMPLETED, copy, "")
    assert ((copy / "new.txt").read_text(), (plain.folder / "a.txt").read_text()) == ("x", "mine")
    results = plain.results(1)
    assert [failed for _, failed, _ in results] == [False, True, False]
    assert str(copy) in results[1][2] and results[2][2].strip() == str(copy)
    with pytest.raises(NotReviewable, match="made by a hook and is no git worktree"):
        await plain.runtime.review(info.id)
    assert told(plain, "remove") == []
    assert await plain.runtime.discard(info.id, None) == ((), "")
    assert [each["worktree_path"] for each in told(plain, "remove")] == [str(copy)]
    assert (copy / "new.txt").exists(), "only the hook removes it"


@pytest.mark.spec("WT-5", "WT-3")
async def test_a_git_worktree_of_a_hook_is_reviewed_like_ours_and_always_kept(tmp_path: Path, repo: Repo) -> None:
    async with open_shop(tmp_path, folder=repo.path, trusted=True) as shop:
        makes(shop, GIT)
        shop.says(say(WRITE), say("done"))
        info = await shop.run(isolation="worktree")
        hooked = (repo.path / "../hooked").resolve()
        assert info.worktree is not None
        assert (info.worktree.path, info.worktree.branch) == (hooked, "hooked")
        assert info.worktree.base_commit == repo.git("rev-parse", "HEAD")
        review = await shop.runtime.review(info.id)
        assert [file.path for file in review.files] == ["new.txt"]
        discarded, ref = await shop.runtime.discard(info.id, None)
        assert ([file.path for file in discarded], repo.git("cat-file", "blob", f"{ref}:new.txt")) == (["new.txt"], "x")
        assert len(told(shop, "remove")) == 1
        shop.says(say("nothing to do"), offset=2)
        again = await shop.send(info, "more")
        assert (again.status, again.worktree) == (TaskStatus.COMPLETED, info.worktree), "unchanged, kept all the same"
        assert hooked.is_dir()


@pytest.mark.spec("WT-5", "TR-4")
async def test_an_agent_of_an_earlier_process_goes_on_in_its_folder(tmp_path: Path) -> None:
    async with open_shop(tmp_path, trusted=True) as shop:
        makes(shop, COPY)
        shop.says(say(WRITE), say("done"))
        info = await shop.run(isolation="worktree")
    async with open_shop(tmp_path, trusted=True) as shop:
        shop.says(say(use("Bash", command="pwd")), say("still here"), offset=2, name="later")
        again = await shop.send(info, "more")
        assert (again.error, again.result, again.worktree) == (None, "still here", info.worktree)
        assert shop.results(1)[0][2].strip() == str(info.worktree.path if info.worktree else None)
    os.rename(tmp_path / "copy", tmp_path / "gone")
    async with open_shop(tmp_path, trusted=True) as shop:
        with pytest.raises(AgentError, match="that a hook made for this agent is gone"):
            await shop.runtime.send(info.id, "more")


@pytest.mark.spec("WT-5", "HK-4")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("echo full >&2; echo /tmp; exit 1", "it ended with exit code 1: full"),
        ("exit 2", "it ended with exit code 2"),
        ("echo", "it printed no path"),
        ("echo copy", "must be an absolute path"),
        ("mkdir ../x; echo $PWD/../x", "must be an absolute path without . and .."),
        ("echo /nonexistent/x", "which is no folder"),
        ("mkdir ../real; ln -s real ../link; cd ..; echo $(pwd -P)/link", "which leads over a link"),
        ("pwd -P", "which is, holds or is inside"),
        ("cd ..; pwd -P", "which is, holds or is inside"),
        ("mkdir in; cd in; pwd -P", "which is, holds or is inside"),
    ],
)
async def test_c7_a_hook_that_fails_fails_the_agent_and_nothing_runs_in_place(plain: Shop, text: str, why: str) -> None:
    makes(plain, text)
    plain.says(say(WRITE), say("done"))
    info = await plain.run(isolation="worktree")
    assert info.status is TaskStatus.FAILED
    assert why in (info.error or "")
    assert plain.model.requests() == []
    assert not (plain.folder / "new.txt").exists()


@pytest.mark.spec("WT-5")
async def test_two_agents_never_get_one_folder(plain: Shop) -> None:
    makes(plain, "mkdir -p ../same; cd ../same; pwd -P")
    plain.says(say("done"))
    first, second = [await plain.run(isolation="worktree") for _ in range(2)]
    assert (first.status, second.status) == (TaskStatus.COMPLETED, TaskStatus.FAILED)
    assert "where another agent works" in (second.error or "")


@pytest.mark.spec("WT-5")
async def test_an_untrusted_folder_makes_no_folders(tmp_path: Path, repo: Repo) -> None:
    async with open_shop(tmp_path, folder=repo.path, trusted=False) as shop:
        makes(shop, "touch ran; pwd")
        shop.says(say(WRITE), say("done"))
        info: AgentInfo = await shop.run(isolation="worktree")
        assert info.worktree is not None and not info.worktree.by_hook
        assert not (repo.path / "ran").exists()

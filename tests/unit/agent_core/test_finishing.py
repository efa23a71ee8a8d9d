"""The end of a review in git: a branch, one commit, or a merge; conflicts first, and nothing of the user's is lost."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from attrs import define

from agent_core.applying import Selection
from agent_core.errors import AgentError, InvalidParams, NotAllowed, NotReviewable, ReviewConflict
from agent_core.events import AgentInfo
from agent_core.finishing import FinishConflict, Finished
from agent_core.permissions.types import PermissionMode
from lsp_server.demo.script import say, use
from tests.git_helpers import Repo, clean_git, repo
from tests.unit.agent_core.workshop import Shop, open_shop

__all__ = ["clean_git", "repo"]
pytestmark = [pytest.mark.anyio, pytest.mark.spec("WT-3", "WT-4", "ED-3")]

LINES = "".join(f"line {number}\n" for number in range(1, 31))
OURS = "you and the agent changed the same lines"


@define
class Bench:
    """An agent that has changed lines 5 and 25 of long.txt, made new.txt and committed the first of it."""

    shop: Shop
    repo: Repo
    agent: AgentInfo

    @property
    def own(self) -> Repo:
        assert self.agent.worktree is not None
        return Repo(self.agent.worktree.path)

    async def finish(self, how: Any, message: str | None = None, branch: str | None = None) -> Finished:
        return await self.shop.runtime.finish(self.agent.id, how, message, branch)

    def show(self, name: str) -> str:
        command = ["git", "-C", str(self.repo.path), "show", name]
        return subprocess.run(command, capture_output=True, check=True).stdout.decode()

    def refs(self) -> str:
        return self.repo.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads")


def changed(*numbers: int) -> str:
    lines = (f"line {n} by the agent\n" if n in numbers else f"line {n}\n" for n in range(1, 31))
    return "".join(lines)


@pytest.fixture(params=["head", "snapshot"])
async def bench(tmp_path: Path, repo: Repo, request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    repo.commit({"long.txt": LINES})
    if request.param == "snapshot":
        repo.write({"mine.txt": "not committed\n"})
    settings = {"worktree": {"base": request.param}}
    async with open_shop(tmp_path, folder=repo.path, settings=settings, env={"IS_SANDBOX": "1"}) as shop:
        first = use("Bash", command="sed -i '5s/$/ by the agent/' long.txt && git commit -qam first")
        rest = use("Bash", command="sed -i '25s/$/ by the agent/' long.txt && printf 'new\\n' > new.txt")
        shop.says(say(first), say(rest), say("done"))
        info = await shop.run("Improve it", isolation="worktree", permission_mode=PermissionMode.BYPASS)
        assert info.worktree is not None and info.worktree.base == request.param
        yield Bench(shop, repo, info)


async def test_as_its_branch_with_its_own_history(bench: Bench) -> None:
    status = bench.repo.git("status", "--porcelain")
    done = await bench.finish("branch")
    assert bench.agent.worktree is not None
    assert done == Finished(bench.repo.git("rev-parse", bench.agent.worktree.branch), bench.agent.worktree.branch)
    assert bench.repo.git("log", "--format=%s %an", "-2", str(done.commit)).splitlines() == [
        "Improve it Test",
        "first Test",
    ]
    assert (bench.show(f"{done.commit}:long.txt"), bench.show(f"{done.commit}:new.txt")) == (changed(5, 25), "new\n")
    assert (bench.own.git("status", "--porcelain"), bench.repo.git("status", "--porcelain")) == ("", status)
    assert await bench.finish("branch") == done
    other = await bench.finish("branch", branch="other")
    assert other == Finished(done.commit, "other") and bench.repo.git("rev-parse", "other") == done.commit


async def test_as_one_commit_on_a_branch_that_goes_on(bench: Bench) -> None:
    head = (
        bench.repo.commit({"theirs.txt": "meanwhile\n"})
        if not (bench.repo.path / "mine.txt").exists()
        else (bench.repo.git("rev-parse", "HEAD"))
    )
    done = await bench.finish("commit", message="One\n\nfor all")
    branch = f"{bench.own.path.name}-commit"
    assert done == Finished(bench.repo.git("rev-parse", branch), branch)
    assert bench.repo.git("log", "--format=%P|%ae|%B", "-1", branch) == f"{head}|test@example.com|One\n\nfor all"
    names = bench.repo.git("diff", "--name-only", head, branch).split()
    assert names == ["long.txt", "new.txt"] and bench.show(f"{branch}:long.txt") == changed(5, 25)
    assert bench.repo.git("rev-parse", "HEAD") == head
    with pytest.raises(InvalidParams, match="'main' is checked out; finish as `merge`"):
        await bench.finish("commit", branch="main")


async def test_as_a_merge_into_the_branch_that_is_checked_out(bench: Bench) -> None:
    bench.repo.write({"a.txt": "mine, not committed\n"})
    done = await bench.finish("merge", message="Take it")
    assert done == Finished(bench.repo.git("rev-parse", "HEAD"), "main")
    assert (
        bench.repo.git("log", "--format=%s", "-1") == "Take it"
        and len(bench.repo.git("log", "--format=%P", "-1").split()) == 2
    )
    assert (bench.repo.path / "long.txt").read_text() == changed(5, 25)
    assert (bench.repo.path / "a.txt").read_text() == "mine, not committed\n"
    mine = ["?? mine.txt"] if (bench.repo.path / "mine.txt").exists() else []
    assert bench.repo.git("status", "--porcelain").splitlines() == ["M a.txt", *mine]
    assert {file.path: file.open_hunks for file in (await bench.shop.runtime.review(bench.agent.id)).files} == {
        "long.txt": frozenset(),
        "new.txt": frozenset(),
    }


async def test_what_was_rejected_is_left_out_however_it_ends(bench: Bench) -> None:
    review = await bench.shop.runtime.review(bench.agent.id)
    [long] = [file for file in review.files if file.path == "long.txt"]
    selection = [Selection("long.txt", (long.hunks[0].id,)), Selection("new.txt")]
    await bench.shop.runtime.discard(bench.agent.id, selection)
    for how in ("commit", "branch", "merge"):
        done = await bench.finish(how)
        assert bench.show(f"{done.commit}:long.txt") == changed(25), how
        assert "new.txt" not in bench.repo.git("ls-tree", "--name-only", str(done.commit)), how
    assert (bench.own.path / "long.txt").read_text() == changed(5, 25)  # what the agent wrote is still there


async def test_conflicts_are_told_and_nothing_is_made(bench: Bench) -> None:
    bench.repo.commit({"long.txt": LINES.replace("line 5\n", "line five\n")})
    refs = bench.refs()
    for how in ("commit", "merge"):
        assert await bench.finish(how) == Finished(conflicts=(FinishConflict("long.txt", OURS),))
    assert (bench.refs(), (bench.repo.path / ".git/MERGE_HEAD").exists()) == (refs, False)
    assert (bench.repo.path / "long.txt").read_text() == LINES.replace("line 5\n", "line five\n")


async def test_a_merge_never_overwrites_what_is_not_committed(bench: Bench) -> None:
    mine = LINES.replace("line 15\n", "line fifteen\n")
    bench.repo.write({"long.txt": mine, "new.txt": "mine, too\n"})
    refs = bench.refs()
    with pytest.raises(ReviewConflict, match=r"nothing was changed[\s\S]*long\.txt"):
        await bench.finish("merge")
    assert (bench.repo.path / "long.txt").read_text() == mine and (
        bench.repo.path / "new.txt"
    ).read_text() == "mine, too\n"
    assert (bench.refs(), (bench.repo.path / ".git/MERGE_HEAD").exists()) == (refs, False)


@pytest.mark.parametrize(
    ("how", "branch", "error", "text"),
    [
        ("branch", "main", InvalidParams, "there is a branch 'main' already"),
        ("branch", "-x", InvalidParams, "'-x' cannot be the name of a branch"),
        ("commit", "a..b", InvalidParams, "'a..b' cannot be the name of a branch"),
        ("commit", "@{-1}", InvalidParams, "cannot be the name of a branch"),
        ("merge", "x", InvalidParams, "leave branch out"),
    ],
)
async def test_names_that_cannot_be_used_are_refused(
    bench: Bench, how: str, branch: str, error: type[AgentError], text: str
) -> None:
    refs = bench.refs()
    with pytest.raises(error) as caught:
        await bench.finish(how, branch=branch)
    assert text in str(caught.value) and bench.refs() == refs


async def test_where_no_merge_can_be_had_it_says_why(bench: Bench) -> None:
    bench.repo.git("checkout", "-q", "--detach")
    with pytest.raises(NotAllowed, match=r"HEAD of .* is detached"):
        await bench.finish("merge")
    bench.repo.git("checkout", "-q", "main")
    await bench.shop.runtime.discard(bench.agent.id, None)
    with pytest.raises(NotReviewable, match="nothing to finish"):
        await bench.finish("commit")
    bench.shop.says(say("more", gate="hold"))
    await bench.shop.runtime.send(bench.agent.id, "go on")
    with pytest.raises(NotAllowed, match="is at work; stop it"):
        await bench.finish("branch")


async def test_kinds_of_files_and_rejected_ones_of_each_kind(tmp_path: Path, repo: Repo) -> None:
    """Links, executable bits, renames, deletions, line ends by attributes: taken or left out whole."""
    repo.commit({".gitattributes": "*.win text eol=crlf\n", "w.win": "one\ntwo\n", "gone.txt": "g\n", "run.sh": "r\n"})
    repo.commit({"old.txt": LINES})
    work = (
        "printf 'one\\r\\n2\\r\\n' > w.win; rm gone.txt; chmod +x run.sh; git mv old.txt moved.txt; ln -s a.txt link; "
        "printf '\\0\\1' > binary"
    )
    async with open_shop(tmp_path, folder=repo.path) as shop:
        shop.says(say(use("Bash", command=work)), say("done"))
        info = await shop.run("go", isolation="worktree", permission_mode=PermissionMode.BYPASS)
        await shop.runtime.finish(info.id, "commit", None, "whole")
        diff = repo.git("diff", "--raw", "--abbrev=1", "-M", "HEAD", "whole").splitlines()
        assert {line.split("\t", 1)[1]: [*line.split()[:2], line.split("\t")[0].split()[-1]] for line in diff} == {
            "binary": [":000000", "100644", "A"],
            "gone.txt": [":100644", "000000", "D"],
            "link": [":000000", "120000", "A"],
            "old.txt\tmoved.txt": [":100644", "100644", "R100"],
            "run.sh": [":100644", "100755", "M"],
            "w.win": [":100644", "100644", "M"],
        }
        assert repo.git("cat-file", "blob", "whole:w.win") == "one\n2"
        review = await shop.runtime.review(info.id)
        for number, file in enumerate(review.files):
            await shop.runtime.discard(info.id, [Selection(file.path)])
            try:
                await shop.runtime.finish(info.id, "commit", None, f"without-{number}")
            except NotReviewable:
                assert file is review.files[-1]
                break
            left = repo.git("diff", "--name-only", "--no-renames", "HEAD", f"without-{number}")
            assert not {file.path, file.old_path} & set(left.splitlines()), file.path
        else:
            raise AssertionError("with everything rejected there was something to finish")


async def test_without_a_name_of_the_user_the_commits_are_ours(
    tmp_path: Path, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"):
        monkeypatch.delenv(name, raising=False)
    repo.git("config", "user.useConfigOnly", "true")
    async with open_shop(tmp_path, folder=repo.path) as shop:
        shop.says(say(use("Write", file_path="x.txt", content="x\n")), say("done"))
        info = await shop.run("go", isolation="worktree")
        for how in ("commit", "merge"):
            done = await shop.runtime.finish(info.id, how, None, None)  # type: ignore[arg-type]
            assert repo.git("log", "-1", "--format=%an %cn", str(done.commit)) == "agent-ls agent-ls"

"""What a worktree gets besides the files of git, over real git: there for the agent, and never taken for its work."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_core.events import AgentInfo
from agent_core.permissions.types import PermissionMode
from lsp_server.demo.script import say, use
from tests.git_helpers import Repo, clean_git, init, repo
from tests.unit.agent_core.workshop import Shop, open_shop

__all__ = ["clean_git", "repo"]
pytestmark = [pytest.mark.anyio, pytest.mark.spec("WT-1", "WT-3", "WT-4")]


@asynccontextmanager
async def opened(place: Path, repo: Repo, trusted: bool = True, **worktree: Any) -> AsyncIterator[Shop]:
    settings = {"worktree": worktree}
    async with open_shop(place, folder=repo.path, settings=settings, trusted=trusted) as shop:
        yield shop


async def works(shop: Shop, command: str) -> tuple[AgentInfo, str]:
    """An isolated agent that runs one command; what that says."""
    shop.says(say(use("Bash", command=command)), say("done"))
    info = await shop.run("go", isolation="worktree", permission_mode=PermissionMode.BYPASS)
    shop.check(info)
    return info, shop.results(1)[0][2]


def gone(repo: Repo) -> bool:
    """Nothing is left of any worktree."""
    return len(repo.git("worktree", "list").splitlines()) == 1 and "agent-" not in repo.git("branch")


def furnished(repo: Repo) -> None:
    repo.commit({".gitignore": "node_modules/\n.env\n*.local\ncache/\n", ".worktreeinclude": ".env\n**/*.local\n"})
    repo.write({"node_modules/tool/run.js": "tool\n", ".env": "KEY=1\n", "deep/er/x.local": "x\n", "not ignored": "n"})
    repo.write({"cache/deep/y.local": "y\n", "cache/z": "z", ".venv/bin/python": "python\n"})


async def test_c6_linked_folders_and_included_files_are_there_and_are_nobodys_work(tmp_path: Path, repo: Repo) -> None:
    furnished(repo)
    async with opened(tmp_path, repo, symlinkDirectories=["node_modules", ".venv"]) as shop:
        command = "cat node_modules/tool/run.js .venv/bin/python .env deep/er/x.local cache/deep/y.local; git status -s"
        info, said = await works(shop, f"{command}; ls -d cache/z 'not ignored' 2>&1 | wc -l")
        assert said.splitlines() == ["tool", "python", "KEY=1", "x", "y", "2"]  # git sees nothing new
        assert (info.worktree, gone(repo)) == (None, True)
        assert (repo.path / "node_modules/tool/run.js").read_text() == "tool\n"
        assert (repo.path / ".venv/bin/python").read_text() == "python\n"


async def test_c17_what_we_put_there_is_in_no_review_and_no_commit(tmp_path: Path, repo: Repo) -> None:
    furnished(repo)
    async with opened(tmp_path, repo, symlinkDirectories=["node_modules", ".venv"]) as shop:
        info, _ = await works(shop, "echo new > new.txt; git add -A; git commit -qm work; echo more > more.txt")
        assert info.worktree is not None
        own = Repo(info.worktree.path)
        assert own.git("show", "--name-only", "--format=").split() == ["new.txt"]
        review = await shop.runtime.review(info.id)
        assert sorted(file.path for file in review.files) == ["more.txt", "new.txt"]
        done = await shop.runtime.finish(info.id, "commit", None, None)
        assert sorted(repo.git("diff", "--name-only", "HEAD", str(done.commit)).split()) == ["more.txt", "new.txt"]


@pytest.mark.parametrize(
    "change", ["echo KEY=2 > .env", "rm node_modules && mkdir node_modules && echo > node_modules/x"]
)
async def test_what_was_changed_of_it_is_kept(tmp_path: Path, repo: Repo, change: str) -> None:
    furnished(repo)
    async with opened(tmp_path, repo, symlinkDirectories=["node_modules"]) as shop:
        info, _ = await works(shop, change)
        assert info.worktree is not None and info.worktree.path.exists()
        assert (repo.path / ".env").read_text() == "KEY=1\n"


async def test_c19_a_bad_line_is_passed_over_and_named(tmp_path: Path, repo: Repo) -> None:
    furnished(repo)
    repo.commit({".worktreeinclude": "# all\na[\n\n.env\n!\n"})
    async with opened(tmp_path, repo, symlinkDirectories=["../out", "absent", "src"]) as shop:
        info, said = await works(shop, "cat .env; echo new > new.txt")
        assert said == "KEY=1\n" and info.worktree is not None
        assert info.worktree.note == "; ".join(
            [
                ".worktreeinclude:2: 'a[' is no pattern; it was passed over",
                ".worktreeinclude:5: '!' is no pattern; it was passed over",
                "worktree.symlinkDirectories: ../out must be a folder inside the repository",
                "worktree.symlinkDirectories: absent is no folder of the checkout",
                "worktree.symlinkDirectories: src is in the worktree already, since git knows it",
            ]
        )


async def test_a_folder_that_is_not_trusted_gets_files_of_git_only(tmp_path: Path, repo: Repo) -> None:
    furnished(repo)
    settings = {"worktree": {"symlinkDirectories": ["node_modules"]}}
    repo.write({".claude/settings.json": json.dumps(settings)})
    async with opened(tmp_path, repo, trusted=False) as shop:
        _, said = await works(shop, "ls -d .env node_modules; true")
        assert said.count("No such file") == 2


async def test_the_users_own_ignored_names_go_on_to_count(
    tmp_path: Path, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnished(repo)
    repo.git("config", "core.excludesFile", str(tmp_path / "mine"))
    (tmp_path / "mine").write_text("*.swp")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "alias.hello")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "!echo hi")
    async with opened(tmp_path, repo) as shop:
        _, said = await works(shop, "touch a.swp; git status -s; git hello")
        assert said == "hi\n"


async def test_with_sparse_paths_only_those_are_there_and_nothing_counts_as_deleted(tmp_path: Path, repo: Repo) -> None:
    repo.commit({"a/b/in": "1", "a/b/deep/in": "1", "a/out": "1", "other/out": "1", "a/c/out": "1"})
    config = (repo.path / ".git/config").read_bytes()
    async with opened(tmp_path, repo, sparsePaths=["a/b", "/src/", "../x"]) as shop:
        info, said = await works(shop, "git ls-files -t | sort; git status -s; echo 2 > a/b/in; echo n > other.txt")
        present = [line[2:] for line in said.splitlines() if line.startswith("H")]
        assert present == ["a.txt", "a/b/deep/in", "a/b/in", "a/out", "src/b.py"]
        assert [line[2:] for line in said.splitlines() if line[0] not in "H"] == ["a/c/out", "other/out"]
        review = await shop.runtime.review(info.id)
        assert [(file.path, file.status) for file in review.files] == [("a/b/in", "modified"), ("other.txt", "added")]
        done = await shop.runtime.finish(info.id, "branch", None, None)
        assert repo.git("diff", "--name-status", "HEAD", str(done.commit)).split() == ["M", "a/b/in", "A", "other.txt"]
        assert (repo.path / ".git/config").read_bytes() == config


@pytest.fixture
def with_submodule(tmp_path: Path, repo: Repo) -> Repo:
    inner = init(tmp_path / "inner", {"x": "inner\n"})
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.path), "sub")
    repo.commit()
    return repo


async def test_c13_empty_submodules_are_told_of(tmp_path: Path, with_submodule: Repo) -> None:
    async with opened(tmp_path, with_submodule) as shop:
        _, said = await works(shop, "ls sub; echo new > new.txt")
        assert said == "(no output)"
        assert "its submodules are empty: set worktree.submodules, or run" in shop.told(0)[0]
        assert gone(with_submodule) is False


async def test_c13_submodules_are_there_where_the_setting_wants_them(
    tmp_path: Path, with_submodule: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.file.allow")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "always")
    async with opened(tmp_path, with_submodule, submodules=True) as shop:
        info, said = await works(shop, "cat sub/x; echo new > new.txt")
        assert said == "inner\n" and info.worktree is not None and info.worktree.note is None
        assert [file.path for file in (await shop.runtime.review(info.id)).files] == ["new.txt"]


async def test_c13_submodules_that_cannot_be_had_are_told_of(tmp_path: Path, with_submodule: Repo) -> None:
    subprocess.run(["rm", "-rf", str(tmp_path / "inner")], check=True)
    async with opened(tmp_path, with_submodule, submodules=True) as shop:
        info, _ = await works(shop, "echo new > new.txt")
        assert info.worktree is not None and info.worktree.note is not None
        assert info.worktree.note.startswith("the submodules could not be had: `git submodule --quiet update")

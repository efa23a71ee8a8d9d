"""A zoo of repositories and files: in each the whole cycle, and every byte of every side is compared (WT-1 to WT-4).

Isolate, change, review, apply one change, apply the rest, take it all back, reject it all, open it again. What should
come of it is found out without the product: by looking at the folders, and by a plain checkout of the base.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lsp_server.demo.script import say, use
from tests.e2e.desk import Desk
from tests.e2e.wire import ResponseError
from tests.e2e.zoo import ANIMALS, LINES, Animal
from tests.git_helpers import Repo, init

pytestmark = [pytest.mark.anyio, pytest.mark.spec("WT-1", "WT-2", "WT-3", "WT-4", "ED-3")]

SOAK = os.environ.get("AGENT_LS_SOAK") == "1"
CHOSEN = ANIMALS if SOAK else ANIMALS[::3]
Found = tuple[str, bytes]
"""Kind (file, executable, link) and content or target."""


def bash(script: str, cwd: Path) -> None:
    done = subprocess.run(
        ["bash", "-ec", script], cwd=cwd, env={**os.environ, "LINES": LINES}, capture_output=True, check=False
    )
    assert done.returncode == 0, (script, done.stdout, done.stderr)


def built(animal: Animal, place: Path) -> Repo:
    place.mkdir()
    if animal.make:
        bash(animal.make, place)
    else:
        init(place / "project", animal.files)
    repo = Repo(place / animal.checkout)
    if animal.setup:
        bash(animal.setup, repo.path)
    return repo


def files_of(top: Path) -> dict[bytes, Found]:
    """Everything but what is git's own, and empty folders."""
    found: dict[bytes, Found] = {}
    for folder, folders, names in os.walk(os.fsencode(top)):
        folders[:] = [name for name in folders if name != b".git"]
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in [*names, *links]:
            path = os.path.join(folder, name)
            relative = os.path.relpath(path, os.fsencode(top))
            if relative == b".git" or name == b".git":
                continue
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                found[relative] = ("link", os.readlink(path))
            else:
                found[relative] = ("executable" if mode & 0o100 else "file", Path(os.fsdecode(path)).read_bytes())
    return found


def own_state(repo: Repo) -> dict[str, Any]:
    """What is the user's in git: the index as git reads it, refs, stash, configuration, whatever is under way."""
    refs = repo.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    git_dir = Path(repo.git("rev-parse", "--absolute-git-dir"))
    common = Path(repo.git("rev-parse", "--path-format=absolute", "--git-common-dir"))
    return {
        "index": repo.git("ls-files", "--stage", "-v"),
        "refs": [ref for ref in refs if not ref.startswith(("refs/agent-ls/", "refs/heads/agent-"))],
        "head": (git_dir / "HEAD").read_text(),
        "config": (common / "config").read_text(),
        "under way": sorted(name for name in os.listdir(git_dir) if name.startswith(("MERGE", "rebase", "REBASE"))),
    }


def base_of(repo: Repo, commit: str, place: Path) -> dict[bytes, Found]:
    """A plain checkout of the base, by git alone."""
    hooks = ("-c", "core.hooksPath=/dev/null")
    repo.git(*hooks, "worktree", "add", "-q", "--detach", str(place), commit)
    try:
        return files_of(place)
    finally:
        repo.git("worktree", "remove", "--force", str(place))


def shown(path: bytes) -> str:
    """As the wire names it."""
    return path.decode("utf-8", "replace")


def changed(before: Mapping[bytes, Found], after: Mapping[bytes, Found]) -> set[bytes]:
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


@pytest.mark.parametrize("animal", CHOSEN, ids=lambda animal: animal.name)
async def test_the_whole_cycle(desk: Desk, tmp_path: Path, animal: Animal, clean_git: None):
    repo = built(animal, tmp_path / "place")
    if animal.refused:
        await refused(desk, repo, animal)
        return
    await desk.move_to(repo)
    desk.client.on("agent/permission", lambda params: {"optionId": "allowOnce"})
    users, own = files_of(repo.path), own_state(repo)
    desk.says(say(use("Bash", command=animal.work)), say("done"))
    info = await desk.run(animal.name, isolation="worktree")
    assert info["status"] == "completed" and "worktree" in info, (info, desk.told(1))
    assert (files_of(repo.path), own_state(repo)) == (users, own)

    agents = files_of(Path(info["worktree"]["path"]))
    base = base_of(repo, info["worktree"]["baseCommit"], tmp_path / "base")
    expected = {path for path in changed(base, agents) if shown(path) not in animal.unseen}
    review = await desk.review(info["id"])
    listed = {name for file in review["files"] for name in (file["path"], file.get("oldPath")) if name}
    assert listed == {shown(path) for path in expected}

    refs = [await apply_one(desk, info["id"], review)]
    applied = await desk.apply(info["id"])
    refs.append(applied.get("recoverRef"))
    assert {each["path"] for each in applied["conflicts"]} == animal.conflicts
    after = files_of(repo.path)
    check_applied(animal, base, users, agents, after, expected)
    assert own_state(repo) == own

    for ref in filter(None, reversed(refs)):
        restored = await desk.client.request("agent/restore", {"agentId": info["id"], "recoverRef": ref})
        assert restored["conflicts"] == []
    assert (files_of(repo.path), own_state(repo)) == (users, own)
    await reject_and_open_again(desk, info["id"])
    assert (files_of(repo.path), own_state(repo)) == (users, own)
    assert files_of(Path(info["worktree"]["path"])) == agents
    assert subprocess.run(["git", "-C", str(repo.path), "fsck", "--no-dangling"], capture_output=True).returncode == 0


async def refused(desk: Desk, repo: Repo, animal: Animal) -> None:
    await desk.move_to(repo)
    before = files_of(repo.path)
    with pytest.raises(ResponseError, match=animal.refused):
        await desk.spawn(isolation="worktree")
    assert files_of(repo.path) == before


async def apply_one(desk: Desk, agent: str, review: Any) -> str | None:
    """One hunk of the first file that has several, or else the first file."""
    several = [file for file in review["files"] if len(file["hunks"]) > 1]
    file = (several or review["files"])[0]
    hunk = file["hunks"][0]
    done = await desk.apply(agent, {"path": file["path"], "hunks": [hunk["id"]]})
    assert [each["path"] for each in (*done["applied"], *done["conflicts"])] == [file["path"]]
    return done.get("recoverRef")


def check_applied(
    animal: Animal,
    base: Mapping[bytes, Found],
    users: Mapping[bytes, Found],
    agents: Mapping[bytes, Found],
    after: Mapping[bytes, Found],
    expected: set[bytes],
) -> None:
    """The user's files are the agent's where the user had the base, as they were where nothing was changed."""
    for path in users.keys() | agents.keys() | after.keys():
        name = shown(path)
        if name in animal.outcomes:
            assert after[path][1] == animal.outcomes[name], path
        elif path not in expected or name in animal.conflicts:
            assert after.get(path) == users.get(path), path
        elif users.get(path) == base.get(path):
            assert after.get(path) == agents.get(path), path
        else:  # only its executable bit differs
            assert after[path][1] == agents[path][1], path


async def reject_and_open_again(desk: Desk, agent: str) -> None:
    before = await desk.review(agent)
    discarded = await desk.client.request("agent/discard", {"agentId": agent})
    rejected = await desk.review(agent)
    assert {hunk["state"] for file in rejected["files"] for hunk in file["hunks"]} <= {"rejected", "accepted"}
    restored = await desk.client.request("agent/restore", {"agentId": agent, "recoverRef": discarded["recoverRef"]})
    assert (restored["conflicts"], (await desk.review(agent))["files"]) == ([], before["files"])


def test_there_are_many_and_no_two_are_the_same() -> None:
    assert len(ANIMALS) >= 40 and len(CHOSEN) >= 10
    assert len({animal.name for animal in ANIMALS}) == len(ANIMALS)
    assert len({(animal.make, animal.setup, animal.work, tuple(animal.files)) for animal in ANIMALS}) == len(ANIMALS)
    assert shutil.which("iconv")

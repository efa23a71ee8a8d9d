"""The main job on a repository with the shape of this one: isolate, change, ask, review, apply a part and the rest."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lsp_server.demo.script import say, use
from tests.e2e.desk import Desk
from tests.e2e.wire import ResponseError
from tests.git_helpers import Repo, init

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
CRLF = "".join(f"line {n}\r\n" for n in range(1, 21)).encode()
NEW = "# New\n\nNo newline at the end"
README = ("## Try it\n", "## Try it now\n")


@pytest.fixture
def project(tmp_path: Path, clean_git: None) -> Repo:
    """The tracked files of this project, one with CRLF ends beside them, and work of the user that is not committed."""
    repo = init(tmp_path / "project")
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=True).stdout
    names = [name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]
    repo.commit({**{name: (ROOT / name).read_bytes() for name in names}, "windows.txt": CRLF}, "all")
    repo.write({"Makefile": b"all:\n\ttrue\n", "scratch.txt": "mine\n", "pyproject.toml": b"[project]\n"})
    repo.git("add", "Makefile")
    return repo


def index_of(repo: Repo) -> tuple[str, str, str]:
    return repo.git("ls-files", "--stage"), repo.git("diff", "--cached"), repo.git("rev-parse", "HEAD")


def blob(repo: Repo, name: str) -> bytes:
    command = ["git", "-C", str(repo.path), "cat-file", "blob", name]
    return subprocess.run(command, capture_output=True, check=True).stdout


def contents(repo: Repo) -> dict[str, bytes]:
    paths = [
        path for path in repo.path.rglob("*") if path.is_file() and ".git" not in path.relative_to(repo.path).parts
    ]
    return {str(path.relative_to(repo.path)): path.read_bytes() for path in paths}


@pytest.mark.spec("WT-1", "WT-2", "WT-3", "ED-2", "ED-3")
async def test_four_files_are_changed_in_a_worktree_and_taken_over_one_and_then_the_rest(desk: Desk, project: Repo):
    await desk.move_to(project)
    before, index = contents(project), index_of(project)
    desk.says(
        say("I look first.", use("Read", file_path="README.md"), use("Read", file_path="windows.txt")),
        say(
            use("Edit", file_path="README.md", old_string=README[0], new_string=README[1]),
            use("Edit", file_path="windows.txt", old_string="line 3\n", new_string="line three\nand more\n"),
            use("Edit", file_path="windows.txt", old_string="line 18\n", new_string=""),
            use("Write", file_path="docs/new/page.md", content=NEW),
            use("Bash", command="/bin/rm CHANGELOG.md && git status --short"),
        ),
        say("Changed four files."),
    )
    desk.client.hold("agent/permission")
    agent = await desk.spawn("Work", isolation="worktree")
    held = await desk.client.held("agent/permission", timeout=30)
    place = Path(held.params["detail"]["cwd"])
    assert (held.params["title"], (place / "CHANGELOG.md").exists()) == (
        "Bash /bin/rm CHANGELOG.md && git status --short",
        True,
    )
    held.reply({"optionId": "allowOnce"})
    info = await desk.ended(agent)

    worktree = info["worktree"]
    assert (info["status"], info["result"]) == ("completed", "Changed four files.")
    assert worktree == {
        "path": str(place),
        "branch": f"agent-{agent[:8]}",
        "baseCommit": project.git("rev-parse", "HEAD"),
        "base": "head",
    }
    assert project.git("worktree", "list", "--porcelain").count("\nbranch refs/heads/agent-") == 1
    assert not place.is_relative_to(project.path)
    assert desk.results(2)[-1] == (
        False,
        " D CHANGELOG.md\n M README.md\n M windows.txt\n?? docs/\n",
    )
    assert (contents(project), index_of(project)) == (before, index)

    review = await desk.review(agent)
    files = {file["path"]: file for file in review["files"]}
    assert [(file["path"], file["status"], file["needsConfirmation"]) for file in review["files"]] == [
        ("CHANGELOG.md", "deleted", True),
        ("README.md", "modified", False),
        ("docs/new/page.md", "added", False),
        ("windows.txt", "modified", False),
    ]
    assert [(hunk["oldStart"], hunk["text"]) for hunk in files["windows.txt"]["hunks"]] == [
        (3, "-line 3\r\n+line three\r\n+and more\r\n"),
        (18, "-line 18\r\n"),
    ]
    assert [hunk["text"] for hunk in files["README.md"]["hunks"]] == [f"-{README[0]}+{README[1]}"]
    gone = "".join(f"-{line}" for line in before["CHANGELOG.md"].decode().splitlines(keepends=True))
    assert [(hunk["header"], hunk["text"]) for hunk in files["CHANGELOG.md"]["hunks"]] == [("deletes the file", gone)]
    [page] = files["docs/new/page.md"]["hunks"]
    assert page["text"] == "+# New\n+\n+No newline at the end\n\\ No newline at end of file\n"
    assert (review["base"], review["worktree"]) == (
        {"commit": worktree["baseCommit"], "branch": worktree["branch"]},
        worktree["path"],
    )
    assert review["stats"] == {"files": 4, "insertions": 6, "deletions": 3 + gone.count("\n")}
    assert (contents(project), index_of(project)) == (before, index)
    sides = await both_sides(desk, files)

    one = await desk.apply(agent, {"path": "windows.txt"})
    changed = CRLF.replace(b"line 3\r\n", b"line three\r\nand more\r\n").replace(b"line 18\r\n", b"")
    ids = [hunk["id"] for hunk in files["windows.txt"]["hunks"]]
    assert one == {
        "applied": [{"path": "windows.txt", "hunks": ids}],
        "conflicts": [],
        "remaining": 3,
        "recoverRef": f"refs/agent-ls/recover/{agent}/1",
    }
    assert contents(project) == {**before, "windows.txt": changed}
    assert project.git("cat-file", "-t", one["recoverRef"]) == "commit"
    assert blob(project, f"{one['recoverRef']}:windows.txt") == CRLF

    rest = await desk.apply(agent)
    assert (rest["conflicts"], rest["remaining"], rest["recoverRef"]) == ([], 0, f"refs/agent-ls/recover/{agent}/2")
    assert sorted(file["path"] for file in rest["applied"]) == sorted(files)
    wanted = {
        **before,
        "windows.txt": changed,
        "README.md": before["README.md"].replace(README[0].encode(), README[1].encode()),
        "docs/new/page.md": NEW.encode(),
    }
    del wanted["CHANGELOG.md"]
    assert contents(project) == wanted
    assert index_of(project) == index
    assert project.git("ls-tree", "--name-only", rest["recoverRef"]).splitlines() == ["CHANGELOG.md", "README.md"]
    for path, (base, agents) in sides.items():
        assert agents == wanted.get(path, b"").decode().replace("\r\n", "\n"), path
        assert base == before.get(path, b"").decode().replace("\r\n", "\n"), path
    again = await desk.apply(agent)
    assert (again["conflicts"], again["remaining"], "recoverRef" in again) == ([], 0, False)
    assert contents(project) == wanted


async def both_sides(desk: Desk, files: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """What agent/content gives for each file: the base's text and the agent's."""
    found = {}
    for path, file in files.items():
        uris = file["baseUri"], file["worktreeUri"]
        base, agents = [(await desk.client.request("agent/content", {"uri": uri}))["text"] for uri in uris]
        found[path] = (base, agents)
    return found


@pytest.mark.spec("WT-3")
async def test_c6_an_agent_that_changes_nothing_leaves_nothing_behind(desk: Desk):
    before = desk.repo.state()
    desk.says(say(use("Read", file_path="app.py")), say("all fine"))
    info = await desk.run(isolation="worktree")
    assert (info["status"], info["isolation"], "worktree" in info) == ("completed", "worktree", False)
    assert desk.repo.state() == before


async def test_hunks_of_one_file_are_taken_over_alone_and_what_the_user_does_elsewhere_stays(desk: Desk):
    path = desk.repo.path / "windows.txt"
    desk.repo.commit({"windows.txt": CRLF})
    desk.says(
        say(use("Read", file_path="windows.txt")),
        say(
            use("Edit", file_path="windows.txt", old_string="line 3\n", new_string="line three\n"),
            use("Edit", file_path="windows.txt", old_string="line 18\n", new_string="line eighteen\n"),
        ),
        say("done"),
    )
    agent = (await desk.run(isolation="worktree"))["id"]
    users = CRLF.replace(b"line 1\r\n", b"line 1\r\nmine\r\n")
    path.write_bytes(users)
    [file] = (await desk.review(agent))["files"]
    first, second = file["hunks"]
    assert [(hunk["oldStart"], hunk["state"]) for hunk in (first, second)] == [(4, "open"), (19, "open")]
    result = await desk.apply(agent, {"path": "windows.txt", "hunks": [second["id"]]})
    assert result["applied"] == [{"path": "windows.txt", "hunks": [second["id"]]}]
    assert (result["conflicts"], result["remaining"]) == ([], 1)
    assert path.read_bytes() == users.replace(b"line 18\r\n", b"line eighteen\r\n")
    [file] = (await desk.review(agent))["files"]
    assert [hunk["state"] for hunk in file["hunks"]] == ["open", "accepted"]


async def test_what_overlaps_the_users_work_is_a_conflict_and_writes_nothing(desk: Desk):
    desk.says(
        say(use("Read", file_path="app.py")),
        say(use("Edit", file_path="app.py", old_string="a - b", new_string="a + b")),
        say("done"),
    )
    agent = (await desk.run(isolation="worktree"))["id"]
    path = desk.repo.path / "app.py"
    path.write_text("def add(a, b):\n    return a * b\n")
    [file] = (await desk.review(agent))["files"]
    [hunk] = file["hunks"]
    assert file["conflict"]["hunks"] == [hunk["id"]]
    result = await desk.apply(agent)
    assert result == {
        "applied": [],
        "conflicts": [{"path": "app.py", "hunk": hunk["id"], "reason": file["conflict"]["reason"]}],
        "remaining": 1,
    }
    assert path.read_text() == "def add(a, b):\n    return a * b\n"


async def test_what_is_applied_is_what_was_reviewed_also_when_the_agent_goes_on(desk: Desk):
    desk.says(
        say(use("Read", file_path="app.py")),
        say(use("Edit", file_path="app.py", old_string="a - b", new_string="a + b")),
        say("first"),
        say(use("Edit", file_path="app.py", old_string="a + b", new_string="a ** b")),
        say("second"),
    )
    agent = (await desk.run(isolation="worktree"))["id"]
    await desk.review(agent)
    await desk.client.request("agent/send", {"to": agent, "message": "more"})
    assert (await desk.ended(agent))["result"] == "second"
    result = await desk.apply(agent)
    assert [file["path"] for file in result["applied"]] == ["app.py"]
    assert (desk.repo.path / "app.py").read_text() == "def add(a, b):\n    return a + b\n"


async def test_a_dry_run_changes_nothing(desk: Desk):
    desk.says(say(use("Write", file_path="new.txt", content="new\n")), say("done"))
    agent = (await desk.run(isolation="worktree"))["id"]
    before = contents(desk.repo)
    result = await desk.apply(agent, dryRun=True)
    assert (result["applied"], result["remaining"], "recoverRef" in result) == ([], 1, False)
    assert contents(desk.repo) == before


async def test_c8_c10_the_base_is_the_head_of_the_users_checkout_at_each_spawn(desk: Desk):
    bases = []
    for number in range(2):
        desk.says(say(use("Write", file_path=f"new{number}.txt", content="x")), say("done"))
        info = await desk.run(f"round {number}", isolation="worktree")
        bases.append((info["worktree"]["baseCommit"], desk.repo.git("rev-parse", "HEAD")))
        desk.repo.git("checkout", "-q", "-b", f"feature{number}")
        desk.repo.commit({"more.txt": str(number)})
    assert [base for base, _ in bases] == [head for _, head in bases]
    assert bases[0][0] != bases[1][0]


@pytest.mark.parametrize("chosen", [True, False])
async def test_a_file_whose_name_is_not_utf8_is_reviewed_read_and_applied(desk: Desk, chosen: bool):
    name = os.fsdecode(b"n\xe9w.txt")
    desk.says(say(use("Bash", command="printf 'new\\n' > $'n\\xe9w.txt'")), say("done"))
    desk.repo.write({".claude/settings.json": '{"permissions": {"allow": ["Bash"]}}'})
    agent = await desk.spawn(isolation="worktree")
    await desk.ended(agent)
    review = await desk.client.request("agent/review", {"agentId": agent})
    [file] = review["files"]
    assert (file["path"], file["worktreeUri"]) == ("n\ufffdw.txt", f"agent-worktree:/{agent}/n%E9w.txt")
    json.dumps(review, ensure_ascii=False).encode()
    content = await desk.client.request("agent/content", {"uri": file["worktreeUri"]})
    assert content["text"] == "new\n"
    files = {"files": [{"path": file["path"]}]} if chosen else {}
    result = await desk.client.request("agent/apply", {"agentId": agent, **files})
    assert ([each["path"] for each in result["applied"]], result["conflicts"]) == (["n\ufffdw.txt"], [])
    assert (desk.repo.path / name).read_text() == "new\n"
    ref = {"agentId": agent, "recoverRef": result["recoverRef"]}
    restored = await desk.client.request("agent/restore", {**ref, **files})
    assert (restored["conflicts"], (desk.repo.path / name).exists()) == ([], False)
    discarded = await desk.client.request("agent/discard", {"agentId": agent, **files})
    assert [each["path"] for each in discarded["discarded"]] == ["n\ufffdw.txt"]


async def test_comments_that_cannot_be_sent_leave_the_round_open(desk: Desk):
    desk.says(say(use("Write", file_path="new.txt", content="new\n")), say("done"), say("again"))
    agent = (await desk.run(isolation="worktree", permissionMode="acceptEdits"))["id"]

    async def open_now() -> list[str]:
        review = await desk.client.request("agent/review", {"agentId": agent, "round": "new"})
        return [file["path"] for file in review["files"]]

    assert await open_now() == ["new.txt"]
    settings = {".claude/settings.json": '{"permissions": {"deny": ["Agent(general-purpose)"]}}'}
    desk.repo.write(settings)
    for fault in ({}, {"hunk": "nothing"}, {"line": -1}, {"path": ""}):
        with pytest.raises(ResponseError):
            comment = {"path": "new.txt", "text": "why?", **fault}
            await desk.client.request("agent/comment", {"agentId": agent, "comments": [comment]})
        assert await open_now() == ["new.txt"]
    desk.repo.write(dict.fromkeys(settings, "{}"))
    comments = [{"path": "new.txt", "text": "why?"}]
    await desk.client.request("agent/comment", {"agentId": agent, "comments": comments})
    await desk.ended(agent)
    assert await open_now() == []

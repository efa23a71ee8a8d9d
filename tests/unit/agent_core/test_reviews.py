"""Decisions on a review: discard and restore with a way back, rounds, and what survives a restart."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from attrs import define

from agent_core.applying import AppliedFile, Selection
from agent_core.disk_target import DiskTarget
from agent_core.errors import NotReviewable
from agent_core.repository import GitCommand, find_repository
from agent_core.review import Content, Review
from agent_core.reviews import Reviews, Subject
from agent_core.worktree import create

pytestmark = pytest.mark.anyio
LINES = [f"line {number}\n" for number in range(12)]


def git(cwd: Path, *args: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    return subprocess.run(["git", *identity, *args], cwd=cwd, check=True, capture_output=True, text=True).stdout


@define
class Desk:
    repository: Path
    tree: Path
    subject: Subject
    reviews: Reviews

    def agent_writes(self, name: str, text: str | None) -> None:
        (self.tree / name).unlink() if text is None else (self.tree / name).write_text(text)

    def restarted(self) -> Reviews:
        return Reviews(GitCommand(), DiskTarget())

    async def review(self) -> Review:
        return await self.reviews.review(self.subject, "all")

    def text(self, name: str = "a.txt") -> str:
        return (self.repository / name).read_text()


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    repository = tmp_path / "repo"
    repository.mkdir()
    (repository / "a.txt").write_text("".join(LINES))
    (repository / "b.txt").write_text("b\n")
    git(repository, "init", "-q")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "x")
    runner = GitCommand()
    worktree = await create(runner, await find_repository(runner, repository), "agent1", tmp_path / "trees")
    subject = Subject("agent1", worktree, tmp_path / "state" / "agent1.review.json")
    yield Desk(repository, worktree.path, subject, Reviews(runner, DiskTarget()))


def edited(*changes: tuple[int, str]) -> str:
    lines = list(LINES)
    for number, text in changes:
        lines[number] = text
    return "".join(lines)


def states(review: Review, path: str = "a.txt") -> list[str]:
    return [hunk.state for file in review.files if file.path == path for hunk in file.hunks]


@pytest.mark.spec("ED-3")
async def test_d21_a_rejected_hunk_stays_readable_and_comes_back(desk: Desk) -> None:
    desk.agent_writes("a.txt", edited((1, "one\n"), (9, "nine\n")))
    review = await desk.review()
    first, second = review.files[0].hunks
    discarded, ref = await desk.reviews.discard(desk.subject, [Selection("a.txt", (first.id,))])
    assert discarded == (AppliedFile("a.txt", (first.id,)),)
    assert git(desk.repository, "show", f"{ref}:a.txt") == edited((1, "one\n"), (9, "nine\n"))
    assert states(await desk.review()) == ["rejected", "open"]
    applied = await desk.reviews.apply(desk.subject, None, False)
    assert applied.applied == (AppliedFile("a.txt", (second.id,)),)
    assert (desk.text(), applied.remaining) == (edited((9, "nine\n")), 0)
    restored = await desk.reviews.restore(desk.subject, ref, None)
    assert restored.paths == ("a.txt",)
    assert states(await desk.review()) == ["open", "accepted"]


async def test_a_discard_of_nothing_is_refused_and_makes_no_ref(desk: Desk) -> None:
    desk.agent_writes("a.txt", edited((1, "one\n")))
    await desk.review()
    for selection in ([], [Selection("z.txt", None)], [Selection("a.txt", ())], [Selection("a.txt", ("nothing",))]):
        with pytest.raises(NotReviewable, match="none of these changes is open"):
            await desk.reviews.discard(desk.subject, selection)
    _, ref = await desk.reviews.discard(desk.subject, None)
    with pytest.raises(NotReviewable, match="none of these changes is open"):
        await desk.reviews.discard(desk.subject, None)
    refs = git(desk.repository, "for-each-ref", "--format=%(refname)", "refs/agent-ls/recover")
    assert refs.split() == [ref]


async def test_decisions_survive_a_restart(desk: Desk) -> None:
    desk.agent_writes("a.txt", edited((1, "one\n")))
    await desk.review()
    await desk.reviews.discard(desk.subject, None)
    again = await desk.restarted().review(desk.subject, "all")
    assert states(again) == ["rejected"]


async def test_a_damaged_decisions_file_shows_everything_as_open(desk: Desk) -> None:
    desk.agent_writes("a.txt", edited((1, "one\n")))
    desk.subject.decisions.parent.mkdir()
    for text in ("{", "[]", '{"rejected": 5, "baseline": null}'):
        desk.subject.decisions.write_text(text)
        assert states(await desk.review()) == ["open"]


async def test_an_apply_can_be_undone_as_long_as_nothing_came_after(desk: Desk) -> None:
    desk.agent_writes("a.txt", edited((1, "one\n")))
    desk.agent_writes("b.txt", None)
    desk.agent_writes("c.txt", "new\n")
    await desk.review()
    applied = await desk.reviews.apply(desk.subject, None, False)
    assert (desk.text(), desk.text("c.txt"), (desk.repository / "b.txt").exists()) == (
        edited((1, "one\n")),
        "new\n",
        False,
    )
    (desk.repository / "c.txt").write_text("mine now\n")
    restored = await desk.reviews.restore(desk.subject, applied.recover_ref or "", None)
    assert sorted(restored.paths) == ["a.txt", "b.txt"]
    assert [(each.path, "changed after the apply" in each.reason) for each in restored.conflicts] == [("c.txt", True)]
    assert (desk.text(), desk.text("b.txt"), desk.text("c.txt")) == ("".join(LINES), "b\n", "mine now\n")


class Stubborn(DiskTarget):
    """Refuses to write some files."""

    refused: frozenset[str] = frozenset()

    async def write(self, path: Path, before: Content, after: Content, executable: bool | None = None) -> None:
        if path.name in self.refused:
            raise OSError(f"{path.name} cannot be written")
        await super().write(path, before, after, executable)


async def test_an_undo_does_not_speak_of_files_that_were_never_written(desk: Desk) -> None:
    desk.agent_writes("a.txt", edited((1, "one\n")))
    desk.agent_writes("b.txt", "changed\n")
    desk.agent_writes("c.txt", "new\n")
    target = Stubborn()
    target.refused = frozenset({"b.txt", "c.txt"})
    desk.reviews = Reviews(GitCommand(), target)
    await desk.review()
    applied = await desk.reviews.apply(desk.subject, None, False)
    assert (applied.applied, applied.recover_ref) == ((), None)
    assert [each.path for each in applied.conflicts] == ["b.txt"]
    assert applied.failure == "nothing was applied: b.txt: b.txt cannot be written"
    assert desk.text() == "".join(LINES), "what was written before is put back"
    ref = git(desk.repository, "for-each-ref", "--format=%(refname)", "refs/agent-ls/recover").strip()
    assert git(desk.repository, "show", f"{ref}:b.txt") == "b\n", "all texts stay readable"
    restored = await desk.restarted().restore(desk.subject, ref, None)
    assert (restored.paths, restored.conflicts) == ((), ())
    named = await desk.reviews.restore(desk.subject, ref, ["b.txt"])
    assert [each.reason for each in named.conflicts] == ["b.txt was not changed by that apply"]


async def test_d18_undoing_a_new_file_removes_it_only_when_it_is_as_it_was_applied(desk: Desk) -> None:
    desk.agent_writes("c.txt", "new\n")
    await desk.review()
    applied = await desk.reviews.apply(desk.subject, None, False)
    restored = await desk.reviews.restore(desk.subject, applied.recover_ref or "", ["c.txt", "z.txt"])
    assert (restored.paths, (desk.repository / "c.txt").exists()) == (("c.txt",), False)
    assert [(each.path, each.reason) for each in restored.conflicts] == [
        ("z.txt", "z.txt was not changed by that apply")
    ]


@pytest.mark.parametrize(
    "ref", ["HEAD", "refs/heads/main", "refs/agent-ls/recover/other/1", "refs/agent-ls/recover/agent1/99", "--all"]
)
async def test_only_a_recovery_ref_of_this_agent_restores(desk: Desk, ref: str) -> None:
    with pytest.raises(NotReviewable):
        await desk.reviews.restore(desk.subject, ref, None)


async def test_a_round_shows_what_came_after_the_comments(desk: Desk) -> None:
    desk.agent_writes("a.txt", edited((1, "one\n")))
    assert len((await desk.reviews.review(desk.subject, "new")).files) == 1
    await desk.reviews.end_round(desk.subject)
    assert (await desk.reviews.review(desk.subject, "new")).files == ()
    desk.agent_writes("a.txt", edited((1, "one\n"), (9, "nine\n")))
    new = await desk.restarted().review(desk.subject, "new")
    assert [hunk.text for file in new.files for hunk in file.hunks] == ["-line 9\n+nine\n"]
    assert len((await desk.review()).files[0].hunks) == 2


async def test_restore_gives_back_modes_and_links(desk: Desk) -> None:
    repository, tree = desk.repository, desk.tree
    (repository / "run.sh").write_text("run\n")
    (repository / "run.sh").chmod(0o755)
    (repository / "link").symlink_to("run.sh")
    (repository / "mode.txt").write_text("m\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "modes")
    runner = GitCommand()
    worktree = await create(runner, await find_repository(runner, repository), "agent2", tree.parent)
    subject = Subject("agent2", worktree, desk.subject.decisions)
    for name in ("run.sh", "link"):
        (worktree.path / name).unlink()
    (worktree.path / "mode.txt").chmod(0o755)
    (worktree.path / "new").symlink_to("a.txt")
    before = git(repository, "status", "--porcelain")
    await desk.reviews.review(subject, "all")
    applied = await desk.reviews.apply(subject, None, False)
    assert not (repository / "run.sh").exists() and (repository / "new").is_symlink()
    restored = await desk.reviews.restore(subject, applied.recover_ref or "", None)
    assert (sorted(restored.paths), restored.conflicts) == (["link", "mode.txt", "new", "run.sh"], ())
    assert git(repository, "status", "--porcelain") == before == ""
    assert (repository / "link").is_symlink() and (repository / "run.sh").stat().st_mode & 0o111


async def test_restore_does_not_follow_a_folder_that_became_a_link(desk: Desk, tmp_path: Path) -> None:
    (desk.repository / "n").mkdir()
    (desk.tree / "n").mkdir()
    desk.agent_writes("n/f", "agent\n")
    await desk.review()
    applied = await desk.reviews.apply(desk.subject, None, False)
    (desk.repository / "n").rename(tmp_path / "outside")
    (desk.repository / "n").symlink_to(tmp_path / "outside")
    restored = await desk.reviews.restore(desk.subject, applied.recover_ref or "", None)
    assert (restored.paths, len(restored.conflicts)) == ((), 1)
    assert (tmp_path / "outside" / "f").read_text() == "agent\n"

"""The main job, whole, in the real VS Code: launch, answer, review by hunk over unsaved text, undo, stop."""

from __future__ import annotations

import subprocess

import pytest
from playwright.sync_api import expect

from lsp_server.demo.script import conversation, say, use
from tests.editors.nvim_editor import Model
from tests.editors.vscode_editor import AGAIN, MAIN, NODE, VERSION, Window, again, until
from tests.editors.vscode_fixtures import clean_git, code, code_and_model, model, repo, vsix, window
from tests.git_helpers import Repo

__all__ = ["clean_git", "code", "code_and_model", "model", "repo", "vsix", "window"]

pytestmark = pytest.mark.timeout(600)


def edit(path: str, old: str, new: str):
    return use("Edit", file_path=path, old_string=old, new_string=new)


def test_the_version_is_the_one_that_is_promised() -> None:
    """A missing VS Code fails here and everywhere else: nothing is skipped."""
    done = subprocess.run([NODE, MAIN, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == VERSION


@pytest.mark.spec("ED-5")
def test_agents_that_launch_agents_are_answered_reviewed_undone_and_stopped(
    window: Window, model: Model, repo: Repo
) -> None:
    model.says(
        conversation(
            say(
                "I send two.",
                use("Agent", description="Count the lines", prompt="child one"),
                use("Agent", description="Check the notes", prompt="child two"),
            ),
            say(use("Bash", command="/bin/echo root")),
            say(use("Read", file_path="app.py"), use("Read", file_path="notes.txt")),
            say(
                edit("app.py", "line_3 = 3\n", "line_3 = 33\n"),
                edit("app.py", "line_10 = 10\n", "line_10 = 100\n"),
                edit("app.py", "line_18 = 18\n", "line_18 = 180\n"),
                edit("notes.txt", "two\n", "zwei\n"),
            ),
            say("Repaired."),
            first_user="Repair all",
            name="root",
        ),
        conversation(say(use("Bash", command="sh -c true")), say("20 lines"), first_user="child one", name="one"),
        conversation(say(use("Bash", command="sh -c :")), say("fine"), first_user="child two", name="two"),
        conversation(say("Too slow", gate="never"), first_user="Wait for me", name="slow"),
    )
    # Unsaved work of the person, elsewhere in the file. The questions that come leave it alone.
    window.edit("app.py")
    window.goto_line(15)
    window.page.keyboard.press("End")
    window.page.keyboard.type("0")
    window.wait_text("line_15 = 150")
    window.show_agents()
    window.launch("Repair all")

    # Both children ask, and the tree shows them below the agent that launched them.
    for child in ("Count the lines", "Check the notes"):
        window.sees(window.row(child, "Asks:").locator(".label-name"))
        window.sees(window.row(child, "needs you").locator(".label-name"))
    expect(window.badge).to_have_text("2")
    window.sees(window.badge)
    window.status_is("2 need you, 3 running")
    window.sees(window.status)
    assert "line_15 = 150" in window.text()
    window.picture("1-tree")

    again(lambda: window.status.click(timeout=AGAIN), lambda: window.shows("Question 1 of 2"), "a question opens")
    for number in ("of 2", "of 1"):
        window.wait_text(f"Question 1 {number}", "for general-purpose (Repair all)", "Directory: ", "1  Allow once")
        for text in ("1 Allow once", "Reject and say why"):
            window.sees(window.lens(text))
        window.picture(f"2-question-{number[-1]}")
        window.answer("1 Allow once")

    # Then the one that launched them.
    window.status_is("1 needs you")
    window.opens(
        window.row("Asks:", "Bash /bin/echo root"), "Question 1 of 1", "general-purpose (Repair all)", "/bin/echo root"
    )
    window.picture("3-question-root")
    window.answer("1 Allow once")
    expect(window.row("Repair all", "done")).to_be_visible(timeout=120_000)
    expect(window.badge).to_be_hidden()
    window.picture("4-done")

    # Review: all changes in one view, and each file and hunk in the tree.
    review = window.view("Review")
    window.action(window.row("Repair all", "done"), "Review", review)
    expect(review).to_contain_text("2 files, +4 −4, 4 open")
    expect(window.page.locator(".multiDiffEntry").first).to_be_visible()
    hunks = [
        window.row("line 3: + line_3 = 33"),
        window.row("line 10: + line_10 = 100"),
        window.row("line 18: + line_18 = 180"),
    ]
    for hunk in hunks:
        window.sees(hunk.locator(".label-name"))
    window.apart(*hunks)
    window.picture("5-review")
    window.opens(window.row("line 3: + line_3 = 33"), "line_3 = 33")
    window.picture("6-hunk")

    window.action(hunks[0], "Accept Change", review.get_by_text("Accepted 1 change, 3 left."))
    window.action(hunks[1], "Reject Change", review.get_by_text("Rejected 1 change."))
    expect(window.row("line 10", "rejected")).to_be_visible()
    window.picture("7-decided")
    window.command("Agent: Accept All Changes")
    expect(review).to_contain_text("Accepted 2 changes, 0 left.")
    window.picture("8-applied")
    until(lambda: (repo.path / "notes.txt").read_text() == "one\nzwei\nthree\n", "the closed file is written")
    assert (repo.path / "app.py").read_text() == "".join(f"line_{n} = {n}\n" for n in range(1, 21))
    window.to_tab("app.py")
    text = window.wait_text("line_3 = 33\n", "line_10 = 10\n", "line_15 = 150\n", "line_18 = 180\n")
    assert text.count("\n") == 20

    # Undo takes back the last step, and leaves what the person wrote.
    window.command("Agent: Undo Last Accept or Reject")
    expect(review).to_contain_text("Undone: ")
    window.wait_text("line_3 = 33\n", "line_15 = 150\n", "line_18 = 18\n")
    assert (repo.path / "notes.txt").read_text() == "one\ntwo\nthree\n"
    expect(review).to_contain_text("2 open")
    window.picture("9-undone")

    # Kept in git: one commit on a branch, without what was rejected.
    window.command("Agent: Keep Work in Git…", window.offered("One commit"))
    window.picture("9b-keep")
    window.pick("One commit")
    window.fill("On which branch?", "kept")
    expect(window.page.locator(".notification-toast").filter(has_text="on the branch kept.")).to_be_visible()
    window.picture("9c-kept")
    kept = repo.git("show", "kept:app.py")
    assert ("line_3 = 33" in kept, "line_10 = 10\n" in kept, "line_15 = 15\n" in kept) == (True, True, True)
    assert repo.git("log", "--format=%s", "main..kept") == "Repair all"

    window.launch("Wait for me")
    window.status_is("1 running")
    window.action(window.row("Wait for me", "running"), "Stop", window.row("Wait for me", "stopped"))
    window.status_is("Agents")
    window.picture("10-stopped")

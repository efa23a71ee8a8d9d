"""The main job, whole, in a real Neovim 0.11: launch, answer, review by hunk over unsaved text, undo, stop."""

from __future__ import annotations

import re
import subprocess

import psutil
import pytest

from agent_core.progress_summary import QUESTION
from lsp_server.demo.script import conversation, say, use
from tests.editors.nvim_editor import NVIM
from tests.editors.nvim_fixtures import clean_git, editor, model, repo, shared, start

__all__ = ["clean_git", "editor", "model", "repo", "shared", "start"]


def edit(path: str, old: str, new: str):
    return use("Edit", file_path=path, old_string=old, new_string=new)


def test_the_version_is_the_one_that_is_promised() -> None:
    """A missing Neovim fails here and everywhere else: nothing is skipped."""
    done = subprocess.run([NVIM, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("NVIM v0.11.4\n")


@pytest.mark.spec("ED-5")
def test_agents_that_launch_agents_are_answered_reviewed_undone_and_stopped(start, model, repo):
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
                edit("app.py", "line_20 = 20\n", "line_20 = 200\n"),
                edit("app.py", "line_38 = 38\n", "line_38 = 380\n"),
                edit("notes.txt", "two\n", "zwei\n"),
            ),
            say("Repaired."),
            first_user="Repair all",
            name="root",
        ),
        conversation(
            say(use("Bash", command="/usr/bin/wc -l app.py")), say("40 lines"), first_user="child one", name="one"
        ),
        conversation(say(use("Bash", command="/bin/cat notes.txt")), say("fine"), first_user="child two", name="two"),
        conversation(say("Too slow", gate="never"), first_user="Wait for me", name="slow"),
    )
    editor = start("app.py")
    editor.command("Agent spawn isolation=worktree name=fixer Repair all")

    # Both children ask, and the list shows for whom.
    editor.command("Agent list")
    editor.wait_until(lambda: editor.text.count("NEEDS YOU") == 2, "both children ask")
    screen = editor.text
    assert "▶ fixer (Repair all)" in screen
    children = re.findall(r"([├└]) ▶ (Count the lines|Check the notes) +NEEDS YOU", screen)
    assert ([mark for mark, _ in children], {title for _, title in children}) == (
        ["├", "└"],
        {"Count the lines", "Check the notes"},
    )
    editor.picture("story-list")
    assert editor.status() == "agents: 2 need you, 3 running"
    editor.command("Agent approve")
    screen = editor.wait_for("Question 1 of 2", "for general-purpose (Repair all)", "1  Allow once")
    editor.picture("story-ask-child")
    editor.answer("1")
    editor.wait_for("Question 1 of 1", "for general-purpose (Repair all)")
    editor.answer("1")

    # Then the one that launched them.
    editor.wait_until(lambda: "need" in editor.status(), "the root asks")
    editor.command("Agent approve")
    editor.wait_for("asks: ", "/bin/echo root")
    editor.answer("1")
    editor.wait_for("Agent done: fixer")
    editor.picture("story-done")
    editor.keys("q")

    # Unsaved work of the user, elsewhere in the file.
    assert editor.buffer[9] == "line_10 = 10"
    editor.nvim.current.buffer[9] = "line_10 = 'mine'"
    buffer = editor.nvim.current.buffer.number
    editor.command("Agent review fixer")
    editor.wait_for("2 files, +4 -4, 4 open", "now: app.py (your buffer, not saved)", "line_3 = 33")
    editor.picture("story-review")
    editor.keys("ga")  # the first hunk
    editor.wait_for("Accepted 1 change, 3 left.", "[x] line 3")
    assert editor.lines(buffer)[2] == "line_3 = 33"
    editor.nvim.current.window.cursor = [5, 0]
    editor.wait_for("[ ] line 20")
    editor.keys("gr")  # the second
    editor.wait_for("Rejected 1 change.", "[-] line 20")
    editor.picture("story-rejected")
    editor.keys("A")
    editor.wait_for("Accepted 2 changes, 0 left.")
    editor.picture("story-applied")
    mine = [f"line_{n} = {n}" for n in range(1, 41)]
    mine[9], mine[2], mine[37] = "line_10 = 'mine'", "line_3 = 33", "line_38 = 380"
    assert editor.lines(buffer) == mine
    assert (repo.path / "app.py").read_text() == "".join(f"line_{n} = {n}\n" for n in range(1, 41))
    assert (repo.path / "notes.txt").read_text() == "one\nzwei\nthree\n"

    # Undo in the buffer takes back one step, and the review sees it.
    editor.keys("q")
    editor.wait_gone("proposed: ")
    assert editor.nvim.current.buffer.number == buffer
    editor.keys("u")
    mine[37] = "line_38 = 38"
    editor.wait_until(lambda: editor.lines(buffer) == mine, "one change undone")
    editor.keys("u")
    mine[2] = "line_3 = 3"
    editor.wait_until(lambda: editor.lines(buffer) == mine, "the other one undone, the user's own kept")
    editor.command("Agent review fixer")
    editor.wait_for("[ ] line 3 ", "[-] line 20", "[ ] line 38")
    editor.keys("q")

    editor.command("Agent spawn name=slow Wait for me")
    editor.wait_until(lambda: "1 running" in editor.status(), "it runs")
    editor.command("Agent stop slow")
    editor.wait_for("Stopped: slow")
    assert {each["name"]: each["status"] for each in editor.agents() if each.get("name")} == {
        "fixer": "completed",
        "slow": "stopped",
    }
    assert editor.status() == ""


def test_a_child_goes_to_the_background_and_an_agent_of_an_earlier_server_is_resumed_and_forked(start, model, repo):
    model.says(
        conversation(
            say(use("Agent", description="Slow job", prompt="child go")),
            say("I go on."),
            say("I heard of it."),
            first_user="root go",
            name="root",
        ),
        conversation(
            say(use("Read", file_path="notes.txt")),
            say("It is done.", gate="late"),
            first_user="child go",
            name="child",
        ),
        conversation(say("I am the fork."), user="look again", not_user="I am the fork.", name="fork", offset=2),
        conversation(
            say(use("Read", file_path="notes.txt")),
            say("At last.", gate="later"),
            say("I know of the fork."),
            say("Noted."),
            first_user="earlier go",
            name="earlier",
        ),
    )
    editor = start("app.py")

    def shows(pattern):
        editor.wait_until(lambda: re.search(pattern, editor.text), pattern)

    def says(text):  # the next message takes its place on the screen
        editor.wait_until(lambda: text in editor.messages(), text)

    editor.command("Agent spawn name=parent root go")
    editor.command("Agent list")
    editor.wait_for("└ ▶ Slow job")
    editor.keys("gg/Slow<CR>b")
    says("In the background: Slow job")
    says("Agent done: parent")
    shows(r"✓ parent \(root go\) +done")
    shows(r"└ ▶ Slow job +background")
    editor.picture("background")
    editor.command("Agent log parent")
    editor.wait_for("I go on.")
    model.release("late")
    editor.wait_for("I heard of it.")
    shows(r"└ ✓ Slow job +done")
    says("Agent done: Slow job")
    editor.keys("q")

    editor.command("Agent list")
    editor.command("Agent spawn name=early earlier go")
    editor.wait_until(lambda: model.told().count("earlier go") == 2, "it has had a turn")
    [server] = [each for each in psutil.Process(editor.process).children(True) if "serve" in each.cmdline()]
    server.kill()
    says("The agent server ended")
    shows(r"early \(earlier go\) +interrupted")
    editor.keys("gg/early<CR>R")
    says("Resumed: early")
    model.release("later")
    says("Agent done: early")
    editor.keys("g?")
    editor.wait_for("R     resume it")
    editor.picture("keys")
    editor.keys("q")
    editor.command("Agent fork early")
    editor.wait_for("What shall the fork do?")
    editor.keys("look again<CR>")
    says("Agent done: look again")
    shows(r"early \(earlier go\) +done")
    editor.command("Agent send early")
    editor.wait_for("To early (earlier go):")
    editor.keys("thanks<CR>")
    editor.wait_until(lambda: "thanks" in model.told(), "it is told")
    editor.wait_until(lambda: editor.status() == "", "all is done")


def test_the_list_tells_what_an_agent_in_the_background_does(start, model, tmp_path):
    """With the setting progressSummaries; the first line comes after twenty seconds."""
    settings = tmp_path / "home" / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"progressSummaries": true}')
    model.says(
        conversation(say("Reading the notes for you."), last_user=QUESTION, name="summary"),
        conversation(
            say(use("Agent", description="Slow job", prompt="child go", run_in_background=True)),
            say("I go on."),
            say("I heard of it."),
            first_user="root go",
            name="root",
        ),
        conversation(
            say(use("Read", file_path="notes.txt")),
            say("It is done.", gate="late"),
            first_user="child go",
            name="child",
        ),
    )
    editor = start("app.py")
    editor.command("Agent spawn name=parent root go")
    editor.command("Agent list")
    editor.wait_for("Slow job", "background")
    editor.wait_until(lambda: "Reading the notes" in editor.text, "the summary", 60)
    editor.picture("summary")
    model.release("late")
    editor.wait_until(lambda: re.search(r"✓ Slow job +done", editor.text), "the end")
    assert "Reading the notes" not in editor.text

"""Questions, faults and choices in the real VS Code: nothing by surprise, nothing lost, always a way back."""

from __future__ import annotations

import os
import signal

import psutil
import pytest
from playwright.sync_api import expect

from lsp_server.demo.script import conversation, say, use
from tests.editors.nvim_editor import Model
from tests.editors.vscode_editor import AGAIN, Code, Window, again, until
from tests.editors.vscode_fixtures import clean_git, code, code_and_model, model, repo, shared_repo, vsix, win, window
from tests.git_helpers import Repo

__all__ = ["clean_git", "code", "code_and_model", "model", "repo", "shared_repo", "vsix", "win", "window"]

pytestmark = pytest.mark.timeout(600)
FOLDER = "In this folder"


@pytest.mark.spec("ED-2")
def test_a14_d6_d24_a_change_is_shown_before_it_is_asked_and_no_key_allows_by_accident(
    win: Window, model: Model, shared_repo: Repo
) -> None:
    model.says(
        conversation(
            say(use("Read", file_path="notes.txt")),
            say(use("Edit", file_path="notes.txt", old_string="two", new_string="zwei")),
            say("I see."),
        )
    )
    win.show_agents()
    win.edit("app.py")
    win.launch("Change it", FOLDER)
    win.status_is("1 needs you")
    win.page.locator(".editor-group-container.active .view-line").first.click()
    win.page.keyboard.press("Control+Home")
    win.page.keyboard.type("1r")  # goes to the text: the question took no focus
    win.wait_text("1rline_1 = 1")
    win.command("Agent: Answer…")
    win.wait_text("asks: ", "Change:", "-two", "+zwei", "1  Allow once")
    for key in ("Enter", "Escape", "Space", "y", "a"):
        win.page.keyboard.press(key)
    win.sees(win.lens("1 Allow once"))
    win.sees(win.lens("Reject and say why"))
    win.apart(win.lens("1 Allow once"), win.lens("2 "), win.lens("Reject and say why"))
    win.picture("ask-change")
    diff = win.tab("notes.txt: now ↔ asked for by Change it")
    again(lambda: win.lens("Show side by side").click(timeout=AGAIN), diff.is_visible, "the diff opens")
    win.wait_text("zwei")
    win.picture("ask-diff")
    assert (shared_repo.path / "notes.txt").read_text() == "one\ntwo\nthree\n"
    win.command("Agent: Pick an Answer…")
    expect(win.page.locator(".quick-input-list .monaco-list-row").first).to_contain_text("Decide later")
    win.picture("ask-pick")
    win.pick("Reject and say why")
    win.fill("Why not?", "keep it in English")
    expect(win.row("Change it", "done")).to_be_visible()
    assert "keep it in English" in model.told()
    assert (shared_repo.path / "notes.txt").read_text() == "one\ntwo\nthree\n"
    expect(win.page.locator(".tab").filter(has_text="Agent asks")).to_have_count(0)
    expect(win.page.locator(".tab").filter(has_text="asked for by")).to_have_count(0)
    win.to_tab("app.py")
    win.command("File: Revert File")


def test_a19_e2_stopping_the_root_withdraws_the_question_of_its_child(
    win: Window, model: Model, shared_repo: Repo
) -> None:
    model.says(
        conversation(
            say(use("Agent", description="Child job", prompt="child go")),
            say("over"),
            first_user="root go",
            name="root",
        ),
        conversation(say(use("Bash", command="/bin/touch deep")), say("x"), first_user="child go", name="child"),
    )
    win.show_agents()
    win.launch("root go", FOLDER)
    win.opens(
        win.row("Asks:", "touch deep"), "general-purpose (Child job)", "for general-purpose (root go)", "touch deep"
    )
    root = win.row("root go").filter(has_not_text="Asks:").first
    win.action(root, "Stop", win.row("root go", "stopped"))
    win.wait_text("No question is open.")
    expect(win.row("Child job", "stopped")).to_be_visible()
    expect(win.row("Asks:")).to_have_count(0)
    expect(win.badge).to_be_hidden()
    win.picture("ask-withdrawn")
    assert not (shared_repo.path / "deep").exists()


def test_a_missing_server_is_told_with_the_fix_and_a_crashed_one_comes_back(
    code: Code, model: Model, repo: Repo
) -> None:
    code.settings({"agentLs.command": ["no-such-program", "serve"]})
    window = code.open(repo.path)
    window.show_agents()
    toast = window.page.locator(".notification-toast").filter(has_text='"no-such-program" was not found')
    expect(toast).to_contain_text('set "agentLs.command" to where it is')
    window.status_is("no server")
    window.picture("fault-missing")
    bad = {"agentLs.command": ["sh", "-c", "echo cannot read it >&2; exit 3"]}
    toast = window.page.locator(".notification-toast").filter(has_text="It ended at once, with exit code 3.")
    again(lambda: code.settings(bad), toast.is_visible, "the server that ends at once is told")  # saved again
    expect(toast).to_contain_text("It said: cannot read it")
    expect(window.page.locator(".notification-toast")).to_have_count(2)
    again(code.settings, lambda: "no server" not in window.status.inner_text(), "the server that is there is started")

    model.says(conversation(say(use("Bash", command="touch made")), say("done"), first_user="go"))
    window.launch("go on", FOLDER)
    window.status_is("1 needs you")
    kill_servers(repo)
    expect(window.row("go on", "interrupted")).to_be_visible()
    expect(window.badge).to_be_hidden()
    expect(window.page.locator(".notification-toast").filter(has_text="agent-ls ended unexpectedly")).to_be_visible()
    window.picture("fault-crashed")
    window.launch("go again", FOLDER)
    window.status_is("1 needs you")
    window.opens(window.row("Asks:", "touch made"), "touch made")
    window.answer("1 Allow once")
    expect(window.row("go again", "done")).to_be_visible()
    until(lambda: (repo.path / "made").exists(), "the call was made")


def kill_servers(repo: Repo) -> None:
    servers = [each for each in psutil.process_iter(["cmdline"]) if is_server(each, repo)]
    assert servers
    for each in servers:
        os.kill(each.pid, signal.SIGKILL)


def is_server(process: psutil.Process, repo: Repo) -> bool:
    try:
        command = process.cmdline()
        return "serve" in command and process.cwd() == str(repo.path)
    except psutil.Error:
        return False


def test_d18_d21_deletions_are_confirmed_conflicts_shown_and_rejections_undone(
    win: Window, model: Model, shared_repo: Repo
) -> None:
    model.says(
        conversation(
            say(use("Read", file_path="notes.txt"), use("Bash", command="/bin/rm old.txt")),
            say(use("Edit", file_path="notes.txt", old_string="two", new_string="zwei")),
            say("Done."),
        )
    )
    win.show_agents()
    win.launch("Clean up")
    win.opens(win.row("Asks:", "rm old.txt"), "rm old.txt")
    win.answer("1 Allow once")
    expect(win.row("Clean up", "done")).to_be_visible()
    (shared_repo.path / "notes.txt").write_text("one\nmine\nthree\n")
    review = win.view("Review")
    win.toast("Agent done: Clean up.", "Review", win.row("notes.txt", "conflict"))
    win.sees(win.row("line 2: ").locator(".label-name"))
    win.picture("review-conflict")
    dialog = win.page.locator(".monaco-dialog-box").filter(has_text="Delete 1 file?")
    win.action(win.row("old.txt", "deleted"), "Accept File", dialog)
    win.picture("review-deletion")
    again(
        lambda: dialog.get_by_text("Cancel", exact=True).click(timeout=AGAIN),
        lambda: not dialog.is_visible(),
        "the dialog goes",
    )
    assert (shared_repo.path / "old.txt").exists()
    win.action(win.row("old.txt", "deleted"), "Accept File", dialog)
    accepted = review.get_by_text("Accepted 1 change")
    again(lambda: dialog.get_by_text("Delete", exact=True).click(timeout=AGAIN), accepted.is_visible, "it is deleted")
    assert not (shared_repo.path / "old.txt").exists()
    win.command("Agent: Undo Last Accept or Reject")
    expect(review).to_contain_text("Undone: old.txt.")
    assert (shared_repo.path / "old.txt").read_text() == "to go\n"
    win.command("Agent: Reject All Changes")
    expect(review).to_contain_text("Rejected ")
    assert (shared_repo.path / "notes.txt").read_text() == "one\nmine\nthree\n"
    expect(win.row("line 1: ", "rejected")).to_be_visible()
    win.command("Agent: Undo Last Accept or Reject")
    expect(win.row("line 1: ", "rejected")).to_have_count(0)
    win.picture("review-undone")


def test_a_selection_is_delegated_and_its_log_can_be_read(win: Window, model: Model) -> None:
    model.says(conversation(say("These are two lines.")))
    win.edit("app.py")
    win.goto_line(3)
    for _ in range(2):
        win.page.keyboard.press("Shift+ArrowDown")
    action = win.page.locator(".action-widget .monaco-list-row").filter(has_text="Delegate to agent: the selection…")
    again(lambda: win.page.keyboard.press("Control+."), action.is_visible, "the code actions")
    win.sees(action)
    win.picture("delegate")
    asked = win.asks("Launch an agent on the selection")
    again(lambda: action.click(timeout=AGAIN), asked.is_visible, "what it shall do is asked")
    win.fill("Launch an agent on the selection", "Explain this")
    win.pick(FOLDER)
    win.show_agents()
    win.opens(win.row("Explain this", "done"), "Explain this", "These are two lines.")
    win.picture("log")
    assert "app.py, lines 3 to 4." in model.told()


@pytest.mark.spec("ED-5")
def test_comments_on_lines_are_collected_and_sent_as_one_message_and_the_agent_goes_on(
    win: Window, model: Model, shared_repo: Repo
) -> None:
    model.says(
        conversation(
            say(use("Read", file_path="app.py"), use("Read", file_path="notes.txt")),
            say(
                use("Edit", file_path="app.py", old_string="line_3 = 3\n", new_string="line_3 = 33\n"),
                use("Edit", file_path="notes.txt", old_string="two", new_string="zwei"),
            ),
            say("First."),
            say(use("Edit", file_path="notes.txt", old_string="zwei", new_string="deux")),
            say("Second."),
        ),
    )
    win.show_agents()
    win.launch("Translate it")
    review = win.view("Review")
    win.action(win.row("Translate it", "done"), "Review", win.row("line 2: + zwei"))
    win.comment("notes.txt", 2, "in French, please")
    win.comment("app.py", 3, "why 33?")
    win.picture("comment-two")
    expect(review).to_contain_text("2 comments not sent")
    win.command("Agent: Send Comments", review.get_by_text("Sent 2 comments."))
    expect(win.row("line 2: + deux")).to_be_visible()
    win.picture("comment-sent")
    assert r"app.py:3: why 33?\n\nnotes.txt:2: in French, please" in model.told()
    expect(win.page.locator(".review-widget")).to_have_count(0)
    win.command("Agent: Close Review")


def test_a_child_goes_to_the_background_and_an_agent_of_an_earlier_server_is_resumed(
    window: Window, model: Model, repo: Repo
) -> None:
    model.says(
        conversation(
            say(use("Agent", description="Slow job", prompt="child go", isolation="worktree")),
            say("I go on."),
            say("I heard of it."),
            first_user="root go",
            name="root",
        ),
        conversation(
            say(use("Read", file_path="notes.txt")),
            say(use("Edit", file_path="notes.txt", old_string="two", new_string="zwei"), gate="late"),
            say("It is done."),
            first_user="child go",
            name="child",
        ),
        conversation(say("I am the fork."), user="look again", not_user="I am the fork.", name="fork", offset=2),
        conversation(
            say(use("Read", file_path="notes.txt")),
            say("At last.", gate="later"),
            say("I know of the fork."),
            first_user="earlier",
            name="earlier",
        ),
    )
    window.show_agents()
    window.launch("root go", FOLDER)
    window.action(window.row("Slow job", "running"), "Send to Background", window.row("Slow job", "background"))
    window.opens(window.row("root go", "done"), "I go on.")
    expect(window.row("Slow job", "background")).to_be_visible()
    window.row("Slow job").hover()
    window.picture("background")
    model.release("late")
    expect(window.row("Slow job", "done", "background")).to_be_visible()
    window.wait_text("I heard of it.")
    review = window.row("notes.txt")
    window.toast("Agent done: Slow job. Its changes wait for you.", "Review", review)

    window.launch("earlier", FOLDER)
    expect(window.row("earlier", "running", "tokens")).to_be_visible()
    kill_servers(repo)
    window.action(window.row("earlier", "interrupted"), "Resume", window.row("earlier", "running"))
    window.picture("resumed")
    model.release("later")
    window.opens(window.row("earlier", "done"), "At last.")
    window.command("Agent: Fork…", window.asks("Fork which agent?"))
    window.pick("earlier")
    window.fill("Fork earlier", "look again")
    expect(window.row("look again", "done", "background")).to_be_visible()
    window.wait_text("I know of the fork.")
    window.picture("forked")

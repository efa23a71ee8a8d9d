"""Answers in a real Neovim: where a lasting one is stored, comments, changed inputs, the queue, two editors at once.
Everything by keys alone, and no key answers that was meant for something else."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lsp_server.demo.script import conversation, say, use
from tests.editors.nvim_editor import NVIM, PLUGIN, Editor, Model
from tests.editors.nvim_fixtures import Shared, Start, clean_git, editor, editor_environment, model, repo, shared, start
from tests.editors.test_neovim_asks import ask, ended, shell, status_of, waiting
from tests.git_helpers import Repo

__all__ = ["clean_git", "editor", "model", "repo", "shared", "start"]

RULE = "Bash(touch made.txt)"
TRUSTED = "require('agent_ls').setup({ trusted = true })"


def opened(editor: Editor, *texts: str) -> str:
    editor.command("Agent approve")
    return editor.wait_for("Question 1 of ", *texts)


def counts(editor: Editor) -> None:
    """Waits until keys count, as a person does who looks at their colour."""
    editor.wait_until(
        lambda: editor.lua("""
            for _, buf in ipairs(vim.api.nvim_list_bufs()) do
              if vim.api.nvim_buf_get_name(buf):find("agents://answers", 1, true) then
                local marks = vim.api.nvim_buf_get_extmarks(buf, -1, 0, -1, { details = true })
                return #marks > 0 and marks[1][4].hl_group == "AgentLsKey"
              end
            end
        """),
        "keys have their colour",
    )


# Where a lasting answer is stored


@pytest.mark.spec("PM-5", "ED-2")
@pytest.mark.parametrize(
    ("key", "file", "shown"),
    [
        ("1", "project/.claude/settings.local.json", ".claude/settings.local.json   you, in this folder"),
        ("2", "project/.claude/settings.json", ".claude/settings.json         everybody who works on this project"),
        ("3", "home/.claude/settings.json", "~/.claude/settings.json       you, in every folder"),
    ],
)
def test_b4_a_lasting_answer_is_written_to_the_file_that_was_chosen(
    start: Start, model: Model, repo: Repo, tmp_path: Path, key: str, file: str, shown: str
) -> None:
    shell(model, "touch made.txt")
    editor = start()
    editor.lua(TRUSTED)
    ask(editor)
    opened(editor, f"3  Always allow, in a file that you choose: {RULE}")
    editor.answer("3")
    editor.wait_for("Store it in which file?", f"Always allow: {RULE}", f"{key}  {shown}", "b  Back   q  Decide later")
    editor.picture(f"answer-places-{key}")
    editor.answer(key)
    ended(editor)
    assert (repo.path / "made.txt").exists()
    written = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/.claude/*.json"))
    assert written == [file]
    assert json.loads((tmp_path / file).read_text()) == {"permissions": {"allow": [RULE]}}


def test_b4_in_a_folder_that_is_not_trusted_only_the_own_file_is_offered(
    start: Start, model: Model, repo: Repo, tmp_path: Path
) -> None:
    """Also a rejection can last, and names its rule."""
    shell(model, "touch made.txt")
    editor = start()
    ask(editor)
    screen = opened(editor, "6  Always reject, in a file that you choose: ")
    assert "settings.local.json" not in screen
    editor.answer("6")
    screen = editor.wait_for("Store it in which file?", f"Always reject: {RULE}", "1  ~/.claude/settings.json")
    assert " 2  " not in screen.partition("Store it")[2]
    editor.answer("1")
    ended(editor)
    stored = json.loads((tmp_path / "home" / ".claude" / "settings.json").read_text())
    assert stored == {"permissions": {"deny": [RULE]}}
    assert not (repo.path / "made.txt").exists()


@pytest.mark.spec("ED-2")
def test_a14_a_lasting_answer_takes_two_keys_and_each_has_its_guard_time(
    editor: Editor, model: Model, repo: Repo
) -> None:
    shell(model, "touch made.txt")
    ask(editor)
    opened(editor, "3  Always allow")
    counts(editor)
    editor.keys("3")
    editor.wait_for("Store it in which file?")
    with editor.too_early():
        editor.keys("1")
        assert waiting(editor) == 1
    editor.keys("<CR><Esc><Space>yYr2", settle=0.55)
    assert waiting(editor) == 1
    editor.answer("b")
    editor.wait_for("Your answer", "1  Allow once")
    assert waiting(editor) == 1
    assert not (repo.path / "made.txt").exists()


# Keys and clicks that were meant for something else


@pytest.mark.spec("ED-2")
def test_a14_a_click_and_the_focus_of_the_window_answer_nothing(editor: Editor, model: Model, repo: Repo) -> None:
    shell(model, "touch made.txt")
    editor.edit("app.py")
    ask(editor)
    editor.nvim.options["mouse"] = "a"
    editor.lua("require('agent_ls').setup({ guard_ms = 1500 })")
    screen = opened(editor, "1  Allow once")
    row = next(number for number, line in enumerate(screen.split("\n")) if "1  Allow once" in line)
    counts(editor)
    for column in (4, 8, 30):
        for action in ("press", "release"):
            editor.nvim.api.input_mouse("left", action, "", 0, row, column)
    editor.wait_until(lambda: editor.nvim.current.buffer.name.endswith("agents://question"), "the focus stays")
    assert waiting(editor) == 1
    # A click that brings the window to the front, and the key that was typed with it.
    counts(editor)
    editor.nvim.api.call_atomic([["nvim_ui_set_focus", [False]], ["nvim_ui_set_focus", [True]], ["nvim_input", ["1"]]])
    editor.wait_for("Question 1 of 1")
    assert waiting(editor) == 1
    counts(editor)
    editor.keys("1")
    ended(editor)
    assert (repo.path / "made.txt").exists()


@pytest.mark.spec("ED-2")
@pytest.mark.parametrize("closing", ["<Esc>", "<S-Tab><Esc>", "<C-c>", "<CR>"])
def test_a14_closing_a_comment_answers_nothing(editor: Editor, model: Model, repo: Repo, closing: str) -> None:
    shell(model, "touch made.txt")
    ask(editor)
    opened(editor, "c  Add a comment")
    editor.answer("c")
    editor.wait_for("Comment, sent along with your answer:")
    with editor.too_early():
        editor.keys(f"1{closing}1")  # the last one belongs to nothing
        editor.wait_until(lambda: editor.mode == "n", "the comment is closed")
        assert waiting(editor) == 1
    kept = closing == "<CR>"
    assert ("With your comment: 1" in editor.wait_for("Question 1 of 1")) == kept
    assert not (repo.path / "made.txt").exists()


# What goes along with an answer


@pytest.mark.spec("PM-5", "ED-2")
def test_a_comment_goes_with_an_allow_and_can_be_changed_before(editor: Editor, model: Model, repo: Repo) -> None:
    shell(model, "touch made.txt")
    ask(editor)
    opened(editor, "c  Add a comment")
    editor.answer("c")
    editor.wait_for("Comment, sent along")
    editor.keys("but only this <CR>")
    editor.wait_for("With your comment: but only this", "c  Change the comment")
    editor.picture("answer-comment")
    editor.answer("c")
    editor.wait_for("Comment, sent along with your answer: but only this")
    editor.keys(" once<CR>")
    editor.wait_for("With your comment: but only this once")
    editor.answer("1")
    ended(editor)
    assert (repo.path / "made.txt").exists()
    assert "but only this once" in model.told()


@pytest.mark.spec("PM-5")
def test_reject_and_stop_ends_the_agent(editor: Editor, model: Model, repo: Repo) -> None:
    shell(model, "touch made.txt")
    ask(editor)
    screen = opened(editor, "Reject and stop the agent")
    key = re.search(r"(\d)  Reject and stop the agent", screen)
    assert key
    editor.answer(key[1])
    ended(editor, status="stopped")
    assert not (repo.path / "made.txt").exists()


@pytest.mark.spec("PM-5", "ED-2")
def test_b10_a_changed_input_is_what_runs_and_a_bad_one_is_told_and_kept(
    editor: Editor, model: Model, repo: Repo
) -> None:
    shell(model, "touch made.txt")
    ask(editor)
    opened(editor, "e  Edit the input", "3  Always allow")
    editor.answer("e")
    editor.wait_for('"command": "touch made.txt"', ":w  use it")
    editor.picture("answer-edit")
    editor.keys("ggVGc{ no<Esc>:w<CR>")
    editor.wait_for("Not used, this is no JSON that can run: ")
    assert editor.buffer == ["{ no"]
    assert waiting(editor) == 1
    editor.keys('ggVGc{"command": 5}<Esc>:w<CR>')
    screen = editor.wait_for("Your input, which runs instead:", '"command": 5', "Before your change:", "touch made.txt")
    assert "Always allow" not in screen  # a rule would name the old input
    editor.picture("answer-edited")
    editor.keys("23", settle=0.55)
    assert waiting(editor) == 1
    editor.answer("1")
    editor.wait_for("Your answer was not taken: updatedInput cannot run")
    assert waiting(editor) == 1
    editor.answer("e")
    editor.wait_for('"command": 5', ":w  use it")
    editor.keys('ggVGc{"command": "touch other.txt"}<Esc>:w<CR>')
    editor.wait_for('"command": "touch other.txt"', "u  Undo the edit")
    editor.answer("1")
    ended(editor)
    assert (repo.path / "other.txt").exists()
    assert not (repo.path / "made.txt").exists()


def test_an_edit_can_be_left_or_undone_and_the_question_comes_back(editor: Editor, model: Model, repo: Repo) -> None:
    shell(model, "touch made.txt \u202e #")
    editor.edit("app.py")
    ask(editor)
    opened(editor)
    editor.answer("e")
    editor.wait_for(r"touch made.txt \u202e #", ":w  use it")
    editor.keys("ggVGdifoo<Esc>:q!<CR>")
    editor.wait_for("Question 1 of 1", "touch made.txt")
    editor.answer("e")
    editor.wait_for(":w  use it")
    editor.keys(":%s/made/other/<CR>:w<CR>")
    editor.wait_for("u  Undo the edit", "other.txt")
    editor.answer("u")
    editor.wait_gone("other.txt")
    editor.keys("q")
    editor.wait_gone("Question 1")
    assert editor.nvim.current.buffer.name.endswith("app.py")
    assert waiting(editor) == 1


def test_a15_what_was_written_to_a_question_that_is_gone_is_told_and_not_lost(editor: Editor, model: Model) -> None:
    shell(model, "touch made.txt")
    ask(editor)
    opened(editor)
    editor.answer("r")
    editor.wait_for("Reject. Why not?")
    editor.lua("""
        local agents, client = require("agent_ls.agents"), require("agent_ls.client")
        client.request("stop", { agentId = agents.all()[1].id }, function() end)
    """)
    editor.wait_until(lambda: waiting(editor) == 0, "it is withdrawn")
    editor.keys("use make<CR>")
    editor.wait_until(lambda: "Not sent: use make" in editor.messages(), "the reason is told again")


# The queue


@pytest.mark.spec("ED-2", "PM-6")
def test_the_queue_is_named_one_can_go_through_it_and_what_is_withdrawn_takes_no_focus(
    editor: Editor, model: Model
) -> None:
    names = ["one", "two", "three"]
    model.says(
        *[
            conversation(say(use("Bash", command=f"touch {name}")), say("done"), first_user=f"make {name}", name=name)
            for name in names
        ]
    )
    for name in names:
        ask(editor, f"make {name}")
    opened(
        editor, "Question 1 of 3", "2 more wait: general-purpose (make two), general-purpose (make three)", "touch one"
    )
    editor.picture("answer-queue")
    editor.answer("<Tab>")
    editor.wait_for(
        "Question 2 of 3", "touch two", "2 more wait: general-purpose (make one), general-purpose (make three)"
    )
    with editor.too_early():
        editor.keys("1")  # meant for the one before
        assert waiting(editor) == 3
    before = editor.where
    first = next(each for each in editor.agents() if each["description"] == "make one")
    editor.command(f"Agent stop {first['id']}")
    editor.wait_for("Question 1 of 2", "touch two", "1 more waits: general-purpose (make three)")
    assert editor.where == before
    editor.answer("<S-Tab>")
    editor.wait_for("Question 2 of 2", "touch three")
    editor.answer("<Tab>")
    editor.wait_for("Question 1 of 2", "touch two")
    editor.answer("1")
    editor.wait_for("Question 1 of 1", "touch three")
    editor.answer("1")
    ended(editor, "make three")
    ended(editor, "make two")
    assert status_of(editor, "make one") == "stopped"


def test_a16_a_long_command_can_be_read_to_its_end_before_the_answer(editor: Editor, model: Model, repo: Repo) -> None:
    command = "touch made.txt\n" + "".join(f"echo {number}\n" for number in range(300)) + "echo " + "x" * 12000 + " END"
    shell(model, command)
    ask(editor)
    screen = opened(editor, "lines, scroll with j and k", "1  Allow once")
    assert "echo 299" not in screen
    editor.keys("/echo 299<CR>")
    editor.wait_for("echo 299", "1  Allow once")
    editor.keys("G")
    editor.wait_for("xxx END", "Directory: ", "1  Allow once")
    editor.answer("1")
    ended(editor)
    assert (repo.path / "made.txt").exists()


def test_every_key_of_a_question_is_in_the_help(editor: Editor, model: Model) -> None:
    shell(model, "touch made.txt")
    ask(editor)
    opened(editor)
    help_text = (PLUGIN / "doc" / "agent_ls.txt").read_text()
    section = help_text.partition("*agent_ls-questions*")[2].partition("\n=====")[0]
    mapped = {each["lhs"] for each in editor.nvim.current.buffer.api.get_keymap("n")}
    assert {"c", "e", "u", "b", "r", "q", "<Tab>", "<S-Tab>"} <= mapped
    for key in mapped - {str(number) for number in range(4, 10)}:
        assert re.search(rf"(^|\s){re.escape(key)}[\s,]", section), f"{key} is not in the help"


# Two editors


@pytest.fixture
def listening(shared: Shared, model: Model, repo: Repo, tmp_path: Path) -> Iterator[Path]:
    """The socket of a server that several editors join."""
    path = tmp_path / "socket"
    env = editor_environment(tmp_path / "server", shared.place / "cache", model)
    command = [str(NVIM.parent / "agent-ls"), "serve", "--listen", str(path)]
    with subprocess.Popen(command, env=env, cwd=repo.path, start_new_session=True) as process:
        yield path
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(20) == 0


@pytest.mark.spec("PM-8", "ED-2")
def test_an_answer_in_one_editor_closes_the_question_in_the_other(
    start: Start, listening: Path, model: Model, repo: Repo
) -> None:
    model.says(
        conversation(say(use("Bash", command="touch one")), say("done"), first_user="first", name="one"),
        conversation(say(use("Bash", command="touch two")), say("done"), first_user="second", name="two"),
    )
    here, there = start(), start()
    here.wait_until(listening.exists, "the server listens")
    setup = "require('agent_ls').setup({ cmd = { 'agent-ls', 'serve', '--connect', ... } })"
    for each in (here, there):
        each.lua(setup, str(listening))
        each.command("Agent list")
        each.wait_for("agents")
    here.command("Agent spawn first")
    for each in (here, there):
        each.wait_until(lambda each=each: waiting(each) == 1, "it asks in both")
    there.command("Agent spawn second")
    for each in (here, there):
        each.wait_until(lambda each=each: waiting(each) == 2, "both ask in both")
        opened(each, "Question 1 of 2", "touch one")
    here.answer("1")
    there.wait_for("Question 1 of 1", "touch two")
    there.wait_until(lambda: "Answered elsewhere, allowed once: Bash touch one" in there.messages(), "it is told")
    assert "Answered elsewhere" not in here.messages()
    here.wait_for("Question 1 of 1", "touch two")
    there.answer("r")
    there.wait_for("Why not?")
    there.keys("not two<CR>")
    here.wait_gone("Question 1")
    here.wait_until(lambda: "Answered elsewhere, rejected: Bash touch two" in here.messages(), "it is told")
    for name in ("first", "second"):
        ended(here, name)
    assert (repo.path / "one").exists()
    assert not (repo.path / "two").exists()
    assert "not two" in model.told()

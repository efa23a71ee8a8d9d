"""Answers in the real VS Code: where a lasting one is stored, comments, changed inputs, the queue, two editors at once.
By keys alone where a person can, and nothing answers that was meant for something else."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from lsp_server.demo.script import conversation, say, use
from tests.editors.nvim_editor import NVIM, Model
from tests.editors.vscode_editor import EXTENSION, Code, Window, again, until
from tests.editors.vscode_fixtures import clean_git, code, code_and_model, model, repo, shared_repo, vsix, win
from tests.git_helpers import Repo

__all__ = ["clean_git", "code", "code_and_model", "model", "repo", "shared_repo", "vsix", "win"]

pytestmark = pytest.mark.timeout(600)
FOLDER = "In this folder"
BLUR = "() => { document.hasFocus = () => false; window.dispatchEvent(new Event('blur')); }"
FOCUS = "() => { delete document.hasFocus; window.dispatchEvent(new Event('focus')); }"


def shell(model: Model, *commands: str, prompt: str = "go") -> None:
    calls = [say(use("Bash", command=command)) for command in commands]
    model.says(conversation(*calls, say("done"), first_user=prompt))


def asked(win: Window, prompt: str, *texts: str) -> None:
    """An agent is launched and its question opened, by keys; the links are there, so it may be answered."""
    win.show_agents()
    win.launch(prompt, FOLDER)
    win.status_is("1 needs you")
    win.command("Agent: Answer…")
    win.wait_text("Question 1 of 1", *texts)
    ready(win)


def ready(win: Window, link: str = "1 Allow once") -> None:
    expect(win.lens(link)).to_be_visible()
    expect(win.focused).to_be_visible()


def press_until(win: Window, key: str, effect: Locator) -> None:
    """Pressed again, as long as keys do not count yet."""
    again(lambda: None if effect.is_visible() else press(win, key), effect.is_visible, f"{key} has its effect")


def comments(win: Window) -> None:
    press_until(win, "c", win.asks("Comment"))


def press(win: Window, *keys: str) -> None:
    for key in keys:
        win.page.keyboard.press(key)


@pytest.mark.spec("PM-5", "ED-2")
def test_b4_a_lasting_answer_is_written_to_the_file_that_was_chosen(
    win: Window, model: Model, shared_repo: Repo, code_and_model: tuple[Code, Model]
) -> None:
    files = {
        "1": (
            shared_repo.path / ".claude" / "settings.local.json",
            "1  .claude/settings.local.json   you, in this folder",
        ),
        "2": (shared_repo.path / ".claude" / "settings.json", "2  .claude/settings.json         everybody who works"),
        "3": (code_and_model[0].place / "env" / "home" / ".claude" / "settings.json", "3  ~/.claude/settings.json "),
    }
    shell(model, *[f"touch kept{key}" for key in files], prompt="keep")
    win.show_agents()
    win.launch("keep it", FOLDER)
    for key, (file, shown) in files.items():
        rule = f"Bash(touch kept{key})"
        win.status_is("1 needs you")
        win.command("Agent: Answer…")
        win.wait_text(f"3  Always allow, in a file that you choose: {rule}")
        ready(win)
        press(win, "3")
        win.wait_text(f"Always allow: {rule}", "Store it in which file?", shown)
        ready(win, "b Back")
        win.sees(win.lens("3 ~/.claude/settings.json"))
        win.picture(f"answer-files-{key}")
        assert not (shared_repo.path / f"kept{key}").exists()
        press(win, key)
        until(lambda file=file: file.exists(), f"{file} is written")
        assert json.loads(file.read_text()) == {"permissions": {"allow": [rule]}}
        until(lambda key=key: (shared_repo.path / f"kept{key}").exists(), "it ran")
    expect(win.row("keep it", "done")).to_be_visible()


@pytest.mark.spec("ED-2")
def test_a14_keys_clicks_and_focus_that_are_not_for_the_question_answer_nothing(
    win: Window, model: Model, shared_repo: Repo
) -> None:
    shell(model, "touch a14")
    asked(win, "go a14", "touch a14")
    # The click that brings the window to the front, on the link itself.
    win.page.evaluate(BLUR)
    box = win.lens("1 Allow once").bounding_box()
    assert box
    win.page.evaluate(FOCUS)
    win.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    win.page.keyboard.press("1")
    ready(win)
    # A comment that is closed, however it is closed, and what is typed right after it.
    for closing in ("Escape", "Shift+Tab", "Enter"):
        comments(win)
        win.page.keyboard.type("1")
        press(win, closing, "1")
        if win.asks("Comment").is_visible():
            win.entry.press("Escape")
            press(win, "1")
        expect(win.asks("Comment")).to_be_hidden()
        win.command("Agent: Answer…")
        ready(win)
    win.wait_text("Your comment goes along: 1")
    press(win, "Enter", "Escape", "Space", "y", "a", "Tab", "Shift+Tab")
    # The first moment of the second step, in which the same key would choose a file.
    press(win, "3", "3")
    win.wait_text("Store it in which file?")
    ready(win, "b Back")
    press(win, "Enter", "Escape", "Space", "r", "c", "e")
    press(win, "b")
    win.wait_text("1  Allow once")
    win.status_is("1 needs you")
    assert not (shared_repo.path / "a14").exists()
    ready(win)
    win.answer("Reject and stop")
    expect(win.row("go a14", "stopped")).to_be_visible()


@pytest.mark.spec("PM-5", "ED-2")
def test_b10_a_comment_and_a_changed_input_go_along_and_a_bad_input_is_told_and_kept(
    win: Window, model: Model, shared_repo: Repo
) -> None:
    shell(model, "touch agents")
    asked(win, "go edit", r"touch agents")
    comments(win)
    win.fill("Comment", "mine instead")
    win.wait_text("Your comment goes along: mine instead", "c  Change the comment")
    ready(win)
    use_it = win.lens("Use this input (save)")
    press_until(win, "e", use_it)
    win.wait_text(r'"command": "touch agents"')
    win.picture("answer-edit")
    toast = win.page.locator(".notification-toast")

    def write(text: str) -> None:
        expect(win.focused).to_be_visible()
        press(win, "Control+a", "Delete")
        win.page.keyboard.insert_text(text)
        win.wait_text(text)
        press(win, "Control+s")

    write("{ no")
    expect(toast.filter(has_text="Not used: this is no JSON that can run.")).to_be_visible()
    win.wait_text("{ no")
    write('{"command": 5}')
    text = win.wait_text("Your input, which runs instead:", '"command": 5', "Before your change:", "touch agents")
    assert "Always allow" not in text  # a rule would name the old input
    ready(win)
    win.picture("answer-edited")
    press(win, "2", "3")
    press_until(win, "1", toast.filter(has_text="Your answer was not taken: updatedInput cannot run"))
    win.status_is("1 needs you")
    press_until(win, "e", use_it)
    win.wait_text('"command": 5')
    write('{"command": "touch mine"}')
    win.wait_text('"command": "touch mine"', "u  Undo the edit")
    ready(win)
    win.answer("1 Allow once")
    expect(win.row("go edit", "done")).to_be_visible()
    assert (shared_repo.path / "mine").exists()
    assert not (shared_repo.path / "agents").exists()
    assert "mine instead" in model.told()
    win.command("Notifications: Clear All Notifications")


@pytest.mark.spec("ED-2", "PM-6")
def test_the_queue_is_named_one_can_go_through_it_and_what_is_withdrawn_takes_no_focus(
    win: Window, model: Model, shared_repo: Repo
) -> None:
    names = ("uno", "due", "tre")
    model.says(
        *[
            conversation(say(use("Bash", command=f"touch {name}")), say("done"), first_user=f"make {name}", name=name)
            for name in names
        ]
    )
    win.show_agents()
    for number, name in enumerate(names):
        win.launch(f"make {name}", FOLDER)
        win.status_is("1 needs you" if number == 0 else f"{number + 1} need you")
    win.command("Agent: Answer…")
    win.wait_text("Question 1 of 3. Also waiting: general-purpose (make due), general-purpose (make tre)", "touch uno")
    ready(win)
    win.picture("answer-queue")
    press(win, "n", "1")  # the second is meant for the one before
    win.wait_text("Question 2 of 3", "touch due", "Also waiting: general-purpose (make uno)")
    ready(win)
    win.action(win.row("make tre").filter(has_not_text="Asks:").first, "Stop", win.row("make tre", "stopped"))
    win.wait_text("Question 2 of 2. Also waiting: general-purpose (make uno)", "touch due")
    win.edit("app.py")
    win.action(win.row("make uno").filter(has_not_text="Asks:").first, "Stop", win.row("make uno", "stopped"))
    win.status_is("1 needs you")
    expect(win.tab("app.py").and_(win.page.locator(".active"))).to_be_visible()
    win.command("Agent: Answer…")
    win.wait_text("Question 1 of 1", "touch due")
    win.answer("1 Allow once")
    expect(win.row("make due", "done")).to_be_visible()
    assert sorted(name for name in names if (shared_repo.path / name).exists()) == ["due"]


def test_a16_a_long_command_can_be_read_to_its_end_before_the_answer(
    win: Window, model: Model, shared_repo: Repo
) -> None:
    lines = "".join(f"echo {number}\n" for number in range(200))
    shell(model, f"touch long\n{lines}echo " + "x" * 12000 + " END")
    win.show_agents()
    win.launch("go long", FOLDER)
    win.status_is("1 needs you")
    win.command("Agent: Answer…")
    win.wait_text("Question 1 of 1", "touch long")
    press(win, "Control+End")
    win.wait_text("xxx END", "Directory: ", "1  Allow once")
    win.picture("answer-long")
    assert not (shared_repo.path / "long").exists()
    ready(win)
    press(win, "1")
    expect(win.row("go long", "done")).to_be_visible()
    until(lambda: (shared_repo.path / "long").exists(), "it ran")


def test_every_key_of_a_question_is_in_the_readme() -> None:
    package = json.loads((EXTENSION / "package.json").read_text())
    keys = {each["key"] for each in package["contributes"]["keybindings"]}
    readme = (EXTENSION / "README.md").read_text()
    for key in keys - {str(number) for number in range(4, 10)}:
        assert re.search(rf"^\| .*`{key}`.* \|", readme, re.MULTILINE), key


# Two editors


@pytest.fixture
def listening(code_and_model: tuple[Code, Model], repo: Repo, tmp_path: Path) -> Iterator[Path]:
    """The socket of a server that several editors join."""
    path = tmp_path / "socket"
    command = [str(NVIM.parent / "agent-ls"), "serve", "--listen", str(path)]
    with subprocess.Popen(command, env=code_and_model[0].env, cwd=repo.path, start_new_session=True) as process:
        until(path.exists, "the server listens")
        yield path
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(20) == 0


@pytest.mark.spec("PM-8", "ED-2")
def test_an_answer_in_one_window_closes_the_question_in_the_other(
    code: Code, model: Model, repo: Repo, listening: Path
) -> None:
    shell(model, "touch one", "touch two")
    command = [str(NVIM.parent / "agent-ls"), "serve", "--connect", str(listening)]
    code.settings({"agentLs.command": command})
    here, there = code.open(repo.path), code.open(repo.path)
    there.show_agents()
    asked(here, "go", "touch one")
    there.status_is("1 needs you")
    there.command("Agent: Answer…")
    there.wait_text("touch one")
    here.answer("1 Allow once")
    told(there, "Answered elsewhere, allowed once: Bash touch one")
    there.picture("answered-elsewhere")
    until(lambda: (repo.path / "one").exists(), "it ran")
    there.wait_text("touch two")
    here.status_is("1 needs you")
    here.command("Agent: Answer…")
    here.wait_text("touch two")
    ready(there)
    there.answer("Reject and stop")
    told(here, "Answered elsewhere, rejected, and the agent stopped: Bash touch two")
    expect(here.page.locator(".notification-toast")).to_have_count(1)  # nobody is told of an own answer
    here.wait_text("No question is open.")
    for each in (here, there):
        expect(each.row("go", "stopped")).to_be_visible()
    assert not (repo.path / "two").exists()


def told(window: Window, text: str) -> None:
    expect(window.page.locator(".notification-toast").filter(has_text=text)).to_be_visible()

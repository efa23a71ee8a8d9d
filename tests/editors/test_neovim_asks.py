"""Questions of agents in a real Neovim: they wait, name who asks and for whom, and never take a key by surprise."""

from __future__ import annotations

from typing import Any

import pytest

from lsp_server.demo.script import conversation, say, use
from tests.editors.nvim_editor import Editor, Model
from tests.editors.nvim_fixtures import clean_git, editor, model, repo, shared, start
from tests.git_helpers import Repo

__all__ = ["clean_git", "editor", "model", "repo", "shared", "start"]

SPOOF = "make test" + " " * 500 + "\u202e; rm -rf /\t#\u200b"


def shell(model: Model, *commands: str, last: str = "done") -> None:
    """The next agents run these one after the other."""
    model.says(conversation(*[say(use("Bash", command=command)) for command in commands], say(last)))


def ask(editor: Editor, prompt: str = "go", count: int = 1) -> None:
    """Launches an agent and waits for its question."""
    before = waiting(editor)
    editor.command(f"Agent spawn {prompt}")
    editor.wait_until(lambda: waiting(editor) == before + count, "it asks")


def waiting(editor: Editor) -> int:
    return int(editor.lua("return require('agent_ls.permission').count()"))


def status_of(editor: Editor, prompt: str) -> Any:
    return next(each for each in editor.agents() if each["description"] == prompt)["status"]


def ended(editor: Editor, prompt: str = "go", status: str = "completed") -> Any:
    editor.wait_until(lambda: status_of(editor, prompt) == status, f"{prompt}: {status}")


@pytest.mark.spec("ED-2")
def test_a_question_shows_all_of_it_and_its_answer_runs_the_call(editor: Editor, model: Model, repo: Repo) -> None:
    shell(model, "/bin/echo hello > made.txt")
    ask(editor)
    editor.command("Agent approve")
    screen = editor.wait_for("Question 1 of 1")
    for text in (
        "general-purpose (go)",
        "asks: ",
        "Command:",
        "  /bin/echo hello > made.txt",
        "Directory: ",
        " 1  Allow once",
        " r  Reject and say why   q  Decide later",
    ):
        assert text in screen
    editor.answer("1")
    ended(editor)
    assert (repo.path / "made.txt").read_text() == "hello\n"


def test_a14_nothing_is_allowed_by_accident(editor: Editor, model: Model, repo: Repo) -> None:
    """No focus moves when a question comes, no key answers in the first moment, and Enter never allows."""
    shell(model, "touch made.txt")
    editor.edit("app.py")
    editor.keys("ihello ")
    before = editor.where
    ask(editor)
    editor.wait_for("general-purpose (go) asks: Bash touch made.txt  :Agent approve")
    editor.picture("ask-while-typing")
    assert (editor.where, editor.mode) == (before, "i")
    editor.keys("1<Esc>")
    editor.wait_until(lambda: editor.buffer[0] == "hello 1line_1 = 1", "what is typed goes to the text")
    assert waiting(editor) == 1

    with editor.too_early():
        editor.keys(":Agent approve<CR>1<CR>")  # typed ahead
        editor.wait_for("Question 1 of 1")
        assert waiting(editor) == 1
    editor.keys("<CR><Esc><Space>yY", settle=0.5)
    assert editor.wait_for("Question 1 of 1")
    assert waiting(editor) == 1
    assert not (repo.path / "made.txt").exists()
    editor.keys("q")
    editor.wait_gone("Question 1")
    assert waiting(editor) == 1
    assert editor.status() == "agents: 1 needs you, 1 running"


def test_a14_the_next_question_has_its_own_guard_time(editor: Editor, model: Model, repo: Repo) -> None:
    model.says(
        conversation(say(use("Bash", command="/bin/echo one")), say("done"), first_user="go", name="one"),
        conversation(say(use("Bash", command="touch three")), say("done"), first_user="other", name="other"),
    )
    ask(editor)
    ask(editor, "other")
    editor.command("Agent approve")
    editor.wait_for("Question 1 of 2")
    editor.answer("1")
    with editor.too_early():
        editor.wait_for("Question 1 of 1", "touch three")
        editor.keys("1")
        assert waiting(editor) == 1
    assert not (repo.path / "three").exists()
    editor.answer("4")  # Reject
    ended(editor, "other")


def test_a_reason_goes_to_the_agent(editor: Editor, model: Model) -> None:
    shell(model, "rm -rf build", last="I see.")
    ask(editor)
    editor.command("Agent approve")
    editor.wait_for("Reject and say why")
    editor.answer("r")
    editor.wait_for("Why not?")
    editor.keys("use make clean<CR>")
    ended(editor)
    assert "use make clean" in model.told()


def test_a16_hidden_characters_are_written_out_and_nothing_is_left_out(editor: Editor, model: Model) -> None:
    shell(model, SPOOF)
    ask(editor)
    editor.command("Agent approve")
    screen = editor.wait_for("Question 1 of 1")
    assert "make test<500 spaces>\\u202e; rm -rf /\\u0009#\\u200b" in screen
    assert "Always" not in screen


def test_a7_progress_of_a_call_leaves_its_question_open(editor: Editor, model: Model, repo: Repo) -> None:
    shell(model, "touch made.txt")
    ask(editor)
    editor.command("Agent approve")
    editor.wait_for("Question 1 of 1")
    editor.lua("""
        local agents = require("agent_ls.agents")
        local info = agents.all()[1]
        local handler = require("agent_ls.client").get().handlers["agent/progress"]
        for _, status in ipairs({ "in_progress", "completed" }) do
          local event = { kind = "toolUpdate", toolCallId = "toolu_1", status = status, output = {} }
          handler(nil, { agentId = info.id, rootId = info.rootId, seq = 1, at = info.startedAt, event = event })
        end
    """)
    assert "Question 1 of 1" in editor.text
    editor.answer("1")
    ended(editor)
    assert (repo.path / "made.txt").exists()


def test_a19_a26_a_question_from_any_depth_is_shown_and_stopping_withdraws_it(editor: Editor, model: Model) -> None:
    child = use("Agent", description="Child job", prompt="child go")
    model.says(
        conversation(say(child), say("over"), first_user="root go", name="root"),
        conversation(say(use("Bash", command="touch deep")), say("x"), first_user="child go", name="child"),
    )
    editor.edit("app.py")
    ask(editor, "root go")
    editor.command("Agent approve")
    editor.wait_for("general-purpose (Child job)", "for general-purpose (root go)")
    root = next(each for each in editor.agents() if each["description"] == "root go")
    editor.command(f"Agent stop {root['id']}")
    editor.wait_gone("Question 1 of 1")
    editor.wait_for("Stopped: root go")
    assert (waiting(editor), editor.status()) == (0, "")
    assert editor.nvim.current.buffer.name.endswith("app.py")
    assert {status_of(editor, "root go"), status_of(editor, "Child job")} == {"stopped"}


def test_a21_a_question_needs_no_open_view(editor: Editor, model: Model) -> None:
    """Also one that came before anybody looked, or that this client forgot: the server keeps the record."""
    shell(model, "/bin/echo hello")
    ask(editor)
    assert editor.nvim.api.list_bufs() and "agents://" not in " ".join(b.name for b in editor.nvim.buffers)
    editor.lua("""
        local name, permission = "agent_ls.permission", require("agent_ls.permission")
        _G.params = nil
        require("agent_ls.client").request("permissions", {}, function(result) _G.params = result.requests end)
        vim.wait(5000, function() return _G.params ~= nil end, 10)
        for _, each in ipairs(_G.params) do permission.withdraw(each.requestId) end
    """)
    assert waiting(editor) == 0
    editor.lua("""
        for _, each in ipairs(_G.params) do require("agent_ls.permission").add(each) end
    """)
    assert waiting(editor) == 1
    editor.command("Agent approve")
    editor.wait_for("/bin/echo hello")
    editor.answer("1")
    ended(editor)


def test_a_question_answered_elsewhere_closes_its_window(editor: Editor, model: Model) -> None:
    shell(model, "/bin/echo hello")
    ask(editor)
    editor.command("Agent approve")
    editor.wait_for("Question 1 of 1")
    editor.lua("""
        local client = require("agent_ls.client")
        client.request("permissions", {}, function(result)
          local request = result.requests[1]
          client.request("answer", { requestId = request.requestId, optionId = request.options[1].id }, function() end)
        end)
    """)
    editor.wait_gone("Question 1 of 1")
    ended(editor)


@pytest.mark.parametrize("size", [(100, 30), (60, 24)])
def test_d24_the_diff_is_on_the_screen_before_a_key_counts(
    editor: Editor, model: Model, size: tuple[int, int], repo: Repo
) -> None:
    new = "".join(f"line_{n} = {n + 1}\n" for n in range(1, 41))
    old = (repo.path / "app.py").read_text()
    model.says(
        conversation(
            say(use("Read", file_path="app.py")),
            say(use("Edit", file_path="app.py", old_string=old, new_string=new)),
            say("done"),
        )
    )
    editor.resize(*size)
    ask(editor, "mode=default go")
    editor.command("Agent approve")
    screen = editor.wait_for("Question 1 of 1", "-line_1 = 1", "lines, scroll with j and k")
    editor.picture(f"ask-diff-{size[0]}")
    whole(screen, size)
    for number in range(1, 4):
        assert f"│ {number}  " in screen
    assert "Reject and say why   q  Decide later" in screen
    with editor.too_early():
        editor.keys("1")
        assert waiting(editor) == 1
    editor.keys("/+line_40<CR>")
    editor.wait_for("+line_40 = 41")
    editor.answer("1")
    ended(editor)
    assert (repo.path / "app.py").read_text() == new


def whole(screen: str, size: tuple[int, int]) -> None:
    """The frames of both windows are on the screen, from corner to corner, and nothing runs over them."""
    lines = screen.split("\n")
    tops = [line for line in lines if "┌" in line]
    assert len(tops) == 2 and all("┐" in line for line in tops)
    left, right = tops[0].index("┌"), tops[0].index("┐")
    first, last = lines.index(tops[0]), max(row for row, line in enumerate(lines) if "└" in line)
    for line in lines[first : last + 1]:
        assert (line[left], line[right]) in {("┌", "┐"), ("│", "│"), ("└", "┘")}
    assert (right < size[0], last < size[1] - 1) == (True, True)

"""The command, the list, the log, the start and the end of the server, in a real Neovim."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import psutil
import pytest

from lsp_server.demo.script import conversation, say, use
from tests.editors.nvim_editor import PLUGIN, Editor, Model
from tests.editors.nvim_fixtures import Start, clean_git, editor, model, repo, shared, start
from tests.git_helpers import Repo

__all__ = ["clean_git", "editor", "model", "repo", "shared", "start"]


NAMES = ["spawn", "list", "approve", "review", "finish", "stop", "background", "resume", "send", "fork", "log", "trust"]


def sent(editor: Editor, command: str) -> dict[str, object]:
    """What `:Agent spawn` would send."""
    editor.lua("""
        local client = require("agent_ls.client")
        _G.real = _G.real or client.request
        client.request = function(name, params, ...)
          if name ~= "spawn" then return _G.real(name, params, ...) end
          _G.sent = params
        end
        _G.sent = nil
    """)
    try:
        editor.command(command)
        editor.wait_until(lambda: editor.lua("return _G.sent ~= nil"), command)
        found: dict[str, object] = editor.lua("return _G.sent")
        return found
    finally:
        editor.lua("require('agent_ls.client').request = _G.real")


def test_the_plugin_loads_nothing_until_it_is_used(start: Start) -> None:
    fresh = start()
    loaded = "return vim.tbl_filter(function(n) return vim.startswith(n, 'agent_ls') end, vim.tbl_keys(package.loaded))"
    assert (fresh.lua(loaded), fresh.nvim.funcs.exists(":Agent")) == ([], 2)
    assert fresh.nvim.funcs.getcompletion("Agent ", "cmdline") == NAMES


def test_with_no_file_open_everything_works(start: Start, model: Model, repo: Repo) -> None:
    model.says(
        conversation(
            say(use("Bash", command="/bin/echo hello")),
            say(use("Write", file_path="new.txt", content="x\n")),
            say("done"),
        )
    )
    editor = start(size=(60, 20))
    editor.command("Agent list")
    editor.wait_for("No agents yet. :Agent spawn")
    editor.picture("list-empty-60")
    editor.command("Agent spawn isolation=worktree mode=acceptEdits go")
    editor.wait_for("NEEDS YOU")
    editor.keys("a")
    editor.wait_for("Question 1 of 1")
    editor.answer("1")
    editor.wait_for("to review")
    editor.keys("gg/go<CR>r")
    editor.wait_for("new.txt", "added, 1 open")
    editor.keys("A")
    editor.wait_for("Accepted 1 change, 0 left.")
    assert (repo.path / "new.txt").read_text() == "x\n"
    editor.keys("q")
    editor.wait_for("<CR> log")
    editor.keys("<CR>")
    editor.wait_for("Log of go", "completed")
    editor.picture("log-60")


def test_words_before_the_prompt_are_options(editor: Editor, model: Model, repo: Repo) -> None:
    cwd = str(repo.path)
    assert sent(editor, "Agent spawn model=opus isolation=worktree name=x mode=plan Explore look at a=b") == {
        "model": "opus",
        "isolation": "worktree",
        "name": "x",
        "permissionMode": "plan",
        "agentType": "Explore",
        "prompt": "look at a=b",
        "cwd": cwd,
    }
    assert sent(editor, "Agent spawn -- Explore this") == {"prompt": "Explore this", "cwd": cwd}
    assert sent(editor, "Agent spawn why=this way") == {"prompt": "why=this way", "cwd": cwd}
    words = editor.nvim.funcs.getcompletion("Agent spawn ", "cmdline")
    assert {"Explore", "general-purpose", "isolation=", "mode=", "model=", "name=", "type="} <= set(words)
    assert editor.nvim.funcs.getcompletion("Agent spawn iso", "cmdline") == ["isolation="]
    assert editor.nvim.funcs.getcompletion("Agent spawn isolation=", "cmdline") == [
        "isolation=worktree",
        "isolation=none",
    ]


def test_a_range_is_told_with_its_diagnostics(editor: Editor, model: Model, repo: Repo) -> None:
    editor.edit("app.py")
    editor.lua("""
        local row = function(n, text) return { lnum = n, col = 0, message = text, severity = 1 } end
        vim.diagnostic.set(vim.api.nvim_create_namespace("test"), 0, { row(2, "wrong here"), row(9, "elsewhere") })
    """)
    params = sent(editor, "2,4Agent spawn why?")
    context = params["context"]
    assert isinstance(context, dict)
    assert context["uri"] == (repo.path / "app.py").as_uri()
    assert context["range"] == {"start": {"line": 1, "character": 0}, "end": {"line": 3, "character": 10}}
    assert [each["message"] for each in context["diagnostics"]] == ["wrong here"]
    model.says(conversation(say("because")))
    editor.command("2,4Agent spawn why?")
    editor.wait_for("Agent done: why?")
    assert f"The user is looking at {repo.path}/app.py, lines 2 to 4." in model.told()
    assert "wrong here" in model.told()


@pytest.mark.parametrize("size", [(100, 30), (60, 20)])
def test_the_list_fits_and_shows_every_depth(editor: Editor, model: Model, size: tuple[int, int]) -> None:
    long = "A very long description of a job that does not fit into any list that is as narrow as this one is here"
    model.says(
        conversation(
            say(
                use("Agent", description=long, prompt="child one"),
                use("Agent", description="Überprüfe 日本語 text", prompt="child two"),
            ),
            say("over"),
            first_user="root go",
            name="root",
        ),
        conversation(say(use("Bash", command="/bin/echo " + "x" * 200)), say("x"), first_user="child one", name="one"),
        conversation(say("x", gate="never"), first_user="child two", name="two"),
    )
    editor.resize(*size)
    editor.edit("app.py")
    editor.command("Agent spawn root go")
    editor.command("Agent list")
    editor.wait_for("NEEDS YOU")
    editor.wait_until(lambda: editor.status() == "agents: 1 needs you, 3 running", "all three run")
    screen = editor.wait_for("日本語")
    editor.picture(f"list-{size[0]}")
    lines = screen.split("\n")
    assert all(len(line) <= size[0] for line in lines)
    badge = next(line for line in lines if "NEEDS YOU" in line)
    assert re.match(r"[├└] ▶ A very long .*… +NEEDS YOU", badge)
    assert any(re.match(r"[├└] ▶ Überprüfe 日本語 text +running", line) for line in lines)
    assert " <CR> log  r review  s stop  a approve  q close  g? more" in screen
    if size[0] == 60:
        assert badge.endswith(" NEEDS YOU")
        assert re.search(r"\n +\d+s · .*general-purpose · Bash /bin.*…", screen)


def test_the_cursor_of_the_list_stays_on_its_agent(editor: Editor, model: Model) -> None:
    model.says(conversation(say("done")))
    editor.command("Agent spawn first job")
    editor.wait_for("Agent done: first job")
    editor.command("Agent list")
    editor.wait_for("first job")
    editor.command("call search('first job', 'cw')")  # not typed: what is typed may still wait when the next one comes
    assert "first job" in editor.buffer[editor.nvim.current.window.cursor[0] - 1]
    editor.command("Agent spawn second job")
    editor.wait_for("second job")
    editor.wait_for("Agent done: second job")
    row = editor.nvim.current.window.cursor[0]
    assert "first job" in editor.buffer[row - 1]


def test_the_log_follows(editor: Editor, model: Model) -> None:
    model.says(conversation(say("First words.", use("Bash", command="/bin/true")), say("Last words.")))
    editor.edit("app.py")
    editor.command("Agent spawn go")
    editor.wait_for(":Agent approve")
    editor.command(f"Agent log {editor.agents()[0]['id']}")
    editor.wait_for("Log of go", "First words.", "Asked for permission")
    assert editor.nvim.current.buffer.options["buftype"] == "nofile"
    editor.command("Agent approve")
    editor.wait_for("Allow once")
    editor.answer("1")
    editor.wait_for("Last words.", "completed")
    assert editor.nvim.current.window.cursor[0] == len(editor.buffer)
    editor.picture("log-100")


def test_stop_lets_choose_when_several_run(editor: Editor, model: Model) -> None:
    model.says(conversation(say("x", gate="never")))
    editor.lua("""
        vim.ui.select = function(items, options, choose)
          _G.shown = vim.tbl_map(options.format_item, items)
          choose(items[2])
        end
    """)
    editor.command("Agent spawn name=one go one")
    editor.wait_until(lambda: editor.status() == "agents: 1 running", "the first one runs")
    editor.command("Agent spawn name=two go two")
    editor.wait_until(lambda: editor.status() == "agents: 2 running", "both run")
    editor.command("Agent stop")
    editor.wait_for("Stopped: one (go one)")
    assert editor.lua("return _G.shown") == [
        "two (go two)  running, general-purpose",
        "one (go one)  running, general-purpose",
    ]
    assert editor.nvim.funcs.getcompletion("Agent stop ", "cmdline") == ["two"]
    editor.command("Agent stop nobody")
    editor.wait_for('There is no agent "nobody"')


def test_faults_name_the_setting_and_the_way_out(editor: Editor) -> None:
    for given, told in {
        "{ comand = 1 }": 'there is no setting "comand"; there are: cmd, env, ',
        "{ cmd = 'agent-ls' }": 'cmd must be a table, not "agent-ls"',
        "{ guard_ms = '1' }": "guard_ms must be a number",
    }.items():
        assert told in editor.lua(f"return select(2, pcall(require('agent_ls').setup, {given}))")
    editor.command("Agent dance")
    editor.wait_for(":Agent dance: there is no such command; there are: spawn, list, ")
    editor.command("Agent spawn model=nonsense go")
    editor.wait_for("nonsense")


def test_a_missing_server_is_told_and_can_be_set(start: Start) -> None:
    editor = start(size=(60, 20))
    editor.lua("require('agent_ls').setup({ cmd = { 'no-such-program' } })")
    editor.command("Agent list")
    editor.wait_for('"no-such-program" was not found', "setup({ cmd =")
    assert editor.mode == "n"
    editor.lua("require('agent_ls').setup()")
    editor.command("Agent list")
    editor.wait_until(lambda: editor.lua("return require('agent_ls.client').running()"), "it runs now")


def test_a_server_that_dies_is_told_with_its_last_words_and_starts_again(
    start: Start, model: Model, tmp_path: Path
) -> None:
    program = tmp_path / "dying"
    program.write_text("#!/bin/sh\necho not important >&2\necho the disk is full >&2\nexit 3\n")
    program.chmod(0o755)
    model.says(conversation(say(use("Bash", command="/bin/true")), say("done")))
    editor = start("app.py")
    editor.lua("require('agent_ls').setup({ cmd = { ... } })", str(program))
    editor.command("Agent list")
    editor.wait_for("The agent server ended (code 3): the disk is full. :Agent list starts it again")
    assert (editor.mode, editor.status()) == ("n", "agents: server ended")
    editor.lua("require('agent_ls').setup()")
    editor.command("Agent spawn go")
    editor.wait_for("NEEDS YOU")
    editor.command("Agent approve")
    editor.wait_for("Question 1 of 1")
    [server] = children(editor.process)
    os.kill(server, signal.SIGKILL)
    editor.wait_for("The agent server ended (signal 9)")
    editor.wait_gone("Question 1 of 1")
    assert editor.status() == "agents: server ended"
    editor.command("Agent list")
    editor.wait_for("interrupted")
    editor.wait_until(lambda: editor.status() == "", "it runs again")


def test_no_server_outlives_its_editor(start: Start) -> None:
    editor = start("app.py")
    editor.command("Agent list")
    editor.wait_until(lambda: editor.lua("return require('agent_ls.client').running()"), "it runs")
    [server] = children(editor.process)
    editor.quit()
    end = time.monotonic() + 10
    while psutil.pid_exists(server) and time.monotonic() < end:
        time.sleep(0.05)
    assert not psutil.pid_exists(server)


def children(process: int) -> list[int]:
    """Of Neovim: the server, which `sh` has become."""
    found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(each) for each in found]


def test_questions_that_wait_are_offered_again_to_a_view_that_comes_late(editor: Editor, model: Model) -> None:
    """`agent/permissions` on connecting; see also A21."""
    model.says(conversation(say(use("Bash", command="/bin/true")), say("done")))
    editor.command("Agent spawn go")
    editor.wait_for(":Agent approve")
    editor.lua("""
        package.loaded["agent_ls.permission"] = nil
        local permission = require("agent_ls.permission")
        _G.before = permission.count()
        require("agent_ls.client").request("permissions", {}, function(result)
          for _, each in ipairs(result.requests) do permission.add(each) end
        end)
    """)
    editor.wait_until(lambda: editor.lua("return require('agent_ls.permission').count()") == 1, "it is known again")
    assert editor.lua("return _G.before") == 0


def test_checkhealth_and_help(editor: Editor) -> None:
    editor.command("Agent list")
    editor.wait_until(lambda: editor.lua("return require('agent_ls.client').running()"), "it runs")
    editor.command("checkhealth agent_ls")
    report = "\n".join(editor.buffer)
    for text in ("Neovim 0.11.4", "cmd: agent-ls serve", "git version", "connected, protocol version 1", "review in"):
        assert text in report
    assert "ERROR" not in report
    editor.command(f"helptags {PLUGIN}/doc")
    try:
        for tag in (":Agent-spawn", "agent_ls-review", "agent_ls.statusline()"):
            editor.command(f"help {tag}")
            assert editor.nvim.current.buffer.name.endswith("agent_ls.txt")
    finally:
        (PLUGIN / "doc" / "tags").unlink()

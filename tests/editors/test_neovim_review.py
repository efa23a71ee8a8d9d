"""Reviews in a real Neovim: by hunk, against what the user has open, and nothing is accepted but by a key for it."""

from __future__ import annotations

from typing import Any

import pytest

from lsp_server.demo.script import conversation, say, use
from tests.editors.nvim_editor import Editor, Model
from tests.editors.nvim_fixtures import FILES, clean_git, editor, model, repo, shared, start
from tests.git_helpers import Repo

__all__ = ["clean_git", "editor", "model", "repo", "shared", "start"]

LINES = FILES["app.py"].splitlines()
TWO = (("line_3 = 3\n", "line_3 = 33\n"), ("line_30 = 30\n", "line_30 = 300\n"))
"""Two changes far apart, each a hunk of its own."""


def change(path: str, *changes: tuple[str, str]) -> list[Any]:
    """The calls that make them: the file is read first."""
    edits = [use("Edit", file_path=path, old_string=old, new_string=new) for old, new in changes]
    return [use("Read", file_path=path), *edits]


def isolated(editor: Editor, model: Model, *calls: Any) -> None:
    """An agent whose calls (one after the other) leave changes in a worktree, done and ready for review."""
    model.says(conversation(*[say(call) for call in calls], say("done")))
    launch(editor, "isolation=worktree mode=acceptEdits")
    editor.wait_until(lambda: newest(editor)["status"] == "completed", "it is done")


def launch(editor: Editor, options: str) -> None:
    before = {each["id"] for each in editor.agents()}
    editor.command(f"Agent spawn {options} name=worker go")
    editor.wait_until(lambda: {each["id"] for each in editor.agents()} - before, "it is launched")


def newest(editor: Editor) -> Any:
    return editor.agents()[0]


def review(editor: Editor) -> None:
    editor.command(f"Agent review {newest(editor)['id']}")
    editor.wait_for("proposed: ")


def saved(repo: Repo, path: str = "app.py") -> str:
    return (repo.path / path).read_bytes().decode()


def replaced(lines: list[str], *changes: tuple[str, str]) -> list[str]:
    text = "\n".join([*lines, ""])
    for old, new in changes:
        text = text.replace(old, new)
    return text.splitlines()


def test_d1_unsaved_changes_are_reviewed_against_and_kept(editor: Editor, model: Model, repo: Repo) -> None:
    number = editor.edit("app.py")
    isolated(editor, model, *change("app.py", *TWO))
    editor.nvim.current.buffer[9] = "mine = 1"
    editor.nvim.current.buffer[0:0] = ["# mine too"]
    review(editor)
    screen = editor.wait_for("now: app.py (your buffer, not saved)", "# mine too", "line_3 = 33", "[ ] line 4 ")
    assert "E37" not in screen + editor.messages()
    editor.keys("A")
    editor.wait_for("Accepted 2 changes, 0 left.")
    mine = LINES.copy()
    mine[9] = "mine = 1"
    assert editor.lines(number) == ["# mine too", *replaced(mine, *TWO)]
    assert saved(repo) == FILES["app.py"]
    assert editor.nvim.buffers[number].options["modified"]


def test_d2_accepting_writes_nothing_and_runs_no_formatter(editor: Editor, model: Model, repo: Repo) -> None:
    number = editor.edit("app.py")
    editor.lua("""
        _G.writes = 0
        vim.api.nvim_create_autocmd({ "BufWritePre", "BufWriteCmd", "FileWritePre" }, {
          group = vim.api.nvim_create_augroup("formatter", {}),
          callback = function()
            _G.writes = _G.writes + 1
            vim.cmd("silent! %s/ = /=/")
          end,
        })
    """)
    isolated(editor, model, *change("app.py", *TWO))
    review(editor)
    editor.keys("A")
    editor.wait_for("Accepted 2 changes, 0 left.")
    editor.lua("vim.api.nvim_create_augroup('formatter', {})")
    assert editor.lua("return _G.writes") == 0
    assert editor.lines(number) == replaced(LINES, *TWO)
    assert saved(repo) == FILES["app.py"]


def test_d3_saving_or_closing_the_proposal_accepts_nothing(editor: Editor, model: Model, repo: Repo) -> None:
    number = editor.edit("app.py")
    editor.lua("""
        vim.api.nvim_create_autocmd({ "InsertLeave", "TextChanged", "BufLeave", "BufWinEnter" }, {
          group = vim.api.nvim_create_augroup("autosave", {}),
          callback = function() vim.cmd("silent! write") vim.cmd("silent! update") end,
        })
    """)
    isolated(editor, model, *change("app.py", *TWO))
    review(editor)
    for window in "jkl":
        editor.keys(f"<C-w>{window}ix<Esc>:w<CR><CR>:wall<CR><CR>:update<CR><CR>")
    buffers = [each for each in editor.nvim.buffers if each.name.startswith("agents://")]
    kinds = {
        (each.options["buftype"], each.options["modifiable"], each.options["swapfile"], each.options["modified"])
        for each in buffers
    }
    assert (len(buffers), kinds) == (3, {("nofile", False, False, False)})
    editor.keys("<C-w>l:quit<CR>")
    editor.wait_gone("proposed: ")
    editor.lua("vim.api.nvim_create_augroup('autosave', {})")
    assert (editor.lines(number), saved(repo)) == (LINES, FILES["app.py"])
    review(editor)
    editor.wait_for("2 open")
    editor.keys("q")
    editor.wait_gone("proposed: ")
    assert editor.nvim.call("tabpagenr", "$") == 1


@pytest.mark.parametrize("window", ["terminal", "float"])
def test_d5_a_lone_terminal_or_float_is_enough(editor: Editor, model: Model, repo: Repo, window: str) -> None:
    isolated(editor, model, *change("app.py", *TWO))
    if window == "terminal":
        editor.command("terminal cat")
        editor.keys("i")
        editor.lua(f"vim.keymap.set('t', '<F2>', '<Cmd>Agent review {newest(editor)['id']}<CR>')")
        editor.keys("<F2>")
        editor.wait_for("proposed: ")
    else:
        editor.lua("""
            local size = { relative = "editor", row = 2, col = 2, width = 40, height = 5 }
            vim.api.nvim_open_win(vim.api.nvim_create_buf(false, true), true, size)
        """)
        review(editor)
    editor.keys("<C-\\><C-n>A")
    editor.wait_for("Accepted 2 changes, 0 left.")
    assert saved(repo).splitlines() == replaced(LINES, *TWO)


def test_d6_nothing_takes_the_focus(editor: Editor, model: Model) -> None:
    """A list that is open, a question and an agent's end leave window, cursor, mode and what is typed alone."""
    editor.edit("app.py")
    editor.command("Agent list")
    editor.keys("<C-w>ggg0Ax")
    editor.command("wincmd p")
    model.says(
        conversation(
            say(use("Bash", command="/bin/sleep 0.1")),
            *[say(call) for call in change("app.py", *TWO)],
            say("done"),
        )
    )
    before = (editor.where, editor.mode)
    editor.lua("""
        require("agent_ls.client").request("spawn", { prompt = "go", name = "worker", isolation = "worktree" }, print)
    """)
    editor.wait_for("NEEDS YOU")
    assert (editor.where, editor.mode) == before
    editor.lua("""
        local client = require("agent_ls.client")
        client.request("permissions", {}, function(result)
          local request = result.requests[1]
          client.request("answer", { requestId = request.requestId, optionId = request.options[1].id }, function() end)
        end)
    """)
    editor.wait_for("to review")
    assert (editor.where, editor.mode) == before


def test_d7_it_is_said_when_there_is_no_review(editor: Editor, model: Model) -> None:
    model.says(conversation(say(use("Write", file_path="new.txt", content="x\n")), say("done")))
    launch(editor, "mode=acceptEdits")
    editor.wait_until(lambda: newest(editor)["status"] == "completed", "it is done")
    found = newest(editor)
    editor.command(f"Agent review {found['id']}")
    editor.wait_for("Nothing to review of worker (go): it has no worktree with changes")
    editor.lua("""
        local abilities = require("agent_ls.client").abilities()
        _G.methods = abilities.methods
        abilities.methods = vim.tbl_filter(function(name) return name ~= "agent/review" end, abilities.methods)
    """)
    try:
        editor.command("Agent list")
        editor.wait_for("Review in the editor: off (this server does not offer agent/review)")
        editor.command(f"Agent review {found['id']}")
        editor.wait_for("Review in the editor is off")
    finally:
        editor.lua("require('agent_ls.client').abilities().methods = _G.methods")


def test_d18_rejecting_all_leaves_what_the_user_wrote(editor: Editor, model: Model, repo: Repo) -> None:
    """The file that the agent made exists here too, with text of the user that git does not know."""
    repo.write({"scratch.txt": "my own\n"})
    number = editor.edit("app.py")
    isolated(editor, model, use("Write", file_path="scratch.txt", content="the agent's\n"), *change("app.py", *TWO))
    editor.nvim.current.buffer[1] = "mine"
    review(editor)
    editor.keys("R")
    editor.wait_for("Rejected ", "0 open")
    mine = LINES.copy()
    mine[1] = "mine"
    assert (saved(repo, "scratch.txt"), saved(repo)) == ("my own\n", FILES["app.py"])
    assert editor.lines(number) == mine


def test_d21_what_was_rejected_can_be_read_and_brought_back(editor: Editor, model: Model, repo: Repo) -> None:
    isolated(editor, model, *change("app.py", *TWO))
    review(editor)
    editor.keys("R")
    editor.wait_for("Rejected 2 changes. gu brings back.", "[-] line 3 ", "[-] line 30 ")
    editor.keys("gg/line 3<CR><CR>")
    editor.wait_for(" app.py: rejected ", "-line_3 = 3", "+line_3 = 33")
    editor.picture("review-rejected-text")
    editor.keys("q")
    editor.keys("gu")
    editor.wait_for("[ ] line 3 ", "[ ] line 30 ", "2 open")
    editor.keys("A")
    editor.wait_for("Accepted 2 changes, 0 left.")
    assert saved(repo).splitlines() == replaced(LINES, *TWO)
    editor.keys("gu")
    editor.wait_for("Restored 1 file")
    assert saved(repo) == FILES["app.py"]


def test_what_was_made_is_kept_in_git_without_what_was_rejected(editor: Editor, model: Model, repo: Repo) -> None:
    isolated(editor, model, *change("app.py", *TWO))
    review(editor)
    editor.keys("gg/line 30<CR>gr")
    editor.wait_for("Rejected 1 change.")
    editor.lua("""
        _G.asked, _G.branch = {}, "kept"
        _G.own = { select = vim.ui.select, input = vim.ui.input }
        vim.ui.select = function(items, opts, done) table.insert(asked, opts.prompt) done(items[1]) end
        vim.ui.input = function(opts, done) table.insert(asked, opts.prompt) done(branch) end
    """)
    try:
        editor.command(f"Agent finish {newest(editor)['id']}")
        editor.wait_for("on the branch kept")
        assert editor.lua("return asked") == [
            "How shall the agent's work be kept?",
            "On which branch? (nothing: the usual one) ",
        ]
        assert repo.git("show", "kept:app.py").splitlines() == replaced(LINES, TWO[0])
        editor.lua("branch = 'main'")
        editor.command(f"Agent finish {newest(editor)['id']}")
        editor.wait_for("'main' is checked out")
    finally:
        editor.lua("vim.ui.select, vim.ui.input = own.select, own.input")


def test_d24_a_deletion_is_asked_for_with_its_diff_in_view(editor: Editor, model: Model, repo: Repo) -> None:
    model.says(conversation(say(use("Bash", command="/bin/rm old.txt")), say("done")))
    launch(editor, "isolation=worktree")
    editor.wait_for(":Agent approve")
    editor.command("Agent approve")
    editor.wait_for("rm old.txt")
    editor.answer("1")
    editor.wait_until(lambda: newest(editor)["status"] == "completed", "it is done")
    review(editor)
    editor.wait_for("deleted, 1 open, asks first", "proposed: deleted: old.txt", "to go")
    editor.keys("ga")
    screen = editor.wait_for("Delete old.txt?", " y  Yes    n  No")
    assert "to go" in screen
    editor.picture("review-deletion")
    with editor.too_early():
        editor.keys("yn")
        assert "Delete old.txt?" in editor.text
    editor.keys("n", settle=0.55)
    editor.wait_for("Nothing was accepted")
    assert (repo.path / "old.txt").exists()
    editor.keys("ga")
    editor.wait_for("Delete old.txt?")
    editor.keys("y", settle=0.55)
    editor.wait_for("Accepted 1 change, 0 left.")
    assert not (repo.path / "old.txt").exists()


def test_a_conflict_says_why_and_the_rest_can_be_accepted(editor: Editor, model: Model) -> None:
    number = editor.edit("app.py")
    isolated(editor, model, *change("app.py", *TWO))
    editor.nvim.current.buffer[2] = "line_3 = 'mine'"
    review(editor)
    editor.wait_for("[!] line 3", "conflict: ")
    editor.picture("review-conflict")
    editor.keys("A")
    editor.wait_for("Accepted 1 change, 1 left.")
    mine = LINES.copy()
    mine[2] = "line_3 = 'mine'"
    assert editor.lines(number) == replaced(mine, TWO[1])


def test_a_hunk_is_accepted_in_the_diff_itself(editor: Editor, model: Model) -> None:
    number = editor.edit("app.py")
    isolated(editor, model, *change("app.py", *TWO))
    review(editor)
    editor.keys("j<CR>")
    editor.wait_until(lambda: editor.nvim.current.window.cursor[0] == 30, "at the second change")
    editor.keys("gg")
    editor.keys("ga")
    editor.wait_for("There is no open change at the cursor")
    editor.keys("30Gga")
    editor.wait_for("Accepted 1 change, 1 left.")
    assert editor.lines(number) == replaced(LINES, TWO[1])


def test_accepting_while_typing_is_one_step_of_undo(editor: Editor, model: Model) -> None:
    number = editor.edit("app.py")
    isolated(editor, model, *change("app.py", *TWO))
    review(editor)
    editor.command("tabprevious")
    editor.keys("10GA # mine")
    editor.lua("""
        local client = require("agent_ls.client")
        local id = require("agent_ls.agents").all()[1].id
        client.request("apply", { agentId = id }, function() end)
    """)
    mine = LINES.copy()
    mine[9] += " # mine"
    editor.wait_until(lambda: editor.lines(number) == replaced(mine, *TWO), "applied")
    assert editor.mode == "i"
    editor.keys(" more<Esc>u")
    editor.wait_until(lambda: editor.lines(number) == replaced(mine, *TWO), "what was typed after it is undone")
    editor.keys("u")
    editor.wait_until(lambda: editor.lines(number) == mine, "only the agent's changes are undone")


@pytest.mark.parametrize("is_open", [True, False], ids=["open", "closed"])
def test_k7_a_dos_file_keeps_its_line_ends(editor: Editor, model: Model, repo: Repo, is_open: bool) -> None:
    dos = FILES["app.py"].replace("\n", "\r\n")
    repo.commit({"app.py": dos.encode()})
    number = editor.edit("app.py")
    assert editor.nvim.current.buffer.options["fileformat"] == "dos"
    if not is_open:
        editor.command("enew")
        editor.command("bwipeout app.py")
    isolated(editor, model, *change("app.py", *TWO, ("line_40 = 40\n", "line_40 = 40\nline_41 = 41\n")))
    review(editor)
    assert "^M" not in editor.text
    editor.keys("A")
    editor.wait_for("Accepted 3 changes, 0 left.")
    wanted = [*replaced(LINES, *TWO), "line_41 = 41"]
    if is_open:
        assert editor.lines(number) == wanted
        editor.keys("q")
        editor.command("write")
    assert saved(repo) == "".join(line + "\r\n" for line in wanted)


def test_k7_an_agent_that_works_in_place_edits_an_unsaved_dos_buffer(editor: Editor, model: Model, repo: Repo) -> None:
    repo.commit({"app.py": FILES["app.py"].replace("\n", "\r\n").encode()})
    number = editor.edit("app.py")
    editor.nvim.current.buffer[9] = "mine"
    model.says(conversation(*[say(call) for call in change("app.py", *TWO)], say("done")))
    editor.command("Agent spawn mode=acceptEdits go")
    mine = LINES.copy()
    mine[9] = "mine"
    editor.wait_until(lambda: editor.lines(number) == replaced(mine, *TWO), "edited in the buffer")
    assert editor.nvim.buffers[number].options["fileformat"] == "dos"
    assert saved(repo) == FILES["app.py"].replace("\n", "\r\n")


def test_text_after_the_last_line_leaves_no_empty_line(editor: Editor, model: Model, repo: Repo) -> None:
    number = editor.edit("notes.txt")
    isolated(editor, model, *change("notes.txt", ("three\n", "three\nfour\nfive\n")))
    review(editor)
    editor.keys("A")
    editor.wait_for("Accepted 1 change, 0 left.")
    assert editor.lines(number) == ["one", "two", "three", "four", "five"]
    editor.keys("q")
    editor.wait_gone("proposed: ")
    editor.command("write")
    assert saved(repo, "notes.txt") == "one\ntwo\nthree\nfour\nfive\n"


def test_a_text_without_a_last_line_end_is_refused_while_it_is_open(editor: Editor, model: Model, repo: Repo) -> None:
    number = editor.edit("notes.txt")
    isolated(editor, model, *change("notes.txt", ("three\n", "three\nfour")))
    review(editor)
    editor.keys("A")
    editor.wait_for("nothing was applied: notes.txt: ", "Neovim would", "line end at its end; close it")
    assert editor.lines(number) == ["one", "two", "three"]
    editor.command(f"bwipeout {number}")
    editor.keys("A")
    editor.wait_for("Accepted 1 change, 0 left.")
    assert saved(repo, "notes.txt") == "one\ntwo\nthree\nfour"


def test_mixed_line_ends_are_refused_rather_than_changed(editor: Editor, model: Model, repo: Repo) -> None:
    repo.commit({"mixed.txt": b"one\ntwo\r\nthree\n"})
    number = editor.edit("mixed.txt")
    isolated(editor, model, *change("mixed.txt", ("two\n", "zwei\n")))
    review(editor)
    editor.keys("A")
    editor.wait_for("nothing was applied: mixed.txt: ", "line ends are mixed")
    assert editor.lines(number) == ["one", "two\r", "three"]


def test_new_binary_and_renamed_files_are_shown_in_words(editor: Editor, model: Model, repo: Repo) -> None:
    command = "printf 'a\\000b' > data.bin; git mv notes.txt moved.txt; chmod +x app.py; echo new > added.txt"
    model.says(conversation(say(use("Bash", command=command)), say("done")))
    launch(editor, "isolation=worktree")
    editor.wait_for(":Agent approve")
    editor.command("Agent approve")
    editor.wait_for("Allow once")
    editor.answer("1")
    editor.wait_until(lambda: newest(editor)["status"] == "completed", "it is done")
    review(editor)
    editor.wait_for("4 files", "added.txt", "data.bin")
    for name, text in (
        ("data.bin", "This file is binary"),
        ("app.py", "No line changes"),
        ("added.txt", "no such file"),
    ):
        editor.keys(f"gg/^{name}<CR>")
        editor.wait_for(text)
    editor.picture("review-words")
    editor.keys("A")
    editor.wait_for("0 left.")
    assert (saved(repo, "moved.txt"), saved(repo, "added.txt")) == (FILES["notes.txt"], "new\n")
    assert not (repo.path / "notes.txt").exists()


def test_the_review_fits_a_small_screen(editor: Editor, model: Model) -> None:
    editor.resize(60, 20)
    editor.edit("app.py")
    isolated(editor, model, *change("app.py", *TWO))
    review(editor)
    screen = editor.wait_for("[ ] line 3 ", "[ ] line 30 ", "modified, 2 open", "line_3 = 33")
    editor.picture("review-60")
    lines = screen.split("\n")
    assert lines[1] == " ga accept  gr reject  gA file  A all  g? help"
    editor.keys("ga")
    screen = editor.wait_for("Accepted 1 change, 1 left.", "gu undo")
    assert max(map(len, screen.split("\n"))) <= 60
    assert screen.split("\n")[1] == " ga accept  gr reject  gA file  A all  gu undo  g? help"
    editor.keys("g?")
    editor.wait_for(" Help ", "│ga gr  accept, reject the change at the cursor ", "undoes as any other edit.")
    editor.picture("review-60-help")


def test_a_comment_sends_the_agent_back_to_work(editor: Editor, model: Model) -> None:
    isolated(editor, model, *change("app.py", *TWO))
    review(editor)
    model.says(conversation(say("I shall."), offset=4))
    editor.keys("gc")
    editor.wait_for("Comment for the agent:")
    editor.keys("use a name<CR>")
    editor.wait_until(lambda: "use a name" in model.told(), "the agent was told")
    editor.wait_until(lambda: newest(editor)["status"] == "completed", "and is done again")

"""Open buffers: agents read them, change them through the editor, and reviewed changes go to them as they are now."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from lsp_server.demo.script import say, use
from tests.e2e.desk import Desk
from tests.e2e.editor import Editor

pytestmark = pytest.mark.anyio

DISK = "def add(a, b):\n    return a - b\n"
BUFFER = "# 🎉 not saved\ndef add(a, b):\n    return a - b  # 🎉 wrong\n"


def editing(desk: Desk) -> Editor:
    """An editor at this desk, which confirms and applies what it is sent."""
    editor = Editor(desk.client, desk.encoding)
    desk.client.on("workspace/applyEdit", editor.apply)
    return editor


def allow(desk: Desk) -> None:
    desk.client.on("agent/permission", lambda params: {"optionId": "allowOnce"})


def edit(old: str, new: str, path: str = "app.py") -> Any:
    return say(use("Edit", file_path=path, old_string=old, new_string=new))


def read(path: str = "app.py") -> Any:
    return say(use("Read", file_path=path))


async def test_an_agent_reads_the_unsaved_buffer(each_desk: Desk):
    desk = each_desk
    editor, path = editing(desk), desk.repo.path / "app.py"
    editor.open(path)

    def typed(line: int, character: int, text: str) -> None:
        at = {"line": line, "character": character}
        editor.change_range(path, {"range": {"start": at, "end": at}, "newText": text})

    typed(0, 0, "# 🎉 saved\n")
    typed(0, 7 if desk.encoding == "utf-8" else 5, "not ")  # behind the emoji
    typed(2, 16, "  # 🎉 wrong")
    desk.says(read(), say("done"))
    await desk.run()
    note = "[this is the unsaved text in the user's editor; the file on disk differs]"
    lines = [f"{number:6d}\t{line}" for number, line in enumerate(BUFFER.splitlines(), 1)]
    assert desk.told(1) == "\n".join([*lines, note])
    editor.close(path)


async def test_a_last_line_without_an_end_is_replaced_in_the_units_of_the_editor(each_desk: Desk):
    desk = each_desk
    editor, path = editing(desk), desk.repo.path / "app.py"
    doc = editor.open(path, "first = 1\nlast = '🎉🎉'")
    allow(desk)
    desk.says(read(), edit("last = '🎉🎉'", "last = '🎉'\nmore = 2"), say("done"))
    await desk.run()
    assert (doc.text, path.read_text()) == ("first = 1\nlast = '🎉'\nmore = 2", DISK)
    units = {"utf-8": 17, "utf-16": 13}[desk.encoding]
    [change] = editor.applied[0]["documentChanges"]
    assert change["edits"][0]["range"]["end"] == {"line": 1, "character": units}
    editor.close(path)


async def test_a_closed_buffer_counts_no_longer(desk: Desk):
    editor, path = editing(desk), desk.repo.path / "app.py"
    editor.open(path, BUFFER)
    editor.close(path)
    desk.says(read(), say("done"))
    await desk.run()
    assert desk.told(1) == "     1\tdef add(a, b):\n     2\t    return a - b"


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
async def test_d1_an_edit_in_place_goes_to_the_unsaved_buffer_and_never_to_the_disk(each_desk: Desk, end: str):
    desk = each_desk
    editor, path = editing(desk), desk.repo.path / "app.py"
    path.write_bytes(DISK.replace("\n", end).encode())
    doc = editor.open(path, BUFFER.replace("\n", end))
    allow(desk)
    desk.says(
        read(), edit("    return a - b  # 🎉 wrong\n", "    total = a + b  # 🎉\n    return total\n"), say("done")
    )
    info = await desk.run()
    wanted = "# 🎉 not saved\ndef add(a, b):\n    total = a + b  # 🎉\n    return total\n"
    assert (info["status"], doc.text) == ("completed", wanted.replace("\n", end))
    assert path.read_bytes() == DISK.replace("\n", end).encode()
    [change] = editor.applied[0]["documentChanges"]
    assert change["textDocument"] == {"uri": path.as_uri(), "version": 1}
    assert "not on disk yet" in desk.told(2)
    assert "textDocument/didSave" not in [message.method for message in desk.client.messages]
    editor.close(path)


async def test_an_edit_of_a_saved_buffer_goes_to_the_disk_where_commands_see_it(desk: Desk):
    editor, path = editing(desk), desk.repo.path / "app.py"
    editor.open(path)
    desk.client.forbid("workspace/applyEdit")
    allow(desk)
    desk.says(read(), edit("a - b", "a + b"), say("done"))
    await desk.run()
    assert path.read_text() == "def add(a, b):\n    return a + b\n"
    editor.close(path)


async def test_an_editor_that_refuses_an_edit_is_told_to_the_model(desk: Desk):
    editor, path = editing(desk), desk.repo.path / "app.py"
    doc = editor.open(path, BUFFER)
    refusal = {"applied": False, "failureReason": "the buffer is read-only"}
    desk.client.on("workspace/applyEdit", lambda params: refusal)
    allow(desk)
    desk.says(read(), edit("a - b", "a + b"), say("done"))
    info = await desk.run()
    text = f"{path} has unsaved changes in the editor, and the editor refused the edit: the buffer is read-only"
    assert (info["status"], desk.results(2)) == ("completed", [(True, text)])
    assert (doc.text, path.read_text()) == (BUFFER, DISK)
    editor.close(path)


async def test_what_the_user_types_while_the_person_is_asked_is_not_overwritten(desk: Desk):
    editor, path = editing(desk), desk.repo.path / "app.py"
    doc = editor.open(path, BUFFER)
    desk.client.hold("agent/permission")
    desk.says(read(), edit("a - b", "a + b"), say("done"))
    agent = await desk.spawn()
    held = await desk.client.held("agent/permission", timeout=20)
    editor.change(path, BUFFER + "# typed meanwhile\n")
    held.reply({"optionId": "allowOnce"})
    await desk.ended(agent)
    assert doc.text == BUFFER.replace("a - b", "a + b") + "# typed meanwhile\n"
    assert path.read_text() == DISK
    editor.close(path)


# Review and apply


async def isolated(desk: Desk, *steps: Any) -> str:
    """The id of an agent that has made these edits in a worktree of its own."""
    desk.says(read(), *steps, say("done"))
    info = await desk.run(isolation="worktree")
    assert (info["status"], "worktree" in info) == ("completed", True)
    return str(info["id"])


@pytest.mark.spec("ED-3")
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
async def test_d8_a_reviewed_change_goes_onto_the_buffer_as_it_is_now(each_desk: Desk, end: str):
    desk = each_desk
    path = desk.repo.path / "app.py"
    desk.repo.commit(
        {"app.py": "# 🎉🎉 first\n\n\n\ndef add(a, b):\n    return a - b\n\n\n\n# last\n".replace("\n", end)}
    )
    agent = await isolated(desk, edit("    return a - b\n", "    # 🎉\n    return a + b\n"))
    committed = path.read_bytes()
    editor = editing(desk)
    mine = "# 🎉🎉 mine, not saved\n\n\n\ndef add(a, b):\n    return a - b\n\n\n\n# last\n# 🎉 more\n"
    doc = editor.open(path, mine.replace("\n", end))
    [file] = (await desk.review(agent))["files"]
    assert ("conflict" in file, [hunk["oldStart"] for hunk in file["hunks"]]) == (False, [6])
    result = await desk.apply(agent)
    wanted = mine.replace("    return a - b\n", "    # 🎉\n    return a + b\n").replace("\n", end)
    assert (doc.text, path.read_bytes()) == (wanted, committed)
    assert (result["conflicts"], result["remaining"]) == ([], 0)
    assert result["applied"] == [{"path": "app.py", "hunks": [hunk["id"] for hunk in file["hunks"]]}]
    [change] = editor.applied[0]["documentChanges"]
    assert change["textDocument"] == {"uri": path.as_uri(), "version": 1}
    command = ("git", "-C", str(desk.repo.path), "cat-file", "blob", f"{result['recoverRef']}:app.py")
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    kept, _ = await process.communicate()
    assert kept == mine.replace("\n", end).encode()
    editor.close(path)


async def test_an_editor_that_refuses_leaves_a_conflict_and_nothing_is_written(desk: Desk):
    path = desk.repo.path / "app.py"
    agent = await isolated(desk, edit("a - b", "a + b"))
    editor = editing(desk)
    doc = editor.open(path)
    editor.change(path, "# mine\n" + DISK)
    desk.client.on("workspace/applyEdit", lambda params: {"applied": False, "failureReason": "not now"})
    [file] = (await desk.review(agent))["files"]
    result = await desk.apply(agent)
    reason = f"the editor refused the edit of {path}: not now"
    conflict = {"path": "app.py", "hunk": file["hunks"][0]["id"], "reason": reason}
    assert (result["applied"], result["conflicts"], result["remaining"]) == ([], [conflict], 1)
    assert (doc.text, path.read_text()) == ("# mine\n" + DISK, DISK)
    editor.close(path)


async def test_all_files_or_none_when_the_editor_refuses_one(desk: Desk):
    """In the buffers and on the disk; nothing is saved, and the same apply works when the editor is ready."""
    opened, refused, closed = (desk.repo.path / name for name in ("app.py", "docs/notes.txt", "README.md"))
    agent = await isolated(
        desk,
        edit("a - b", "a + b"),
        read("README.md"),
        edit("# Example", "# Better", "README.md"),
        read("docs/notes.txt"),
        edit("two", "2", "docs/notes.txt"),
    )
    editor = editing(desk)
    first, second = editor.open(opened), editor.open(refused)
    before = first.text, second.text, closed.read_text()

    def refuses_one(params: Any) -> Any:
        if refused.as_uri() in str(params["edit"]):
            return {"applied": False, "failureReason": "not this one"}
        return editor.apply(params)

    desk.client.on("workspace/applyEdit", refuses_one)
    await desk.review(agent)
    result = await desk.apply(agent)
    reason = f"the editor refused the edit of {refused}: not this one"
    assert (result["applied"], [each["reason"] for each in result["conflicts"]]) == ([], [reason])
    assert result["failureReason"] == f"nothing was applied: docs/notes.txt: {reason}"
    assert (first.text, second.text, closed.read_text(), result["remaining"]) == (*before, 3)
    desk.client.on("workspace/applyEdit", editor.apply)
    assert (await desk.apply(agent))["remaining"] == 0
    assert (first.text, second.text) == (DISK.replace("a - b", "a + b"), "one\n2\nthree\n")
    assert (closed.read_text(), opened.read_text(), refused.read_text()) == ("# Better\n", DISK, "one\ntwo\nthree\n")
    editor.close(opened)
    editor.close(refused)


async def test_an_editor_that_says_applied_and_changes_nothing_is_not_believed(desk: Desk):
    path = desk.repo.path / "app.py"
    agent = await isolated(desk, edit("a - b", "a + b"))
    editor = editing(desk)
    editor.open(path)
    desk.client.on("workspace/applyEdit", lambda params: {"applied": True})
    result = await desk.apply(agent)
    [conflict] = result["conflicts"]
    assert (result["applied"], result["remaining"], path.read_text()) == ([], 1, DISK)
    assert conflict["reason"] == f"{path}: the editor's text is not what was reviewed; nothing is taken for applied"
    editor.close(path)


@pytest.mark.parametrize("answer", [None, {}, {"applied": "true"}, []])
async def test_an_answer_that_says_nothing_is_no_success(desk: Desk, answer: Any):
    path = desk.repo.path / "app.py"
    agent = await isolated(desk, edit("a - b", "a + b"))
    editor = editing(desk)
    editor.open(path)
    desk.client.on("workspace/applyEdit", lambda params: answer)
    result = await desk.apply(agent)
    assert (result["applied"], [each["path"] for each in result["conflicts"]]) == ([], ["app.py"])
    editor.close(path)


async def test_a_buffer_that_moves_on_while_the_edit_is_under_way_is_a_conflict(desk: Desk):
    path = desk.repo.path / "app.py"
    agent = await isolated(desk, edit("a - b", "a + b"))
    editor = editing(desk)
    doc = editor.open(path)

    def typed_first(params: Any) -> Any:
        editor.change(path, "# typed\n" + DISK)
        return editor.apply(params)

    desk.client.on("workspace/applyEdit", typed_first)
    result = await desk.apply(agent)
    [conflict] = result["conflicts"]
    version = f"{path.as_uri()} has version 2, the edit is for version 1"
    assert conflict["reason"] == f"the editor refused the edit of {path}: {version}"
    assert (result["applied"], doc.text, path.read_text()) == ([], "# typed\n" + DISK, DISK)
    desk.client.on("workspace/applyEdit", editor.apply)
    assert (await desk.apply(agent))["remaining"] == 0
    assert doc.text == "# typed\n" + DISK.replace("a - b", "a + b")
    editor.close(path)


async def test_open_and_closed_files_of_one_apply_each_go_where_they_belong(desk: Desk):
    opened, closed, new = (desk.repo.path / name for name in ("app.py", "README.md", "new.py"))
    agent = await isolated(
        desk,
        edit("a - b", "a + b"),
        read("README.md"),
        edit("# Example", "# Better", "README.md"),
        say(use("Write", file_path="new.py", content="new = True\n")),
    )
    editor = editing(desk)
    doc = editor.open(opened)
    result = await desk.apply(agent)
    assert (sorted(each["path"] for each in result["applied"]), result["conflicts"]) == (
        ["README.md", "app.py", "new.py"],
        [],
    )
    assert (doc.text, opened.read_text()) == (DISK.replace("a - b", "a + b"), DISK)
    assert (closed.read_text(), new.read_text()) == ("# Better\n", "new = True\n")
    editor.close(opened)


async def test_a_file_that_is_open_is_not_deleted_under_the_editor(desk: Desk):
    path = desk.repo.path / "app.py"
    allow(desk)
    agent = await isolated(desk, say(use("Bash", command="rm app.py")))
    editor = editing(desk)
    editor.open(path)
    result = await desk.apply(agent)
    [conflict] = result["conflicts"]
    assert conflict["reason"] == f"{path} is open in the editor and would be deleted; close it first"
    assert (result["applied"], path.read_text()) == ([], DISK)
    editor.close(path)
    assert (await desk.apply(agent))["remaining"] == 0
    assert not path.exists()


async def test_d9_a_bom_and_a_missing_last_line_end_stay_as_they_are(desk: Desk):
    path: Path = desk.repo.path / "app.py"
    desk.repo.commit({"app.py": b"\xef\xbb\xbfone\r\ntwo\r\nthree"})
    agent = await isolated(desk, edit("two", "2"))
    result = await desk.apply(agent)
    assert (result["conflicts"], path.read_bytes()) == ([], b"\xef\xbb\xbfone\r\n2\r\nthree")


@pytest.mark.spec("WT-1", "WT-4", "ED-3")
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
async def test_an_isolated_agent_can_start_from_what_is_not_saved(desk: Desk, end: str):
    """In the encoding of the file on the disk; its review holds nothing of the user's."""
    path, mine = desk.repo.path / "app.py", "café = 1\nnot saved = 2\nlast = 3"
    settings = desk.repo.path / ".claude" / "settings.local.json"
    desk.repo.commit({"app.py": f"café = 1{end}".encode("latin-1"), ".gitignore": ".claude/\n"})
    settings.parent.mkdir(exist_ok=True)
    settings.write_text('{"worktree": {"base": "snapshot"}}')
    editor = editing(desk)
    doc = editor.open(path, mine.replace("\n", end))
    agent = await isolated(desk, edit("last = 3", "last = three"))
    info = await desk.info(agent)
    assert (info["worktree"]["base"], "note" in info["worktree"]) == ("snapshot", False)
    written = (Path(info["worktree"]["path"]) / "app.py").read_bytes()
    assert written == mine.replace("last = 3", "last = three").replace("\n", end).encode("latin-1")
    review = await desk.review(agent)
    assert [(each["path"], len(each["hunks"])) for each in review["files"]] == [("app.py", 1)]
    assert (await desk.apply(agent))["remaining"] == 0
    assert doc.text == mine.replace("last = 3", "last = three").replace("\n", end)
    assert path.read_bytes() == f"café = 1{end}".encode("latin-1")
    editor.close(path)


# A file that the agent has renamed and edited

LONG = "".join(f"line {number}\n" for number in range(1, 41))
EDITED = LONG.replace("line 20\n", "line twenty\n")
MINE = "# not saved\n" + LONG


async def renamed_and_edited(desk: Desk) -> tuple[str, Path, Path]:
    """An agent that did both in its worktree; the user's old file and the new name."""
    desk.repo.commit({"app.py": LONG})
    allow(desk)
    agent = await isolated(
        desk,
        say(use("Bash", command="git mv app.py better.py")),
        read("better.py"),
        edit("line 20", "line twenty", "better.py"),
    )
    [file] = (await desk.review(agent))["files"]
    assert (file["path"], file["oldPath"], file["status"], len(file["hunks"])) == ("better.py", "app.py", "renamed", 2)
    return agent, desk.repo.path / "app.py", desk.repo.path / "better.py"


@pytest.mark.spec("ED-3")
async def test_d14_a_closed_file_is_renamed_and_edited_in_one_step(each_desk: Desk):
    desk = each_desk
    agent, old, new = await renamed_and_edited(desk)
    editing(desk)
    old.write_text(MINE.replace("not saved", "not committed"))
    result = await desk.apply(agent)
    assert (result["conflicts"], result["remaining"]) == ([], 0)
    assert (old.exists(), new.read_text()) == (False, EDITED.replace("line 1\n", "# not committed\nline 1\n", 1))


@pytest.mark.spec("ED-3", "WT-4")
@pytest.mark.parametrize("text", [LONG, MINE], ids=["saved", "not saved"])
async def test_d14_an_open_file_is_edited_first_and_renamed_when_it_is_closed(each_desk: Desk, text: str):
    """An editor may lose the text edit of a combined operation, so there is none: two steps, each read back."""
    desk = each_desk
    agent, old, new = await renamed_and_edited(desk)
    editor = editing(desk)
    doc = editor.open(old)
    if text != LONG:
        editor.change(old, text)
    whole = await desk.apply(agent)
    assert (whole["applied"], whole["remaining"], len(whole["conflicts"])) == ([], 2, 2)
    assert all("open in the editor" in conflict["reason"] for conflict in whole["conflicts"]), whole["conflicts"]
    assert (doc.text, old.read_text(), new.exists(), editor.applied) == (text, LONG, False, [])

    [file] = (await desk.review(agent))["files"]
    rename, change = (hunk["id"] for hunk in file["hunks"])
    first = await desk.apply(agent, {"path": "better.py", "hunks": [change]})
    assert (first["applied"], first["conflicts"], first["remaining"]) == (
        [{"path": "better.py", "hunks": [change]}],
        [],
        1,
    )
    wanted = text.replace("line 20\n", "line twenty\n")
    assert (doc.text, old.read_text(), new.exists()) == (wanted, LONG, False)
    editor.save(old)
    editor.close(old)
    second = await desk.apply(agent, {"path": "better.py", "hunks": [rename]})
    assert (second["conflicts"], second["remaining"]) == ([], 0)
    assert (old.exists(), new.read_text()) == (False, wanted)


async def test_d14_a_rename_onto_a_name_that_is_open_is_a_conflict_and_the_edit_goes_on(desk: Desk):
    agent, old, new = await renamed_and_edited(desk)
    editor = editing(desk)
    editor.open(new, "mine, never saved\n")
    [rename, change] = (await desk.review(agent))["files"][0]["hunks"]
    result = await desk.apply(agent)
    assert (result["applied"], result["remaining"]) == ([{"path": "better.py", "hunks": [change["id"]]}], 1)
    assert result["conflicts"] == [
        {"path": "better.py", "hunk": rename["id"], "reason": "there is a file better.py already"}
    ]
    assert (old.read_text(), new.exists(), editor.documents[new.as_uri()].text) == (
        EDITED,
        False,
        "mine, never saved\n",
    )
    editor.close(new)

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from attrs import evolve

from agent_core.errors import ReviewConflict
from agent_core.line_diff import Edit, diff, split_lines
from agent_core.review import (
    ABSENT,
    EXECUTABLE,
    FILE,
    LINK,
    OTHER,
    SUBMODULE,
    FileChange,
    FileConflict,
    FileInput,
    FileReview,
    Hunk,
    Outcome,
    Review,
    Side,
    Stats,
    Target,
)
from agent_core.review_parts import review_file
from agent_core.review_plans import named
from agent_core.text_form import NotConvertible, to_buffer_form

pytestmark = pytest.mark.spec("ED-3")

BASE = b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
AGENT = b"one\nTWO\nthree\nfour\nfive\nsix\nSEVEN\neight\n"
MINE = "your text differs from both sides here"


def reviewed(base: bytes | None, agent: bytes | None, current: bytes | str | None, **more: Any) -> FileReview:
    sides = {"old": base, "new": agent, "target": current}
    modes = {name: more.pop(f"{name}_mode", ABSENT if data is None else FILE) for name, data in sides.items()}
    status = "added" if base is None else "deleted" if agent is None else "modified"
    old, new = Side(modes["old"], base), Side(modes["new"], agent)
    given = FileInput("f.txt", None, status, old, new, Target(modes["target"], current))
    return review_file(evolve(given, **more))


def states(found: FileReview) -> list[tuple[str, str]]:
    return [(hunk.header, hunk.state) for hunk in found.change.hunks]


def test_the_whole_value_of_a_changed_file() -> None:
    found = reviewed(BASE, AGENT, BASE)
    ids = [hunk.id for hunk in found.change.hunks]
    assert found.change == FileChange(
        path="f.txt",
        old_path=None,
        status="modified",
        binary=False,
        hunks=(
            Hunk(ids[0], 2, 1, 2, 1, "@@ -2,1 +2,1 @@ one", "-two\n+TWO\n", "open"),
            Hunk(ids[1], 7, 1, 7, 2, "@@ -7,1 +7,2 @@ six", "-seven\n+SEVEN\n+eight\n", "open"),
        ),
        notes=(),
        conflict=None,
        needs_confirmation=False,
    )
    assert found.apply() == Outcome("f.txt", "f.txt", BASE, AGENT, mode=FILE)
    assert found.apply([ids[1]]).after == b"one\ntwo\nthree\nfour\nfive\nsix\nSEVEN\neight\n"


def test_line_numbers_are_those_of_the_current_text_and_the_users_edits_stay() -> None:
    current = b"zero\nzero\n" + BASE.replace(b"four\n", b"FOUR\n")
    found = reviewed(BASE, AGENT, current)
    assert states(found) == [("@@ -4,1 +4,1 @@ one", "open"), ("@@ -9,1 +9,2 @@ six", "open")]
    assert found.apply().after == b"zero\nzero\none\nTWO\nthree\nFOUR\nfive\nsix\nSEVEN\neight\n"


def test_what_the_user_has_already_counts_as_accepted() -> None:
    found = reviewed(BASE, AGENT, BASE.replace(b"two", b"TWO").replace(b"four", b"4"))
    assert states(found) == [("@@ -2,1 +2,1 @@ one", "accepted"), ("@@ -7,1 +7,2 @@ six", "open")]
    assert found.apply().after == AGENT.replace(b"four", b"4")


def test_overlapping_edits_conflict_and_the_others_go_on() -> None:
    current = BASE.replace(b"two", b"deux")
    found = reviewed(BASE, AGENT, current)
    assert found.change.conflict == FileConflict(MINE, (found.change.hunks[0].id,))
    assert found.apply().after == b"one\ndeux\nthree\nfour\nfive\nsix\nSEVEN\neight\n"


@pytest.mark.parametrize(
    "current",
    [
        BASE.replace(b"one", b"ONE"),  # the line before
        BASE.replace(b"three\n", b"new\nthree\n"),  # between
        BASE.replace(b"two\n", b""),
        BASE.replace(b"two\n", b"two\nand more\n"),
    ],
)
def test_a_users_edit_next_to_the_agents_is_never_guessed(current: bytes) -> None:
    found = reviewed(BASE, AGENT, current)
    first = found.change.hunks[0]
    assert found.change.conflict == FileConflict(MINE, (first.id,))
    assert found.apply([first.id]).after == current


def test_editing_next_to_an_accepted_hunk_does_not_make_it_a_conflict() -> None:
    found = reviewed(BASE, AGENT, AGENT.replace(b"one", b"ONE").replace(b"three", b"3"))
    assert [state for _, state in states(found)] == ["accepted", "accepted"]
    assert found.change.conflict is None


def test_deleted_lines_that_the_user_rewrote_conflict() -> None:
    found = reviewed(b"a\nb\nc\nd\n", b"a\nc\nd\n", b"a\nB!\nc\nD\n")
    assert found.change.conflict == FileConflict(MINE, (found.change.hunks[0].id,))


def test_rejected_hunks_are_left_out() -> None:
    first, second = reviewed(BASE, AGENT, BASE).change.hunks
    found = review_file(reviewed(BASE, AGENT, BASE).input, rejected={first.id})
    assert [hunk.state for hunk in found.change.hunks] == ["rejected", "open"]
    assert found.change.open_hunks == {second.id}
    assert found.apply([first.id]).after == BASE


def test_brackets_between_edits_do_not_part_them() -> None:
    base = b"f() {\n  a\n}\n\ng() {\n  b\n}\n"
    agent = b"f() {\n  A\n}\n\nG() {\n  b\n}\n"
    assert [hunk.text for hunk in reviewed(base, agent, base).change.hunks] == [
        "-  a\n-}\n-\n-g() {\n+  A\n+}\n+\n+G() {\n"
    ]


def test_equal_hunks_have_different_ids_that_stay() -> None:
    base, agent = b"x\n1\nx\n2\nx\n3\n", b"y\n1\ny\n2\ny\n3\n"
    ids = [hunk.id for hunk in reviewed(base, agent, base).change.hunks]
    assert len(set(ids)) == 3
    after = reviewed(base, agent, base).apply([ids[1]]).after
    assert after == b"x\n1\ny\n2\nx\n3\n"
    again = reviewed(base, agent, after).change.hunks
    assert [(hunk.id, hunk.state) for hunk in again] == list(zip(ids, ["open", "accepted", "open"], strict=True))


CRLF = b"one\r\ntwo\r\nthree\r\n"


@pytest.mark.parametrize("buffer", ["one\r\ntwo\r\nthree\r\n", "one\ntwo\nthree\n"])
def test_d8_crlf_file_in_a_buffer_with_either_line_end(buffer: str) -> None:
    """Two lines at once, as in the report."""
    agent = b"ONE\r\nTWO\r\nthree\r\n"
    found = reviewed(CRLF, agent, buffer)
    end = "\r\n" if "\r" in buffer else "\n"
    assert found.apply().after == f"ONE{end}TWO{end}three{end}"
    assert found.change.notes == ()
    assert [hunk.id for hunk in found.change.hunks] == [hunk.id for hunk in reviewed(CRLF, agent, CRLF).change.hunks]


def test_d8_checkout_with_crlf_and_a_file_of_the_user_with_lf() -> None:
    found = reviewed(CRLF, b"one\r\nTWO\r\nthree\r\n", b"one\ntwo\nthree\nmine\n")
    assert found.apply().after == b"one\nTWO\nthree\nmine\n"


@pytest.mark.parametrize(
    ("buffer", "expected"), [("one\ntwo\n", "one\nTWO\n"), ("\ufeffone\ntwo\n", "\ufeffone\nTWO\n")]
)
def test_d9_bom_is_there_exactly_as_often_as_before(buffer: str, expected: str) -> None:
    base, agent = b"\xef\xbb\xbfone\ntwo\n", b"\xef\xbb\xbfone\nTWO\n"
    assert reviewed(base, agent, base).apply().after == agent
    assert reviewed(base, agent, buffer).apply().after == expected


def test_d9_full_replacement_from_the_first_line() -> None:
    base, agent = b"\xef\xbb\xbfone\n", b"\xef\xbb\xbfuno\n"
    assert reviewed(base, agent, "one\n").apply().after == "uno\n"
    assert reviewed(base, agent, base).apply().after == agent


def test_d12_bytes_outside_the_edit_stay() -> None:
    base = b"hard break  \r\nmixed\n\r\n\ttab \r\nend"
    agent = base.replace(b"mixed", b"MIXED")
    found = reviewed(base, agent, b"user  \r\n" + base)
    assert found.apply().after == b"user  \r\n" + agent


def test_d22_latin1_stays_latin1_in_a_closed_file() -> None:
    base, agent = "é\nb\nü\n".encode("latin-1"), "é\nB\nü\n".encode("latin-1")
    found = reviewed(base, agent, base)
    assert found.apply().after == agent
    assert [hunk.text for hunk in found.change.hunks] == ["-b\n+B\n"]


def test_d22_latin1_in_a_buffer_that_was_decoded_rightly() -> None:
    base, agent = "é\nb\nc\nd\n".encode("latin-1"), "é\nB\nc\nd\n".encode("latin-1")
    assert reviewed(base, agent, "é\nb\nc\nuser\n").apply().after == "é\nB\nc\nuser\n"


@pytest.mark.parametrize(
    ("base", "agent", "buffer"),
    [
        ("é\nb\n".encode("latin-1"), "é\nB\n".encode("latin-1"), "\ufffd\nb\n"),  # decoded with loss
        ("é\nb\n".encode("latin-1"), "é\nB\n".encode(), "é\nb\n"),  # the agent changed the encoding
        (b"\xe9\nb\n", b"\xe9\n\x92\n", "é\nb\n"),  # cp1252 or Latin-1? They differ in what the agent wrote
    ],
)
def test_d22_what_cannot_be_decoded_without_loss_is_a_conflict(base: bytes, agent: bytes, buffer: str) -> None:
    found = reviewed(base, agent, buffer)
    assert found.change.conflict is not None
    assert found.change.conflict.reason.startswith("the file is not UTF-8 and is open in the editor; close it")
    assert found.change.conflict.hunks == tuple(hunk.id for hunk in found.change.hunks)
    assert found.apply().after == buffer
    with pytest.raises(NotConvertible):
        to_buffer_form(base, agent, buffer)


def test_d22_utf16_is_text_in_a_buffer_and_one_piece_on_disk() -> None:
    base, agent = "é\r\nb\r\n".encode("utf-16"), "é\r\nB\r\n".encode("utf-16")
    in_buffer = reviewed(base, agent, "é\nb\n")
    assert (in_buffer.change.binary, in_buffer.apply().after) == (False, "é\nB\n")
    closed = reviewed(base, agent, base)
    assert (closed.change.binary, closed.apply().after) == (True, agent)


@pytest.mark.parametrize(
    ("base", "agent", "notes"),
    [
        (b"a\r\nb\r\n", b"a\nb\n", ["line endings: CRLF became LF"]),
        (b"a\nb\n", b"a\nb\r\n", ["line endings: LF became CRLF and LF"]),
        (b"a\n", b"\xef\xbb\xbfa\n", ["byte-order mark added"]),
        (b"\xef\xbb\xbfa\n", b"a\n", ["byte-order mark removed"]),
        (b"\xe9\n", b"\xc3\xa9\n", ["encoding: an encoding other than UTF-8 became UTF-8"]),
        (b"a\n", b"a", ["line endings: LF became none", "newline at the end of the file removed"]),
        (b"a\nb", b"a\nb\n", ["newline at the end of the file added"]),
    ],
)
def test_d17_notes_say_what_no_diff_shows(base: bytes, agent: bytes, notes: list[str]) -> None:
    found = reviewed(base, agent, base)
    assert list(found.change.notes) == notes
    assert found.apply().after == agent


def test_d17_what_a_buffer_cannot_express_is_said_and_left() -> None:
    found = reviewed(b"a\r\nb\r\n", b"\xef\xbb\xbfa\nB\n", "a\r\nb\r\n")
    suffix = "; an open buffer cannot show this, so it stays as it is there"
    assert found.change.notes == (f"line endings: CRLF became LF{suffix}", f"byte-order mark added{suffix}")


def test_missing_final_newline_in_the_body() -> None:
    found = reviewed(b"a\nb", b"a\nb\nc\n", b"a\nb")
    assert found.change.hunks[0].text == "-b\n\\ No newline at end of file\n+b\n+c\n"


def test_new_file() -> None:
    found = reviewed(None, b"a\nb\n", None, new_mode=EXECUTABLE)
    assert [(hunk.header, hunk.text) for hunk in found.change.hunks] == [("@@ -0,0 +1,2 @@", "+a\n+b\n")]
    assert found.apply() == Outcome("f.txt", "f.txt", None, b"a\nb\n", executable=True, mode=ABSENT)
    assert found.change.notes == ("mode: the new file is executable",)


def test_new_empty_file() -> None:
    found = reviewed(None, b"", None)
    assert states(found) == [("makes an empty file", "open")]
    assert found.apply() == Outcome("f.txt", "f.txt", None, b"", executable=False, mode=ABSENT)
    assert states(reviewed(None, b"", b"")) == [("makes an empty file", "accepted")]


def test_new_file_where_the_user_has_one() -> None:
    found = reviewed(None, b"a\n", b"mine\n")
    assert found.change.conflict == FileConflict(
        "you have a file of this name with other content", (found.change.hunks[0].id,)
    )
    assert found.apply().after == b"mine\n"
    assert [state for _, state in states(reviewed(None, b"a\n", b"a\n"))] == ["accepted"]


def test_new_file_into_an_empty_new_buffer() -> None:
    assert reviewed(None, b"a\n", "", target_mode=ABSENT).apply().after == "a\n"


def test_deleted_file() -> None:
    found = reviewed(BASE, None, BASE)
    assert states(found) == [("deletes the file", "open")]
    assert found.change.needs_confirmation
    assert found.change.hunks[0].text == "".join(f"-{line}" for line in BASE.decode().splitlines(keepends=True))
    assert found.apply() == Outcome("f.txt", "f.txt", BASE, None, mode=FILE)
    assert states(reviewed(BASE, None, None)) == [("deletes the file", "accepted")]


def test_deletion_of_a_file_that_the_user_changed_is_a_conflict() -> None:
    found = reviewed(BASE, None, BASE + b"mine\n")
    assert found.change.conflict is not None
    assert found.apply().after == BASE + b"mine\n"


def test_edit_of_a_file_that_the_user_deleted_is_a_conflict() -> None:
    found = reviewed(BASE, AGENT, None)
    assert found.change.conflict == FileConflict("you deleted this file", tuple(h.id for h in found.change.hunks))
    assert found.apply().after is None


@pytest.mark.parametrize("mode", [LINK, OTHER])
def test_edit_of_what_is_no_file_any_more_is_a_conflict(mode: str) -> None:
    found = reviewed(BASE, AGENT, b"elsewhere" if mode == LINK else None, target_mode=mode)
    assert found.change.conflict is not None
    assert found.change.conflict.reason == "there is no ordinary file at this path now"
    assert found.change.open_hunks == set()


def test_binary_file_is_one_piece() -> None:
    base, agent = b"\0one\n", b"\0two\n\0three\n"
    found = reviewed(base, agent, base)
    assert (states(found), found.change.binary) == ([("the whole file", "open")], True)
    assert found.change.notes == ("binary: 5 bytes became 12 bytes",)
    assert found.apply().after == agent
    assert states(reviewed(base, agent, agent)) == [("the whole file", "accepted")]
    conflict = reviewed(base, agent, b"\0mine").change.conflict
    assert conflict is not None
    assert conflict.reason == "your file differs from both sides, and this change cannot be divided"


def test_executable_bit_is_a_part_of_its_own() -> None:
    found = reviewed(BASE, AGENT, BASE, new_mode=EXECUTABLE)
    assert states(found)[-1] == ("makes it executable", "open")
    assert found.change.notes == ("mode: 100644 became 100755 (makes it executable)",)
    mode = found.change.hunks[-1].id
    assert found.apply([mode]) == Outcome("f.txt", "f.txt", BASE, BASE, executable=True, mode=FILE)
    assert found.apply(found.change.open_hunks - {mode}).executable is None
    assert states(reviewed(BASE, AGENT, BASE, new_mode=EXECUTABLE, target_mode=EXECUTABLE))[-1][1] == "accepted"


def test_link_replaces_a_file() -> None:
    found = reviewed(b"text", b"target", b"text", new_mode=LINK, status="typechange")
    assert states(found) == [("links to target", "open")]
    assert found.change.notes == ("symbolic link: none became target",)
    assert found.change.needs_confirmation
    assert found.apply() == Outcome("f.txt", "f.txt", b"text", b"target", links=(False, True), mode=FILE)
    done = reviewed(b"text", b"target", b"target", new_mode=LINK, target_mode=LINK)
    assert states(done) == [("links to target", "accepted")]
    assert reviewed(b"text", b"target", b"target", new_mode=LINK).change.conflict is not None  # a file with that text


def test_link_moves_and_link_becomes_a_file() -> None:
    modes = {"old_mode": LINK, "target_mode": LINK}
    moved = reviewed(b"a", b"b", b"a", new_mode=LINK, **modes)
    assert moved.apply().links == (True, True)
    filed = reviewed(b"a", b"text\n", b"a", **modes)
    assert filed.apply() == Outcome("f.txt", "f.txt", b"a", b"text\n", links=(True, False), mode=LINK)


def test_submodules_are_shown_and_never_applied() -> None:
    found = reviewed(None, None, None, old_mode=SUBMODULE, new_mode=SUBMODULE, status="modified")
    assert states(found) == [("submodule moves to another commit", "open")]
    assert found.change.notes == ("submodule: only its commit changes",)
    assert found.change.open_hunks == set()


def moved(base: bytes, agent: bytes, current: bytes | str | None, **more: Any) -> FileReview:
    return reviewed(base, agent, current, path="new.txt", old_path="old.txt", status="renamed", **more)


def test_rename_with_edits_in_both_orders() -> None:
    found = moved(BASE, AGENT, BASE)
    rename, first, second = (hunk.id for hunk in found.change.hunks)
    assert found.apply() == Outcome("old.txt", "new.txt", BASE, AGENT, executable=False, mode=FILE)
    assert found.apply([first, second]) == Outcome("old.txt", "old.txt", BASE, AGENT, mode=FILE)
    assert found.apply([rename]).after == BASE
    done = moved(BASE, AGENT, BASE, moved=True)
    assert [hunk.state for hunk in done.change.hunks] == ["accepted", "open", "open"]
    assert done.apply() == Outcome("new.txt", "new.txt", BASE, AGENT, mode=FILE)


def test_rename_keeps_the_users_edits_and_bits() -> None:
    found = moved(BASE, AGENT, b"mine\n" + BASE, target_mode=EXECUTABLE)
    assert found.apply() == Outcome(
        "old.txt", "new.txt", b"mine\n" + BASE, b"mine\n" + AGENT, executable=True, mode=EXECUTABLE
    )


def test_rename_to_a_taken_name_and_of_a_deleted_file() -> None:
    taken = moved(BASE, BASE, BASE, occupied=True).change.conflict
    gone = moved(BASE, BASE, None).change.conflict
    assert (taken and taken.reason, gone and gone.reason) == (
        "there is a file new.txt already",
        "you deleted old.txt",
    )


def test_rename_of_an_open_buffer_needs_its_bytes() -> None:
    base, agent = b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n", b"\xef\xbb\xbfone\r\ntwo\r\nTHREE\r\n"
    found = moved(base, agent, "one\ntwo\nthree\n")
    rename, _ = (hunk.id for hunk in found.change.hunks)
    assert found.apply().after == agent
    assert found.apply([rename]).after == base
    with pytest.raises(ReviewConflict, match=r"old\.txt is open in the editor with other text"):
        moved(base, agent, "mine\none\ntwo\nthree\n").apply()


def test_blocked_path_has_only_conflicts() -> None:
    found = reviewed(BASE, AGENT, BASE, blocked="f.txt is inside a git folder")
    assert found.change.conflict == FileConflict(
        "f.txt is inside a git folder", tuple(hunk.id for hunk in found.change.hunks)
    )
    assert found.apply().after == BASE


def test_stats_and_remaining() -> None:
    files = (reviewed(BASE, AGENT, BASE).change, reviewed(b"\0", b"\0\0", b"\0").change)
    review = Review("id", "c", "b", None, "h", files)
    assert review.stats == Stats(files=2, insertions=3, deletions=2)
    assert review.remaining == 3
    done = Review("id", "c", "b", None, "h", (reviewed(BASE, AGENT, AGENT).change,))
    assert (done.stats, done.remaining) == (Stats(1, 3, 2), 0)


def test_lines_are_those_of_lsp() -> None:
    text = "a\r\nb\rc\nd\u2028e\x0bf\x85g"
    assert split_lines(text) == ["a\r\n", "b\r", "c\n", "d\u2028e\x0bf\x85g"]
    assert [line.decode() for line in split_lines(text.encode())] == split_lines(text)


def test_edits_slide_down_as_in_git() -> None:
    assert diff(list("aXbXc"), list("aXbXbXc")) == [Edit(4, 4, 4, 6)]


@pytest.mark.parametrize("kind", ["unique", "code", "few", "shuffled"])
def test_big_files_are_fast(kind: str) -> None:
    """50,000 lines: well under a second alone, so three on a busy machine mean a change of order."""
    rng = random.Random(1)
    unique = [f"line {number}\n" for number in range(50_000)]
    few = ["}\n", "\n", "return\n", "x = 1\n"]
    base = [rng.choice([*few, line]) if kind == "code" else rng.choice(few) for line in unique]
    base = unique if kind == "unique" else base
    agent = list(base)
    for _ in range(300):
        agent[rng.randrange(len(agent))] = "agent\n"
    if kind == "shuffled":
        rng.shuffle(agent)
    current = list(base)
    for _ in range(100):
        current.insert(rng.randrange(len(current)), "user\n")
    texts = ["".join(each).encode() for each in (base, agent, current)]
    begun = time.perf_counter()
    found = reviewed(*texts)
    found.apply()
    assert time.perf_counter() - begun < 3
    assert found.apply(()).after == texts[2]


def test_a_path_is_called_as_it_is_shown_unless_another_one_is_called_so() -> None:
    odd, other = "n\udce9w", "\udce9"
    assert named([odd, other, "\ufffd"]) == {odd: odd, "n\ufffdw": odd, other: other, "\ufffd": "\ufffd"}

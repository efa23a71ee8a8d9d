from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.tools.unified import unified

LINES = st.lists(st.sampled_from(["a", "b", "c", "", " d", "-e", "\\", "+f\x0cg"]), max_size=25)
TEXT = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


def test_whole_values() -> None:
    header = "--- a/x\n+++ b/x\n"
    assert unified("a\n", "a\n", "x") == ""
    assert unified("a", "a\n", "x") == f"{header}@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"
    assert unified(None, "a\n", "/abs/x") == "--- /dev/null\n+++ b/abs/x\n@@ -0,0 +1 @@\n+a\n"
    assert unified("a\n", None, "x") == "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
    assert unified(None, "", "x") == "--- /dev/null\n+++ b/x\n"


def test_far_changes_have_hunks_of_their_own() -> None:
    before = "".join(f"{n}\n" for n in range(1, 31))
    after = before.replace("5\n", "five\n", 1).replace("25\n", "").replace("30\n", "30\nend\n")
    assert unified(before, after, "x") == (
        "--- a/x\n+++ b/x\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        "@@ -22,9 +22,9 @@\n 22\n 23\n 24\n-25\n 26\n 27\n 28\n 29\n 30\n+end\n"
    )


@given(TEXT, TEXT)
def test_git_apply_makes_the_new_text(tmp_path_factory: pytest.TempPathFactory, before: str, after: str) -> None:
    if not before or not after or before == after:
        return
    folder: Path = tmp_path_factory.getbasetemp()
    (folder / "x").write_text(before, newline="")
    (folder / "patch").write_text(unified(before, after, "x"), newline="")
    subprocess.run(["git", "apply", "--unidiff-zero", "patch"], cwd=folder, check=True, capture_output=True)
    assert (folder / "x").read_bytes().decode() == after

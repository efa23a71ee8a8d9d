"""The demo against a language server that does the task itself and misbehaves on request: each fault gives one line."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from lsp_server.demo import __main__ as demo
from lsp_server.demo.lines import Lines
from lsp_server.demo.project import TEST_COMMAND
from lsp_server.demo.screen import visible

FAKE = Path(__file__).with_name("fake_language_server.py")
LAST = "✓ the agent's work is in the checkout, and only what was applied"


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """`code, lines = run(fault, answers, *argv)`; the demo's folder is made in tmp_path."""

    def run(fault="", answers=(), *argv):
        reader, writer = os.pipe()
        os.write(writer, "".join(f"{answer}\n" for answer in answers).encode())
        os.close(writer)
        monkeypatch.setattr(demo, "SERVE", (sys.executable, str(FAKE), fault))
        monkeypatch.setattr(demo, "Lines", lambda: Lines(reader))
        monkeypatch.setattr(demo.tempfile, "mkdtemp", lambda prefix: str(make(tmp_path / "demo")))
        code = demo.main(argv)
        return code, capsys.readouterr().out.rstrip("\n").split("\n")

    return run


def make(path):
    path.mkdir()
    return path


def test_yes_goes_through_and_leaves_nothing(run, tmp_path):
    code, lines = run("", (), "--yes")
    assert (code, lines[-1], list(tmp_path.iterdir())) == (0, LAST, [])
    assert [line for line in lines if line.startswith(("→", "✓ applied"))] == [
        "→ Allow once",
        "✓ applied shop/rounding.py; open hunks left: 0",
        "✓ applied shop/cart.py, shop/old_rounding.py; open hunks left: 0",
    ]
    assert "I am \\u202ehere" in lines
    assert lines[-2].startswith("4 turns, 7 tool uses, 400 tokens in (75 % from the cache), 20 tokens out; ")


def test_a_person_chooses_file_by_file(run, tmp_path):
    code, lines = run("", ("", "x", "1", "2", "1", "2", "2"), "--keep")
    shop = tmp_path / "demo" / "shop"
    assert (code, lines[-1]) == (0, LAST)
    assert "from shop.rounding" in (shop / "shop/cart.py").read_text()
    assert ((shop / "shop/old_rounding.py").exists(), (shop / "shop/rounding.py").exists()) == (True, False)


def test_a_person_rejects_the_command_and_applies_nothing(run):
    code, lines = run("", ("2", "3"))
    assert (code, lines[-1], [line for line in lines if line.endswith("→ Reject")] != []) == (0, LAST, True)


def test_all_at_once(run):
    code, lines = run("", ("1", "1"))
    assert (code, lines[-1]) == (0, LAST)


FAULTS = {
    "version": "the server offers version 2 of experimental.agent, expected 1",
    "no-spawn": "the server does not offer agent/spawn",
    "writes-early": "the user's checkout is not as it should be before anything was applied: shop/cart.py",
    "runs-early": "the command ran before it was allowed",
    "never-asks": "the test command was asked for 0 times, expected once",
    "never-runs": f"the command {TEST_COMMAND!r} did not run although it was allowed",
    "other-command": "asked for 'Run the test', expected only the command ",
    "in-checkout": "the command would run in the user's checkout, not in a worktree: ",
    "no-allow": "the permission request has no option of kind allowOnce",
    "fails": "the agent ended as failed: no luck",
    "dies": "the language server ended; its last words: Fatal: out of luck",
    "other-content": "shop/cart.py in the agent's worktree is not what the model wrote",
    "short-review": "the review lists [('shop/cart.py', 'modified'), ('shop/old_rounding.py', 'deleted')], expected [",
    "conflict": "not applied: shop/rounding.py: changed meanwhile",
    "lies": "the user's checkout is not as it should be after the apply: shop/rounding.py",
    "applies-all": "the user's checkout is not as it should be after the apply: shop/cart.py, shop/old_rounding.py",
    "leaves-a-file": "the user's checkout is not as it should be after the apply: stray",
}


@pytest.mark.parametrize(("fault", "line"), FAULTS.items(), ids=list(FAULTS))
def test_each_fault_gives_one_line_and_a_code(run, fault, line):
    code, lines = run(fault, (), "--yes")
    assert code == 1
    assert lines[-1].startswith(f"✗ {line}")
    assert sum(text.startswith("✗") for text in lines) == 1


def test_the_end_of_stdin_is_no_answer(run):
    code, lines = run("", ())
    assert (code, lines[-1]) == (1, "✗ standard input ended before the question was answered")


def test_yes_is_refused_for_a_real_model(run, capsys):
    with pytest.raises(SystemExit) as caught:
        demo.main(["--live", "go", "--yes"])
    assert caught.value.code == 2


def test_what_a_terminal_would_obey_is_written_out():
    assert visible("a\x1b[2J\u202eb\tc\r") == "a\\u001b[2J\\u202eb\tc\\u000d"

"""Texts made of pieces of shell: none that runs `touch made` in real bash is free without a rule (PM-4).

Most of them are broken. That is the point: the grammar repairs what bash reads otherwise, and what it makes of that
must not count. A text that is let through is run, in an empty folder.
"""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from agent_core.permissions.decision import decide
from agent_core.permissions.policy import Call, PolicyContext
from agent_core.permissions.rules import MatchContext
from agent_core.permissions.types import Allow, PermissionFacts, PermissionMode, ToolKind

SOAK = os.environ.get("AGENT_LS_SOAK") == "1"
SEEDS = range(200) if SOAK else range(2)
TEXTS = 10_000
RUNS = ("$(touch made)", "`touch made`", "touch made", ";touch made", "\ntouch made\n", "<(touch made)", "|touch made")
PIECES = (
    *("echo ", "cat ", "printf ", "test ", "true", "time ", "coproc ", "a", "x", "E", "1", "-", "=", "x=", "+", "~"),
    *(" ", "  ", "\n", "\t", "\r", "\v", "\\", "\\\n", "\u00a0", "#", " #", "'", '"', "$'", '$"', "\\'", '\\"', "\\`"),
    *("${x:-", "${x#", "${x%", "${x/", "${x:", "${#x}", "${x}", "}", "$x", "$@", "$((", "))", "$(", ")", "$[", "]"),
    *("(", "((", "{", "[[ ", " ]]", "a[", "[a", "{a,", "*", "?", "@(", "+(", "^", "%", "==", "=~ ", "-eq ", "\\$"),
    *("<<E\n", "<<'E'\n", "<<\\E\n", "<<-E\n", "<<<", "\nE\n", "\n\tE\n", "<", ">/dev/null", "2>&1", "|", "&", "&&"),
    *("||", "!", " ! ", ";", " ; ", ";;", "case x in ", "x)", "esac", "for i in ", "do ", "done", "if ", "then ", "fi"),
    *("while ", "function ", "select "),
)
BEGINNINGS = (
    *("echo ", 'echo "', "cat <<E\n", "[[ a == ", "x=", "echo ${x:-", 'echo "${x:-', "case a in ", "echo $((", "test "),
    *("for i in a ", ""),
)
ENDS = ("", '"', '}"', "}", " ]]", "\nE", "\nE\n", ")", "))", ";;esac", "; do :; done")


def text(chance: random.Random) -> str:
    pieces = [chance.choice(PIECES) for _ in range(chance.randint(1, 7))]
    pieces.insert(chance.randint(0, len(pieces)), chance.choice(RUNS))
    return chance.choice(BEGINNINGS) + "".join(pieces) + chance.choice(ENDS)


@pytest.mark.spec("PM-4")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", SEEDS)
def test_b7_what_is_free_runs_nothing_but_what_stands_there(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    home = Path("/nonexistent/home")
    ctx = PolicyContext(PermissionMode.DEFAULT, (), (tmp_path.resolve(),), None, MatchContext((tmp_path,), home))
    free, ran = 0, []
    for _ in range(TEXTS):
        command = text(chance)
        facts = PermissionFacts(command=command, cwd=tmp_path, input={"command": command})
        if not isinstance(decide(Call("Bash", ToolKind.EXECUTE, False, facts), ctx), Allow):
            continue
        free += 1
        try:
            quiet = subprocess.DEVNULL
            subprocess.run(["bash", "-c", command], cwd=tmp_path, timeout=5, stdin=quiet, stdout=quiet, stderr=quiet)
        except subprocess.TimeoutExpired:
            pass
        if any(tmp_path.iterdir()):
            ran.append(command)
            for path in tmp_path.iterdir():
                path.unlink()
    assert ran == []
    assert free > 50, "else nothing was tried"

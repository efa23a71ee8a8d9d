"""What holds for any shell command: parts never hide, spelling never decides, bash runs nothing that was not seen."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agent_core.permissions.decision import decide
from agent_core.permissions.options import options_for
from agent_core.permissions.policy import Call, PolicyContext
from agent_core.permissions.rules import MatchContext, parse_rule
from agent_core.permissions.shell.matching import allows, escaped, spelling
from agent_core.permissions.shell.parse import SimpleCommand, parse
from agent_core.permissions.shell.visible import hides, visible
from agent_core.permissions.types import Allow, OptionKind, PermissionFacts, PermissionMode, PermissionRule, ToolKind

WORK, HOME = Path("/nonexistent/work"), Path("/nonexistent/home")
RULES = ("Bash(git *)", "Bash(make test)", "Bash(npm run *)", "Bash(echo *)", "Bash(a*)")
WORDS = st.sampled_from(
    ["git", "make", "test", "npm", "run", "echo", "ls", "rm", "-rf", "x", "a b", "$x", "*.py", "a", "'q'", "é", "-c"]
)
JOINS = st.sampled_from([" && ", " || ", "; ", " | ", "\n", " & "])
COUNT = 2_000 if os.environ.get("AGENT_LS_SOAK") else 60


def context(*rules: PermissionRule | None) -> PolicyContext:
    given = tuple(rule for rule in rules if rule)
    return PolicyContext(PermissionMode.DEFAULT, given, (WORK,), None, MatchContext((WORK,), HOME))


USUAL = context(*(parse_rule(text, "allow", "s", WORK) for text in RULES))


def bash(command: str) -> Call:
    return Call("Bash", ToolKind.EXECUTE, False, PermissionFacts(command=command, cwd=WORK))


def spelled(words: list[str]) -> str:
    return " ".join(word if word[0] in "$*'" else shlex.quote(word) for word in words)


COMMANDS = st.lists(WORDS, min_size=1, max_size=4).map(spelled)


@pytest.mark.spec("PM-4")
@given(COMMANDS, JOINS, COMMANDS)
def test_b7_a_further_part_never_frees_what_was_not_free(first: str, join: str, second: str) -> None:
    alone = isinstance(decide(bash(first), USUAL), Allow)
    for whole in (first + join + second, second + join + first, f"({second}{join}{first})", f"echo $({first})"):
        if isinstance(decide(bash(whole), USUAL), Allow):
            assert alone, whole


@pytest.mark.spec("PM-5", "PM-4")
@given(COMMANDS, COMMANDS)
def test_a_stored_rule_frees_the_same_program_with_the_same_words_only(approved: str, other: str) -> None:
    options = options_for(bash(approved), context(), None)
    stored = next((option.rules for option in options if option.kind is OptionKind.ALLOW_SESSION), ())
    assume(stored)
    seen = {spelling(command) for command in parse(approved).commands}
    for rule in stored:
        specifier = rule.removeprefix("Bash(").removesuffix(")")
        for command in parse(other).commands:
            if allows(specifier, command):
                assert spelling(command) in seen


@pytest.mark.spec("PM-4")
@given(st.lists(st.text(st.sampled_from("ab-./=é *?$;&|<>()'\"\\#~!{}\n"), max_size=6), min_size=1, max_size=4))
def test_quotes_decide_nothing(words: list[str]) -> None:
    """The same words, quoted in three ways, are one command; and its own rule is for it alone."""
    assume(words[0])
    single = " ".join(shlex.quote(word) for word in words)
    double = " ".join('"' + "".join(f"\\{c}" if c in '$`"\\' else c for c in word) + '"' for word in words)
    ansi = " ".join("$'" + word.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'" for word in words)
    found = {decide(bash(text), USUAL) for text in (single, double, ansi)}
    scripts = [parse(text) for text in (single, double, ansi)]
    if all(script.problem is None for script in scripts):
        assert len(found) == 1, found
        [command] = scripts[0].commands
        assert [word.literal for word in command.words] == words
        assert allows(escaped(spelling(command)), command)


@given(st.text(max_size=40))
def test_a16_nothing_hides_in_what_is_shown(text: str) -> None:
    assert not hides(visible(text))


PROGRAMS = ("p", "q", "r")
ARGUMENTS = st.lists(st.sampled_from(["1", "'a b'", '"c"', "d\\ e", "$X"]), max_size=2)
SIMPLE = st.tuples(st.sampled_from(PROGRAMS), ARGUMENTS)
BASH = shutil.which("bash") or "bash"


def _simple(parts: tuple[str, list[str]]) -> str:
    return " ".join((parts[0], *parts[1]))


SCRIPTS = st.recursive(
    SIMPLE.map(_simple),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" && ", " || ", "; ", " | ", "\n"]), inner).map("".join),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"{{ {text}; }}"),
        inner.map(lambda text: f"p $({text})"),
        inner.map(lambda text: f'q "x $({text}) y"'),
        inner.map(lambda text: f"r <({text})"),
        inner.map(lambda text: f"if {text}; then {text}; else q; fi"),
        inner.map(lambda text: f"for i in 1 2; do {text}; done"),
        inner.map(lambda text: f"f() {{ {text}; }}; f"),
        inner.map(lambda text: f"case 1 in 1) {text};; esac"),
        inner.map(lambda text: f"p <<X\n$({text})\nX\n"),
        inner.map(lambda text: f"! {text}"),
        inner.map(lambda text: f"Y=$({text}) p"),
        inner.map(lambda text: f"[[ -n $({text}) ]]"),
    ),
    max_leaves=6,
)


@pytest.mark.spec("PM-4")
@settings(max_examples=COUNT)
@given(SCRIPTS)
def test_bash_runs_nothing_that_was_not_seen(script: str) -> None:
    parsed = parse(script)
    if parsed.problem is not None:
        return
    for ran in _run(script):
        assert any(_could_be(command, ran) for command in parsed.commands), (script, ran)


def _run(script: str) -> list[list[str]]:
    """What bash starts, by programs that write down how they were called."""
    with tempfile.TemporaryDirectory() as place:
        logs = Path(place, "logs")
        logs.mkdir()
        for name in PROGRAMS:
            program = Path(place, name)
            program.write_text(f'#!/bin/sh\nprintf "%s\\0" {name} "$@" >{logs}/$$\n')
            program.chmod(0o755)
        subprocess.run(
            [BASH, "-c", script], env={"PATH": place}, cwd=place, timeout=20, capture_output=True, check=False
        )
        return [path.read_text().split("\0")[:-1] for path in logs.iterdir()]


def _could_be(command: SimpleCommand, ran: list[str]) -> bool:
    if any(word.literal is None for word in command.words):
        return bool(command.words) and command.words[0].literal in (None, ran[0])
    return [word.literal for word in command.words] == ran

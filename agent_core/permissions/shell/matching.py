"""`Bash(...)` rules against one simple command (PM-2, PM-4). Pure.

`*` is anything, spaces too; ` *` at the end, and `:*`, need the end of a word; `\\*` and `\\\\` are themselves. Both
sides are compared in one spelling, so that quotes and spaces decide nothing. An allow must name what the command is; a
deny or an ask is also found behind other spellings of the program, wrappers, assignments and shells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from attrs import evolve, frozen

from agent_core.permissions.shell.launching import inner_commands, launches, opaque
from agent_core.permissions.shell.parse import Assignment, SimpleCommand, parse
from agent_core.permissions.shell.words import Word, quoted
from agent_core.permissions.shell.wrappers import unwrapped
from agent_core.permissions.types import Match

_WILD = "\ue000"
_SAFE = re.compile(r"LANG|LANGUAGE|LC_[A-Z]+|TZ|NO_COLOR|FORCE_COLOR|CLICOLOR|CI|DEBUG|VERBOSE|COLUMNS|LINES|TERM")
"""Variables that change no more than how something is shown."""


@frozen
class Pattern:
    """A rule's specifier. `words` are those before its first wildcard; `fixed`: it has none."""

    regex: re.Pattern[str]
    words: tuple[str, ...]
    fixed: bool
    assigns: bool
    text: str


@lru_cache(maxsize=8192)
def pattern(specifier: str) -> Pattern:
    if _WILD in specifier:
        return Pattern(re.compile("(?!)"), (), True, False, specifier)
    text = _with_wildcards(specifier.strip())
    spelled = _canonical(text)
    boundary = spelled.endswith(f" {_WILD}")
    pieces = (spelled[:-2] if boundary else spelled).split(_WILD)
    regex = ".*".join(re.escape(piece) for piece in pieces) + ("(?: .*)?" if boundary else "")
    fixed = _WILD not in spelled
    words = tuple(word for word in spelled.split(_WILD)[0].split(" ") if word)
    assigns = re.match(r"[A-Za-z_]\w*=", spelled) is not None
    return Pattern(re.compile(regex, re.DOTALL), words, fixed, assigns, spelled)


def _with_wildcards(text: str) -> str:
    if text.endswith(":*"):
        text = f"{text[:-2]} *"
    return re.sub(r"\\([\\*])|\*", lambda found: found[1] or _WILD, text)


def escaped(text: str) -> str:
    """A command as the specifier of a rule that matches it and nothing else."""
    return re.sub(r"[\\*]", r"\\\g<0>", text)


def _canonical(text: str) -> str:
    script = parse(text)
    if script.problem is None and len(script.commands) == 1 and not script.redirects:
        (command,) = script.commands
        return spelling(command)
    return " ".join(text.split())


def spelling(command: SimpleCommand) -> str:
    assigned = [f"{each.name}={quoted(each.value or '')}" for each in command.assignments]
    return " ".join([*assigned, *(word.canonical for word in command.words)])


def harmless(assignment: Assignment) -> bool:
    return assignment.value is not None and _SAFE.fullmatch(assignment.name) is not None


def allows(specifier: str, command: SimpleCommand) -> bool:
    """Whether an allow rule frees this simple command."""
    if not command.words or command.words[0].literal is None:
        return False
    rule = pattern(specifier)
    if any(each.value is None for each in command.assignments) or _exports_dangerous(command):
        return False
    kept = tuple(each for each in command.assignments if not harmless(each))
    plain = evolve(command, assignments=kept)
    for each in dict.fromkeys((plain, unwrapped(plain))):
        if (kept and not rule.assigns) or rule.regex.fullmatch(spelling(each)) is None:
            continue
        if rule.fixed or not (launches(each) or _dangerous(kept)):
            return True
    return False


_DANGEROUS = re.compile(
    r"PATH|LD_.*|DYLD_.*|IFS|ENV|BASH.*|SHELL.*|PS\d|PROMPT_COMMAND|GIT_.*|SSH_.*|.*PAGER|.*EDITOR|VISUAL|BROWSER|HOME"
    r"|PYTHON.*|NODE_.*|NPM_.*|npm_.*|PERL.*|RUBY.*|JAVA_.*|_JAVA_.*|CDPATH|GLOBIGNORE|XDG_.*|CLAUDE.*|ANTHROPIC.*"
    r"|.*_COMMAND|.*_OPTIONS|.*OPTS|LESS.*|MAKEFLAGS|MANPAGER|TMPDIR|.*_proxy|.*_PROXY|CC|CXX|RUSTC.*|CARGO.*|GO.*"
)


def _exports_dangerous(command: SimpleCommand) -> bool:
    declares = command.program in ("export", "declare", "typeset", "readonly", "local")
    return declares and any(dangerous((word.text or "PATH").partition("=")[0]) for word in command.words[1:])


def _dangerous(assignments: tuple[Assignment, ...]) -> bool:
    return any(dangerous(each.name) for each in assignments)


def dangerous(name: str) -> bool:
    """A variable that decides which program runs, or what one does."""
    return _DANGEROUS.fullmatch(name) is not None


def restricts(specifier: str, command: SimpleCommand) -> Match:
    """Whether a deny or an ask rule speaks of this simple command, however it is spelled."""
    rule, unclear = pattern(specifier), False
    for each, certain in spellings(command):
        found = _speaks(rule, each)
        if found is Match.YES and certain:
            return found
        unclear = unclear or found is not Match.NO or opaque(each)
    return Match.UNCLEAR if unclear else Match.NO


@lru_cache(maxsize=256)
def spellings(command: SimpleCommand) -> tuple[tuple[SimpleCommand, bool], ...]:
    """All that a restriction looks at, with whether it is certain that this is what runs."""
    return tuple(dict.fromkeys(_spellings(command)))


def _spellings(command: SimpleCommand) -> Iterator[tuple[SimpleCommand, bool]]:
    bare = evolve(command, assignments=())
    for each, certain in ((bare, True), (unwrapped(bare), True), *inner_commands(bare)):
        yield evolve(each, assignments=()), certain
        if each.program and "/" in each.program:
            name = each.program.rsplit("/", 1)[-1]
            yield evolve(each, assignments=(), words=(Word(name, name), *each.words[1:])), certain
    if command.assignments:
        yield command, True


def _speaks(rule: Pattern, command: SimpleCommand) -> Match:
    if rule.regex.fullmatch(spelling(command)):
        return Match.YES
    words = [word.literal for word in command.words]
    if all(word is not None for word in words) or not rule.words:
        return Match.NO
    for wanted, word in zip(rule.words, command.words, strict=False):
        if word.literal is None:
            return Match.UNCLEAR if _could_be(wanted, word) else Match.NO
        if word.canonical != wanted:
            last = wanted == rule.words[-1] and not rule.fixed
            return Match.UNCLEAR if last and word.canonical.startswith(wanted) else Match.NO
    return Match.UNCLEAR


def _could_be(wanted: str, word: Word) -> bool:
    """A pattern becomes names that fit it, when there are any; an expansion anything, several words or none."""
    if not word.pattern or word.text is None or "{" in word.text:
        return True
    import fnmatch

    last = word.text.rpartition("/")[2]
    return any(fnmatch.fnmatchcase(wanted.strip("'"), each) or each.startswith("*") for each in (word.text, last))

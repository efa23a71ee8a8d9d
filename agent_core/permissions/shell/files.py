"""Which files the words of a command name. Looks at the disk only to see what a pattern stands for."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from attrs import frozen

from agent_core.permissions.shell.parse import Script
from agent_core.permissions.shell.words import VARIABLES, Word, unmarked

FREE = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero"})
_MOST = 200
"""Names that a pattern may stand for; of more nobody says what they are."""


@frozen
class Where:
    """`cwd` None: a `cd` that nobody can follow comes before. `certain`: variables that nothing sets."""

    cwd: Path | None
    home: Path
    certain: frozenset[str] = frozenset()


_SETS = frozenset({"eval", "source", ".", "trap", "alias", "enable"})


def certain(text: str, script: Script) -> frozenset[str]:
    """The variables that nothing in the command can set: they are named for their values alone."""
    programs = [command.program for command in script.commands if command.words]
    if any(program is None or program in _SETS for program in programs):
        return frozenset()
    said = [word.literal or "" for command in script.commands for word in command.words]
    return frozenset(
        name
        for name in VARIABLES
        if not re.search(rf"(?<!\$)(?<!\$\{{)\b{name}\b", text)
        and not any(name in literal or "IFS" in literal for literal in said)
        and "IFS" not in text
    )


def resolved(word: Word, where: Where) -> Word:
    """With the values of variables that are certain."""
    if word.template is None:
        return word
    values = {"HOME": str(where.home), **({"PWD": str(where.cwd)} if where.cwd else {})}
    return unmarked(word, {name: value for name, value in values.items() if name in where.certain})


def paths_of(word: Word, where: Where) -> tuple[Path, ...] | None:
    """None when it cannot be known."""
    word = resolved(word, where)
    if word.text is None:
        return None
    text = word.text
    if word.home:
        if text != "~" and not text.startswith("~/"):
            return None
        text = f"{where.home}{text[1:]}"
    if text in FREE and not word.pattern:
        return ()
    if text.startswith(("//", "/dev/tcp", "/dev/udp", "/proc/")) or (not text.startswith("/") and where.cwd is None):
        return None
    if not word.pattern:
        return ((where.cwd or Path("/")) / text,)
    return _all_standing_for(text, word.source, where.cwd or Path("/"))


def _all_standing_for(text: str, source: str, cwd: Path) -> tuple[Path, ...] | None:
    """Of a pattern that may hold choices."""
    plain = not re.search(r"['\"\\]", source)
    if re.search(r"\[[^\]]*['\"\\]", source):
        return None
    choices = [text] if "{" not in text else _choices(text) if plain else None
    if choices is None or any(each.startswith(("~", "//", "/dev", "/proc")) for each in choices):
        return None
    found = [_standing_for(cwd / each) if re.search(r"[*?[]", each) else (cwd / each,) for each in choices]
    return None if None in found else tuple(path for paths in found for path in paths or ())


def _choices(text: str) -> list[str] | None:
    """What bash makes of `a{b,c}`; None where there are too many, and of `{1..3}`."""
    choices = [text]
    while any("{" in each or "}" in each for each in choices):
        inner = [re.search(r"\{([^{},]*(?:,[^{},]*)+)\}", each) for each in choices]
        if None in inner or len(choices) > _MOST:
            return None
        choices = [
            each[: found.start()] + one + each[found.end() :]
            for each, found in zip(choices, inner, strict=True)
            if found
            for one in found[1].split(",")
        ]
    return choices


def _standing_for(path: Path) -> tuple[Path, ...] | None:
    """Of a pattern the files that there are, itself where there are none, and the folder that they are in."""
    text = str(path)
    first = re.search(r"[*?\[]", text)
    if first is None or ".." in text[first.start() :] or re.search(r"\[\^|\[[^\]]*\[[:.=]|\\", text):
        return None  # what bash knows and the module glob does not
    base = Path(text[: first.start()].rpartition("/")[0] or "/")
    try:
        found = list(islice(glob.iglob(text), _MOST + 1))  # noqa: PTH207 - as bash: a pattern with any beginning
    except (OSError, re.error, ValueError):
        return None
    return (base, *map(Path, found or (text,))) if len(found) <= _MOST else None


def hidden_in_option(word: Word) -> Word | None:
    """The path that an option such as `--file=/etc/x`, `-f/etc/x` or `-I../x` may hold."""
    text = word.text or ""
    found = re.search(r"=|(?<=^-[A-Za-z])(?=[./~])", text)
    start = found.end() if found else None
    if start is None:
        slash = re.search(r"[/~]|\.\.", text)
        start = slash.start() if slash else None
    if start is None:
        return None
    rest = text[start:]
    return Word(rest, rest, word.pattern, rest.startswith("~")) if "/" in rest or rest.startswith(("~", "..")) else None


def candidates(words: Iterable[Word]) -> Iterator[Word]:
    for word in words:
        if not (word.text or "").startswith("-"):
            yield word
        elif (inside := hidden_in_option(word)) is not None:
            yield inside

"""Commands that change files and nothing else: what they read and write, where every word is known. Pure but for
patterns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from attrs import frozen

from agent_core.permissions.shell.launching import family
from agent_core.permissions.shell.parse import SimpleCommand
from agent_core.permissions.shell.words import Word

_OPTIONS: Mapping[str, str] = {
    "mkdir": r"-[pv]+|--parents|--verbose",
    "touch": r"-[acm]+|--no-create",
    "rm": r"-[rRfdvi]+|--recursive|--force|--verbose|--dir",
    "rmdir": r"-[pv]+|--parents|--verbose",
    "mv": r"-[fnvu]+|--force|--no-clobber|--verbose",
    "cp": r"-[rRapfnvu]+|--recursive|--archive|--force|--no-clobber|--verbose|--preserve",
    "sed": r"-[iEnr]+|-i\.\w+|--in-place",
}


@frozen
class Change:
    """`removes`: what stands there is gone afterwards."""

    reads: tuple[Word, ...]
    writes: tuple[Word, ...]
    removes: bool = False


def changes(command: SimpleCommand) -> Change | None:
    """None for other commands, and for options that are not known here."""
    program = command.program
    if program is None or program not in _OPTIONS or command.assignments:
        return None
    options, rest = _split(command.words[1:])
    if not rest or any(not re.fullmatch(_OPTIONS[program], word.literal or "\0") for word in options):
        return None
    if any((word.text or "*")[0] in "*?[{" and word.pattern for word in rest):
        return None  # a file may be named like an option
    match program:
        case "rm" | "rmdir":
            return Change((), tuple(rest), removes=True)
        case "mv":
            into = _into(rest)
            return Change((), (*rest, *into), removes=True) if into is not None else None
        case "cp":
            into = _into(rest)
            return Change(tuple(rest[:-1]), (*rest[-1:], *into)) if into is not None else None
        case "sed":
            return _sed(options, rest)
        case _:
            return Change((), tuple(rest))


def _into(rest: Sequence[Word]) -> tuple[Word, ...] | None:
    """The names that the sources would have if the last word is a folder. None when they cannot be known."""
    target = rest[-1].literal if len(rest) > 1 else None
    if target is None:
        return None
    found = []
    for word in rest[:-1]:
        name = (word.text or "").rstrip("/").rpartition("/")[2]
        if word.text is None or name in ("", ".", "..") or (word.pattern and name.startswith((".", "["))):
            return None
        found.append(Word(f"{target}/{name}", f"{target}/{name}", word.pattern))
    return tuple(found)


def _split(words: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    for index, word in enumerate(words):
        if word.literal == "--":
            head, tail = list(words[:index]), list(words[index + 1 :])
            options, rest = _split(head)
            return options, [*rest, *tail]
    options = [word for word in words if (word.text or "").startswith("-")]
    return options, [word for word in words if word not in options]


def _sed(options: Sequence[Word], rest: Sequence[Word]) -> Change | None:
    """`sed -i 's/a/b/g' FILES`, where the script can neither run nor write anything else."""
    in_place = any(re.match(r"-\w*i|--in-place", word.literal or "") for word in options)
    script = rest[0].literal or ""
    simple = re.fullmatch(r"s([/|#,])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1[gI\d]*", script)
    return Change((), tuple(rest[1:])) if in_place and simple and len(rest) > 1 else None


def removed(command: SimpleCommand) -> tuple[Word, ...] | None:
    """What `rm` or `rmdir` would remove, whatever its options; None for other programs."""
    program = command.program
    if program is None or family(program) not in ("rm", "rmdir", "unlink", "shred"):
        return None
    return tuple(word for word in command.words[1:] if not (word.text or "").startswith("-"))

"""Files that deny rules for reading hide, and the commands that would show them in other ways: by naming them, with a
whole folder, or by searching. Pure, apart from looking at folders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from agent_core.permissions.policy import Call, PolicyContext, decide
from agent_core.permissions.shell.files import Where, candidates, paths_of
from agent_core.permissions.shell.matching import spellings
from agent_core.permissions.shell.parse import SimpleCommand
from agent_core.permissions.shell.reading import goes_down
from agent_core.permissions.shell.words import Word
from agent_core.permissions.types import Ask, Deny, PermissionFacts, PermissionRule, ToolKind

_SHOWS = frozenset(
    {"less", "more", "sed", "awk", "gawk", "grep", "rg", "cp", "mv", "tee", "dd", "vim", "nano", "bat", "batcat", "ln"}
    | {"tar", "zip", "gzip", "base64", "base32", "xxd", "sort", "uniq", "find", "rm", "source", ".", "scp", "rsync"}
    | {"cat", "head", "tail", "cut", "install", "truncate", "split", "iconv", "openssl", "gpg", "chmod", "chown"}
    | {"pr", "shuf", "expand", "unexpand", "xz", "unxz", "xzcat", "zcat", "bzcat", "bzip2", "gunzip", "zstd", "hd"}
    | {"hexdump", "od", "strings", "nl", "tac", "rev", "fold", "fmt", "paste", "join", "comm", "cmp", "diff", "column"}
    | {"ed", "ex", "view", "vi", "emacs", "csplit", "look", "egrep", "fgrep", "git", "jq", "sh", "bash", "dash", "zsh"}
)
_PACKS = frozenset({"tar", "zip", "gzip", "7z"})
_TAKES = _PACKS | {"cp", "mv", "ln", "rsync", "scp", "install"}


def denied(command: SimpleCommand, where: Where, ctx: PolicyContext) -> Deny | Ask | None:
    """Of a command that shows or changes files without saying so, or runs one that does: a rule denies what it names,
    or all that is in it."""
    if not any(map(_hides, ctx.rules)):
        return None
    unclear: Deny | None = None
    for each, certain in spellings(command):
        found = _denied(each, where, ctx)
        if found is not None and certain:
            return found
        unclear = unclear or found
    return Ask(f"it may be {unclear.reason}") if unclear else None


def may_show(command: SimpleCommand, where: Where, ctx: PolicyContext) -> str | None:
    """Why it may come upon files that a rule hides, which it does not name."""
    rule = next(filter(_hides, ctx.rules), None)
    if rule is None:
        return None
    hidden = f"which the deny rule {rule.text} in {rule.place} may hide"
    for each, _ in spellings(command):
        if goes_down(each):
            return f"it searches files by itself, {hidden}"
        if _takes_folder(each, where):
            return f"it takes a whole folder, with files {hidden}"
        if each.program in _SHOWS - {"git"} and any(
            paths_of(word, where) is None for word in candidates(each.words[1:])
        ):
            return f"which files it reads cannot be known, {hidden}"
    return None


def _denied(command: SimpleCommand, where: Where, ctx: PolicyContext) -> Deny | None:
    if command.program not in _SHOWS | _TAKES:
        return None
    named = [path for word in _names(command.words[1:]) for path in paths_of(word, where) or ()]
    inside = [path / "*" for path in named] if command.program in _TAKES else []
    return _by_rule(named if command.program in _SHOWS else (), ctx) or _by_rule(inside, ctx)


def _names(words: Iterable[Word]) -> Iterator[Word]:
    """The words, and what may be a name in them: `if=NAME`, `-fNAME`, `@NAME`, `HEAD:NAME`."""
    for word in words:
        yield word
        text = word.literal or ""
        behind = (text.partition("=")[2], text.rpartition(":")[2], text[2:] if text[:1] == "-" else text.lstrip("@"))
        yield from (
            Word(part, part, home=part.startswith("~")) for part in dict.fromkeys(behind) if part != text and part
        )


def _by_rule(paths: Iterable[Path], ctx: PolicyContext) -> Deny | None:
    reads = tuple(paths)
    decided = decide(Call("Read", ToolKind.READ, True, PermissionFacts(reads=reads)), ctx) if reads else None
    return decided if isinstance(decided, Deny) and decided.decided_by == "rule" else None


def _hides(rule: PermissionRule) -> bool:
    return rule.behavior == "deny" and rule.tool == "Read" and rule.specifier is not None


def _takes_folder(command: SimpleCommand, where: Where) -> bool:
    """It copies, moves or packs one with all that is in it; the last word is where to."""
    if command.program not in _TAKES:
        return False
    words = [*candidates(command.words[1:])]
    for word in words if command.program in _PACKS else words[:-1]:
        paths = paths_of(word, where)
        if paths is None or any(path.is_dir() for path in paths):
            return True
    return False

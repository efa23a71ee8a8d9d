"""Files that deny rules for reading hide, and the commands that would show them in other ways: by naming them, with a
whole folder, or by searching. Pure, apart from looking at folders."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from agent_core.permissions.policy import Call, PolicyContext, decide
from agent_core.permissions.shell.files import Where, candidates, paths_of
from agent_core.permissions.shell.parse import SimpleCommand
from agent_core.permissions.shell.reading import goes_down
from agent_core.permissions.types import Deny, PermissionFacts, PermissionRule, ToolKind

_SHOWS = frozenset(
    {"less", "more", "sed", "awk", "gawk", "grep", "rg", "cp", "mv", "tee", "dd", "vim", "nano", "bat", "batcat", "ln"}
    | {"tar", "zip", "gzip", "base64", "base32", "xxd", "sort", "uniq", "find", "rm", "source", ".", "scp", "rsync"}
    | {"cat", "head", "tail", "cut", "install", "truncate", "split", "iconv", "openssl", "gpg", "chmod", "chown"}
)
_PACKS = frozenset({"tar", "zip", "gzip", "7z"})
_TAKES = _PACKS | {"cp", "mv", "ln", "rsync", "scp", "install"}


def denied(command: SimpleCommand, where: Where, ctx: PolicyContext) -> Deny | None:
    """Of a command that shows or changes files without saying so: a rule denies what it names, or all that is in it."""
    if command.program not in _SHOWS | _TAKES:
        return None
    named = [path for word in candidates(command.words[1:]) for path in paths_of(word, where) or ()]
    inside = [path / "*" for path in named] if command.program in _TAKES else []
    return _by_rule(named if command.program in _SHOWS else (), ctx) or _by_rule(inside, ctx)


def may_show(command: SimpleCommand, where: Where, ctx: PolicyContext) -> str | None:
    """Why it may come upon files that a rule hides, which it does not name."""
    rule = next(filter(_hides, ctx.rules), None)
    if rule is None:
        return None
    hidden = f"which the deny rule {rule.text} in {rule.place} may hide"
    if goes_down(command):
        return f"it searches files by itself, {hidden}"
    return f"it takes a whole folder, with files {hidden}" if _takes_folder(command, where) else None


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

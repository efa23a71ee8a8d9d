"""Parse permission rules and match them against the facts of a call. Pure, apart from resolving symlinks.

First version: a bare tool name, `Bash(exact command)`, path rules of Read and Edit in gitignore syntax, `Agent(name)`.
What is not understood never allows: such an allow rule matches nothing, such a deny or ask rule makes the call ask.
"""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path

from attrs import frozen

from agent_core.permissions.types import Behavior, PermissionFacts, PermissionRule

_RULE = re.compile(r"(?P<tool>[A-Za-z_][\w*-]*)(?:\((?P<specifier>.*)\))?", re.DOTALL)
_EDITS = frozenset({"Edit", "Write", "NotebookEdit"})
_READS = frozenset({"Read", "Grep", "Glob"})


class Match(Enum):
    NO = "no"
    YES = "yes"
    UNCLEAR = "unclear"


@frozen
class MatchContext:
    """`bases` are the folders that relative patterns are tried in, the agent's working directory first."""

    bases: tuple[Path, ...]
    home: Path


def parse_rule(text: str, behavior: Behavior, source: str, anchor: Path | None = None) -> PermissionRule | None:
    """None when `text` is no rule at all; `Task` is the old name of `Agent`."""
    found = _RULE.fullmatch(text.strip())
    if found is None:
        return None
    tool = "Agent" if found["tool"] == "Task" else found["tool"]
    specifier = found["specifier"]
    return PermissionRule(tool, None if specifier in (None, "*") else specifier, behavior, source, anchor)


def match(rule: PermissionRule, tool: str, facts: PermissionFacts, name: str, ctx: MatchContext) -> Match:
    """Does `rule` speak of this call? `name` is what an Agent call would start, else empty."""
    if "*" in rule.tool:
        return _when(rule.behavior != "allow" and re.fullmatch(rule.tool.replace("*", ".*"), tool) is not None)
    if not _covers(rule, tool):
        return Match.NO
    if rule.specifier is None:
        return _when(rule.tool == tool or rule.behavior != "allow")
    if tool == "Bash":
        return _match_command(rule, rule.specifier, facts.command or "")
    if tool == "Agent":
        return _when(rule.specifier == name)
    if rule.tool in ("Read", "Edit"):
        return _match_paths(rule, facts, ctx)
    return Match.UNCLEAR


def _covers(rule: PermissionRule, tool: str) -> bool:
    """`Edit` path rules speak for every editing tool, `Read` ones for searches; a denied read also denies edits."""
    if rule.tool == tool:
        return True
    if rule.tool == "Edit":
        return tool in _EDITS or (rule.behavior == "allow" and rule.specifier is not None and tool in _READS)
    if rule.tool == "Read":
        return tool in _READS or (rule.behavior == "deny" and rule.specifier is not None and tool in _EDITS)
    return False


def _match_command(rule: PermissionRule, specifier: str, command: str) -> Match:
    """An allow names the command exactly. A deny or an ask also when only the spaces differ, and asks when the command
    that it names is a part of a longer one."""
    if "*" in specifier:
        return Match.UNCLEAR
    if rule.behavior == "allow":
        return _when(specifier.strip() == command.strip())
    named, called = " ".join(specifier.split()), " ".join(command.split())
    if named == called:
        return Match.YES
    return Match.UNCLEAR if named in called else Match.NO


def _match_paths(rule: PermissionRule, facts: PermissionFacts, ctx: MatchContext) -> Match:
    """An allow needs all paths, by link and by target; a deny or an ask hits on any of them."""
    paths = facts.reads + facts.writes
    if not paths:
        return Match.NO
    if not _understood(rule.specifier or ""):
        return Match.UNCLEAR
    spellings = [{path, path.resolve()} for path in paths]
    if rule.behavior == "allow":
        return _when(all(all(_path_matches(rule, path, ctx) for path in pair) for pair in spellings))
    return _when(any(_path_matches(rule, path, ctx) for pair in spellings for path in pair))


def _path_matches(rule: PermissionRule, path: Path, ctx: MatchContext) -> bool:
    from pathspec import GitIgnoreSpec

    pattern = rule.specifier or ""
    for base, relative in _anchored(pattern, rule, ctx):
        try:
            inside = path.relative_to(base).as_posix()
            if GitIgnoreSpec.from_lines([relative]).match_file(inside):
                return True
        except ValueError:
            continue
    return False


def _understood(pattern: str) -> bool:
    """Comments, negations and broken patterns are valid gitignore lines that match nothing, or the opposite."""
    from pathspec import GitIgnoreSpec

    try:
        found = list(GitIgnoreSpec.from_lines([pattern.removeprefix("~").removeprefix("./")]).patterns)
    except ValueError:
        return False
    return len(found) == 1 and found[0].include is True


def _anchored(pattern: str, rule: PermissionRule, ctx: MatchContext) -> list[tuple[Path, str]]:
    if pattern.startswith("//"):
        return [(Path("/"), pattern[1:])]
    if pattern.startswith("~/"):
        return [(ctx.home, pattern[1:]), (ctx.home.resolve(), pattern[1:])]
    if pattern.startswith("/"):
        bases = (rule.anchor or ctx.bases[0], *(() if rule.behavior == "allow" else ctx.bases))
        return [(base, pattern) for base in bases]
    relative = pattern.removeprefix("./")
    folder = re.fullmatch(r"[^/]+/\*\*", relative) is not None
    if rule.behavior == "allow":
        return [(ctx.bases[0], f"/{relative}" if folder else relative)]
    return [(base, f"**/{relative}" if folder else relative) for base in ctx.bases]


def _when(condition: bool) -> Match:
    return Match.YES if condition else Match.NO

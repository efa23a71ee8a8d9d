"""Parse permission rules and match them against the facts of a call. Pure, apart from resolving symlinks.

    Tool, Tool(*)            every call       mcp__srv, mcp__srv__*     a server's tools
    Tool(param:value)        deny and ask     Agent(name), Agent(fork)  by what is started
    Read(path), Edit(path)   path_rules.py    Skill(name), Skill(name *), WebFetch(domain:host)
    Bash(command)            permissions of shell commands

What is not understood never allows: such an allow rule matches nothing, such a deny or ask rule makes the call ask.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from attrs import define, field

from agent_core.permissions.path_rules import MatchContext, Places, matches
from agent_core.permissions.shell.matching import allows, restricts
from agent_core.permissions.shell.parse import parse
from agent_core.permissions.types import Behavior, Match, PermissionFacts, PermissionRule

__all__ = ["Match", "MatchContext", "Subject", "judge", "match", "names_tool", "parse_rule", "speaks_of"]

_RULE = re.compile(r"(?P<tool>[A-Za-z_*][\w*.:-]*)(?:\((?P<specifier>.*)\))?", re.DOTALL)
_PARAMETER = re.compile(r"(?P<name>[A-Za-z_]\w*):(?P<value>.*)", re.DOTALL)
EDITS = frozenset({"Edit", "Write", "NotebookEdit", "MultiEdit"})
READS = frozenset({"Read", "Grep", "Glob", "LSP"})
PATHLESS = frozenset({"Write", "NotebookEdit", "MultiEdit", "Glob"})
"""Their path rules belong to Edit and Read."""

NO_PARAMETERS = frozenset({"command", "file_path", "path", "notebook_path", "url"})
"""What other kinds of rules speak of: their literal text could be spelled in many ways."""

_OWN_SYNTAX: Mapping[str, frozenset[str]] = {
    "Bash": frozenset({"run_in_background", "description"}),
    "Agent": frozenset(
        {"description", "prompt", "subagent_type", "model", "isolation", "run_in_background", "name", "mode"}
        | {"team_name", "fork", "cwd"}
    ),
    "Skill": frozenset({"args"}),
}
"""Where text with a colon may be something else, the parameters that a rule can name."""


@define(eq=False)
class Subject:
    """One call that rules are matched against. `name` is what an Agent call would start, else empty."""

    tool: str
    facts: PermissionFacts
    name: str
    ctx: MatchContext
    places: Places = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.places = Places(self.facts.reads + self.facts.writes)


_BY_PATH = frozenset({"Read", "Edit"})
_FOUND = {True: Match.YES, False: Match.NO, None: Match.UNCLEAR}


def parse_rule(
    text: str, behavior: Behavior, source: str, anchor: Path | None = None, line: int | None = None
) -> PermissionRule | None:
    """None when `text` is no rule at all; `Task` is the old name of `Agent`."""
    found = _RULE.fullmatch(text.strip())
    if found is None:
        return None
    tool = "Agent" if found["tool"] == "Task" else found["tool"]
    specifier = found["specifier"]
    return PermissionRule(tool, None if specifier in (None, "*") else specifier, behavior, source, anchor, line)


def match(rule: PermissionRule, tool: str, facts: PermissionFacts, name: str, ctx: MatchContext) -> Match:
    """Does `rule` speak of this call? For many rules and one call make the Subject once."""
    return judge(rule, Subject(tool, facts, name, ctx))


def judge(rule: PermissionRule, call: Subject) -> Match:
    return _judged(rule, call) if speaks_of(rule, call.tool) else Match.NO


def judge_all(rules: tuple[PermissionRule, ...], call: Subject) -> list[tuple[PermissionRule, Match]]:
    """What each rule for the tool says of the call, in their order."""
    return [(rule, judged(rule, call)) for rule, judged in _speaking(rules, call.tool)]


_Speaking = tuple[tuple[PermissionRule, Callable[[PermissionRule, Subject], Match]], ...]
_spoken: OrderedDict[tuple[str, tuple[int, ...]], tuple[tuple[PermissionRule, ...], _Speaking]] = OrderedDict()
"""By the identity of the rules, the same objects from call to call; they are kept, so that no other takes their ids."""
_MOST_SPOKEN = 64


def _speaking(rules: tuple[PermissionRule, ...], tool: str) -> _Speaking:
    """The rules for the tool, each with how it is judged."""
    key = (tool, tuple(map(id, rules)))
    if (kept := _spoken.get(key)) is None:
        by_path = [rule.tool in _BY_PATH and rule.specifier is not None for rule in rules]
        found = [(rule, _match_paths if path else _judged) for rule, path in zip(rules, by_path, strict=True)]
        kept = _spoken[key] = (rules, tuple(each for each in found if speaks_of(each[0], tool)))
        if len(_spoken) > _MOST_SPOKEN:
            _spoken.popitem(last=False)
    return kept[1]


def _judged(rule: PermissionRule, call: Subject) -> Match:
    """Of a rule for the tool."""
    if rule.specifier is None:
        return Match.YES
    if rule.tool in _BY_PATH:
        return _match_paths(rule, call)
    if (found := _match_parameter(rule, call)) is not None:
        return found
    if call.tool == "Bash":
        return _match_command(rule, rule.specifier, call.facts.command or "")
    if call.tool == "Agent":
        return _when(rule.specifier == call.name)
    if call.tool == "Skill":
        return _match_skill(rule, rule.specifier, call.facts.skill)
    if call.tool == "WebFetch":
        return _match_domain(rule, rule.specifier, call.facts.url)
    if rule.tool in PATHLESS:
        return _match_pathless(rule, call)
    return Match.UNCLEAR


def speaks_of(rule: PermissionRule, tool: str) -> bool:
    return _speaks(rule.tool, rule.behavior, rule.specifier is not None, tool)


@lru_cache(maxsize=65_536)
def _speaks(named: str, behavior: Behavior, narrow: bool, tool: str) -> bool:
    """`Edit` rules speak for every editing tool, `Read` ones for searches; an allowed edit allows reading there, a
    denied read denies editing there. A bare allow is for the tool that it names."""
    allows = behavior == "allow"
    if named == tool:
        return True
    if named == "Edit":
        return (tool in EDITS and (narrow or not allows)) or (allows and narrow and tool in READS)
    if named == "Read":
        return (tool in READS and (narrow or not allows)) or (behavior == "deny" and narrow and tool in EDITS)
    return _names(named, allows, tool)


def names_tool(rule: PermissionRule, tool: str) -> bool:
    """By its name alone: the same, a server's, or a pattern. What is allowed must name its server."""
    return _names(rule.tool, rule.behavior == "allow", tool)


def _names(named: str, allows: bool, tool: str) -> bool:
    if named == tool:
        return True
    if "*" in named:
        return (not allows or names_server(named)) and _glob(named).fullmatch(tool) is not None
    if not named.startswith("mcp__") or not tool.startswith(f"{named}__"):
        return False
    return not allows or "__" not in named.removeprefix("mcp__")


def names_server(tool: str) -> bool:
    """`mcp__server__` before the first `*`."""
    return re.match(r"mcp__[^*]+?__", tool.partition("*")[0]) is not None


@lru_cache(maxsize=4096)
def _glob(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in text.split("*")), re.DOTALL)


def parameter(rule: PermissionRule, tool: str) -> tuple[str, str] | None:
    """(name, value) when the rule's specifier names a parameter of a call of `tool`."""
    found = _PARAMETER.fullmatch(rule.specifier or "")
    if found is None or (tool == "WebFetch" and found["name"] == "domain"):
        return None
    known = _OWN_SYNTAX.get(tool)
    return (found["name"], found["value"]) if known is None or found["name"] in known else None


def _match_parameter(rule: PermissionRule, call: Subject) -> Match | None:
    """By the literal input. Only restrictions can name a parameter: an allow for one would leave the others open."""
    if rule.behavior == "allow" or (named := parameter(rule, call.tool)) is None:
        return None
    name, value = named
    if name in NO_PARAMETERS or call.facts.input is None:
        return Match.UNCLEAR
    if name not in call.facts.input:
        return Match.NO
    given = _scalar(call.facts.input[name])
    if given is None:
        return Match.YES if value == "*" else Match.UNCLEAR
    return _when(_glob(value).fullmatch(given) is not None)


def _scalar(value: Any) -> str | None:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value) if isinstance(value, str | int | float) else None


def _match_command(rule: PermissionRule, specifier: str, command: str) -> Match:
    """Of a command with several parts: an allow must name all of them, a restriction one."""
    script = parse(command)
    unclear = script.problem is not None or script.hidden is not None
    if rule.behavior == "allow":
        named = script.commands and not unclear and all(allows(specifier, each) for each in script.commands)
        return _when(bool(named) or specifier.strip() == command.strip())
    if unclear:
        return Match.UNCLEAR
    found = {restricts(specifier, each) for each in script.commands}
    return next((each for each in (Match.YES, Match.UNCLEAR) if each in found), Match.NO)


def _match_skill(rule: PermissionRule, specifier: str, skill: str | None) -> Match:
    """`name` allows the skill as it is, `name *` with anything behind; a restriction holds for both."""
    if skill is None:
        return Match.UNCLEAR
    called = skill.strip().removeprefix("/")
    first = called.split(maxsplit=1)[0] if called else ""
    name = specifier.removeprefix("/")
    if name.endswith(" *"):
        return _when(first == name[:-2])
    return _when(name == called or (rule.behavior != "allow" and name == first))


def _match_domain(rule: PermissionRule, specifier: str, url: str | None) -> Match:
    """`*.x` is any depth below x, other `*` stay inside one label, `*` alone is every host."""
    if not specifier.startswith("domain:") or (host := _host(url or "")) is None:
        return Match.UNCLEAR
    wanted = specifier.removeprefix("domain:").strip().casefold().removesuffix(".")
    if not wanted:
        return Match.UNCLEAR
    return _when(wanted == "*" or _domain(wanted).fullmatch(host) is not None)


@lru_cache(maxsize=4096)
def _domain(text: str) -> re.Pattern[str]:
    deep = r"(?:[^.]+\.)+" if text.startswith("*.") else ""
    labels = text.removeprefix("*.") if deep else text
    return re.compile(deep + r"[^.]*".join(re.escape(part) for part in labels.split("*")))


def _host(url: str) -> str | None:
    """None where programs could disagree on what the host is."""
    if re.search(r"[\\\s\x00-\x20\x7f]", url):
        return None
    try:
        host = urlsplit(url if "://" in url else f"https://{url}").hostname
    except ValueError:
        return None
    return host.casefold().removesuffix(".") if host else None


def _match_pathless(rule: PermissionRule, call: Subject) -> Match:
    """Such rules are for Edit or Read to say; where they would restrict this path a person is asked."""
    if rule.behavior == "allow" or not call.places.paths:
        return Match.UNCLEAR
    return Match.NO if matches(rule, call.places, call.ctx) is False else Match.UNCLEAR


def _match_paths(rule: PermissionRule, call: Subject) -> Match:
    if not call.places.paths:
        return Match.NO
    return _FOUND[matches(rule, call.places, call.ctx)]


def _when(condition: bool) -> Match:
    return Match.YES if condition else Match.NO

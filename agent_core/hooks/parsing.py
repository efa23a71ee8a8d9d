"""The `hooks` of settings and of agent files to `Hook`s. A bad entry is reported and left out; the others count."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import frozen

from agent_core.hooks.matching import broken_pattern
from agent_core.hooks.values import EVENTS, Command, Handler, Hook, Http, McpTool, Question
from agent_core.permissions.rules import parse_rule

Report = Callable[[str], None]

OF_AGENTS = frozenset({"PreToolUse", "PostToolUse", "Stop", "SubagentStop"})
"""HK-2: the events that an agent's front matter may name."""
_LATER = frozenset(
    {"UserPromptExpansion", "PermissionDenied", "PostToolBatch"}
    | {"TeammateIdle", "ConfigChange", "CwdChanged", "FileChanged", "DirectoryAdded", "InstructionsLoaded"}
    | {"Elicitation", "ElicitationResult", "MessageDisplay"}
)
"""Events of the format that are never raised here."""
_IGNORED = {"asyncRewake": "a hook never wakes an agent"}


class _Bad(ValueError):
    """Says what is wrong with an entry."""


def parse_hooks(value: Any, source: str, from_project: bool, report: Report) -> tuple[Hook, ...]:
    """`{event: [{matcher?, hooks: [handler, ...]}, ...]}`, in the order written."""
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        report(f"hooks must be an object of events, not {value!r}; none of them runs")
        return ()
    return tuple(
        hook for event, groups in value.items() for hook in _of_event(str(event), groups, source, from_project, report)
    )


def of_agent(hooks: tuple[Hook, ...], report: Report) -> tuple[Hook, ...]:
    """HK-2: those that an agent may bring along."""
    kept = [hook for hook in hooks if hook.event in OF_AGENTS]
    for event in sorted({hook.event for hook in hooks} - OF_AGENTS):
        report(f"hooks.{event} is no event of an agent file; there are {', '.join(sorted(OF_AGENTS))}")
    return tuple(kept)


def _of_event(event: str, groups: Any, source: str, from_project: bool, report: Report) -> Iterator[Hook]:
    if event not in EVENTS:
        known = f"there are {', '.join(EVENTS)}"
        report(f"hooks.{event} " + ("is never raised here" if event in _LATER else f"is no event; {known}"))
        return
    if not isinstance(groups, list):
        report(f"hooks.{event} must be a list of {{matcher, hooks}}, not {groups!r}; it is skipped")
        return
    for number, group in enumerate(groups):
        where = f"hooks.{event}[{number}]"
        entries = group.get("hooks") if isinstance(group, Mapping) else None
        matcher = group.get("matcher") or "" if isinstance(group, Mapping) else ""
        if not isinstance(entries, list) or not isinstance(matcher, str):
            report(f"{where} must be an object with a list hooks and a text matcher; it is skipped")
        elif problem := broken_pattern(matcher):
            report(f"{where}.matcher {matcher!r} {problem}; it is skipped")
        else:
            base = _Base(event, matcher, source, from_project, report)
            yield from (hook for entry in entries if (hook := base.hook(entry, where)) is not None)


@frozen
class _Base:
    event: str
    matcher: str
    source: str
    from_project: bool
    report: Report

    def hook(self, entry: Any, where: str) -> Hook | None:
        try:
            if not isinstance(entry, Mapping):
                raise _Bad(f"must be an object with type, not {entry!r}")
            return Hook(
                self.event,
                self.matcher,
                _handler(entry),
                self.source,
                condition=self._condition(entry),
                timeout=_timeout(entry),
                once=_flag(entry, "once"),
                detached=_flag(entry, "async"),
                from_project=self.from_project,
            )
        except _Bad as error:
            self.report(f"{where}: a hook {error}; it is skipped")
            return None
        finally:
            for name in sorted(_IGNORED.keys() & set(entry if isinstance(entry, Mapping) else ())):
                if entry[name] not in (False, None):
                    self.report(f"{where}: {name} is ignored: {_IGNORED[name]}")

    def _condition(self, entry: Mapping[str, Any]) -> Any:
        text = entry.get("if")
        if text is None:
            return None
        if EVENTS[self.event] != "tool":
            raise _Bad(f"has an if, which only events of tools know, not {self.event}")
        rule = parse_rule(text, "ask", self.source) if isinstance(text, str) else None
        if rule is None:
            raise _Bad(f"has an if that is no rule, {text!r}; write Tool or Tool(specifier)")
        return rule


def _handler(entry: Mapping[str, Any]) -> Handler:
    match entry.get("type"):
        case "command":
            args = entry.get("args")
            if args is not None and not (isinstance(args, list) and all(isinstance(arg, str) for arg in args)):
                raise _Bad("has args that are no list of texts")
            if entry.get("shell") not in (None, "bash"):
                raise _Bad(f"wants the shell {entry['shell']!r}; there is only bash")
            return Command(_text(entry, "command"), tuple(args) if args is not None else None)
        case "http":
            url = _text(entry, "url")
            if not re.match(r"https?://[^/\s]", url):
                raise _Bad("has a url that does not begin with http:// or https://")
            return Http(url, _texts(entry, "headers"), tuple(_names(entry, "allowedEnvVars")))
        case "mcp_tool":
            given = entry.get("input") or {}
            if not isinstance(given, Mapping):
                raise _Bad("has an input that is no object")
            return McpTool(_text(entry, "server"), _text(entry, "tool"), given)
        case "prompt" | "agent" as kind:
            model = _text(entry, "model") if entry.get("model") else None
            return Question(_text(entry, "prompt"), model, kind == "agent")
        case kind:
            raise _Bad(f"has the type {kind!r}; there are command, http, mcp_tool, prompt, agent")


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise _Bad(f"needs a text {name}, not {value!r}")
    return value


def _texts(entry: Mapping[str, Any], name: str) -> dict[str, str]:
    value = entry.get(name) or {}
    if not isinstance(value, Mapping) or not all(isinstance(part, str) for pair in value.items() for part in pair):
        raise _Bad(f"has {name} that are no object of texts")
    return dict(value)


def _names(entry: Mapping[str, Any], name: str) -> list[str]:
    value = entry.get(name) or []
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        raise _Bad(f"has {name} that is no list of texts")
    return value


def _timeout(entry: Mapping[str, Any]) -> float | None:
    value = entry.get("timeout")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 86_400:
        raise _Bad(f"has a timeout that is no number of seconds above 0, {value!r}")
    return float(value)


def _flag(entry: Mapping[str, Any], name: str) -> bool:
    value = entry.get(name, False)
    if not isinstance(value, bool):
        raise _Bad(f"has {name} {value!r}; it must be true or false")
    return value

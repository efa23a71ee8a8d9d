"""Which hooks a moment concerns, and how their answers become one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from attrs import frozen

from agent_core.hooks.values import EVENTS, Answer, Grant, Hook

MAX_SUBJECT = 128
"""Characters of a name that a pattern is tried on; what tools and agents are called is shorter."""
MAX_REPEATS = 3
"""Of `*`, `+` and `{n,}` in a pattern. More of them, or one of a group that has a choice or a repetition inside, could
keep the whole process busy: nothing can interrupt a search."""
_NAMES = re.compile(r"[A-Za-z0-9_\- ,|]*")
_TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\{\d*,?\d*\}|.", re.DOTALL)

Decision = Literal["deny", "ask", "allow"]


@frozen
class Verdict:
    """The answers of all hooks of a moment. `decision` and `blocked` hold the strictest, with the reasons given.

    `input` and `output` are the last ones in the order of the configuration.
    """

    decision: Decision | None = None
    reason: str = ""
    input: Mapping[str, Any] | None = None
    output: str | None = None
    context: tuple[str, ...] = ()
    blocked: str | None = None
    stop: str | None = None
    interrupt: bool = False
    failures: tuple[str, ...] = ()
    grants: tuple[Grant, ...] = ()
    path: str | None = None


NOTHING = Verdict()


def select(hooks: Iterable[Hook], event: str, subject: str) -> tuple[Hook, ...]:
    """In order, each handler once, however many files name it."""
    found: list[Hook] = []
    for hook in hooks:
        if hook.event == event and (EVENTS[event] == "none" or matches(hook.matcher, subject)):
            twin = any((other.handler, other.condition) == (hook.handler, hook.condition) for other in found)
            if not twin:
                found.append(hook)
    return tuple(found)


def matches(matcher: str, subject: str) -> bool:
    """Empty and `*` are everything; names stand between `|` or `,`; anything else is a pattern, found anywhere."""
    if matcher.strip() in ("", "*"):
        return True
    if _NAMES.fullmatch(matcher):
        return subject in (name.strip() for name in re.split(r"[|,]", matcher))
    return re.search(_python(matcher), subject[:MAX_SUBJECT]) is not None


def broken_pattern(matcher: str) -> str | None:
    """What is wrong with it, None when nothing is."""
    if matcher.strip() in ("", "*") or _NAMES.fullmatch(matcher):
        return None
    if _endless(matcher):
        return f"could take for ever: at most {MAX_REPEATS} repetitions, and none of a group with | * + or {{}} inside"
    try:
        re.compile(_python(matcher))
    except (re.error, OverflowError, RecursionError) as error:
        return f"is no pattern that can be used: {error}"
    return None


def _endless(pattern: str) -> bool:
    tokens = [token[0] for token in _TOKEN.finditer(pattern)]
    repeats = [index for index, token in enumerate(tokens) if token in "*+" or re.fullmatch(r"\{.*\}", token)]
    open_groups: list[int] = []
    for index, token in enumerate(tokens):
        if token == "(":
            open_groups.append(index)
        elif token == ")" and open_groups:
            inside = range(open_groups.pop(), index)
            if index + 1 in repeats and any(each in repeats or tokens[each] == "|" for each in inside):
                return True
    return len(repeats) > MAX_REPEATS


def _python(pattern: str) -> str:
    r"""A JavaScript pattern: named groups, and `$`, which there means the very end, are spelled otherwise here."""
    pattern = re.sub(r"\(\?<(?=[A-Za-z_$])", "(?P<", pattern)
    return re.sub(r"(\\.|\[(?:\\.|[^\]\\])*\])|\$", lambda found: found[1] or r"\Z", pattern)


def merge(answers: Iterable[Answer]) -> Verdict:
    """deny beats ask beats allow; `answers` in the order of the configuration, which is also that of the texts."""
    every = tuple(answers)
    decision: Decision | None = next((rank for rank in _RANKS if any(each.outcome == rank for each in every)), None)
    blocks = [each.reason or "no reason was given" for each in every if each.outcome == "block"]
    stops = [each.reason or "a hook has ended the run" for each in every if each.stop]
    return Verdict(
        decision=decision,
        reason="; ".join(dict.fromkeys(each.reason for each in every if each.outcome == decision and each.reason)),
        input=_last(each.input for each in every),
        output=_last(each.output for each in every),
        context=tuple(each.context for each in every if each.context),
        blocked="\n".join(dict.fromkeys(blocks)) if blocks else None,
        stop=stops[0] if stops else None,
        interrupt=any(each.interrupt for each in every if each.outcome == "deny"),
        failures=tuple(each.message or each.outcome for each in every if each.outcome in ("error", "timeout")),
        path=_last(each.path for each in every),
        grants=tuple(grant for each in every if decision == "allow" for grant in each.grants),
    )


_RANKS: tuple[Decision, ...] = ("deny", "ask", "allow")


def _last(values: Iterable[Any]) -> Any:
    given = [value for value in values if value is not None]
    return given[-1] if given else None

"""Mode, rules and facts to Allow, Deny or Ask. Pure; the order is deny, ask, mode, allow, ask (features of PM-1, PM-2),
but what a mode denies is denied before anybody is asked.

Every Bash command asks unless a rule names it exactly: taking commands apart comes with the shell parser.
"""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from agent_core.permissions.guarded import guarded
from agent_core.permissions.rules import Match, MatchContext, Subject, judge_all
from agent_core.permissions.types import (
    Allow,
    Ask,
    Behavior,
    Deny,
    PermissionDecision,
    PermissionFacts,
    PermissionMode,
    PermissionRule,
    ToolKind,
)


@frozen
class PolicyContext:
    """`working_dirs` are real paths inside which the mode may free a call, `readable_dirs` more where it frees reading;
    `worktree` the agent's own, if any."""

    mode: PermissionMode
    rules: tuple[PermissionRule, ...]
    working_dirs: tuple[Path, ...]
    worktree: Path | None
    matching: MatchContext
    readable_dirs: tuple[Path, ...] = ()


Hits = list[tuple[PermissionRule, Match]]


@frozen
class Call:
    """`agent_name` is the type that an Agent call would start, else empty."""

    tool: str
    kind: ToolKind
    read_only: bool
    facts: PermissionFacts
    agent_name: str = ""


def decide(call: Call, ctx: PolicyContext) -> PermissionDecision:
    every = hits_of(call, ctx)
    hits = [hit for hit in every if hit[1] is not Match.NO]
    if rule := _first(hits, "deny", Match.YES):
        return Deny("rule", f"denied by the rule {rule.text} in {rule.place}")
    if isinstance(decided := _by_mode(call, ctx), Deny):
        return decided  # what the mode forbids nobody is asked for
    if rule := _first(hits, "ask", Match.YES) or _first(hits, "ask", Match.UNCLEAR):
        return _ask(ctx, f"the rule {rule.text} in {rule.place} asks")
    if rule := _first(hits, "deny", Match.UNCLEAR):
        return _ask(ctx, f"the deny rule {rule.text} in {rule.place} may speak of this")
    if decided is not None:
        return decided
    if rule := _first(hits, "allow", Match.YES):
        if not _guarded(call.facts):
            return Allow("rule", f"allowed by the rule {rule.text} in {rule.place}")
        return _ask(ctx, _guarded_reason(call.facts), f"{rule.text} in {rule.place} covers it, but frees no such path")
    return _ask(ctx, _reason(call, ctx), _nearest(call, every))


def hits_of(call: Call, ctx: PolicyContext) -> Hits:
    """What each rule for the tool says of the call, in their order; the paths of the call are worked out once."""
    subject = Subject(call.tool, call.facts, call.agent_name, ctx.matching)
    return judge_all(ctx.rules, subject)


def _by_mode(call: Call, ctx: PolicyContext) -> PermissionDecision | None:
    mode, facts = ctx.mode, call.facts
    if facts.agent is not None:
        return Allow("mode", "launching an agent needs no permission; what it does is judged by itself")
    if mode is PermissionMode.BYPASS:
        return Allow("mode", "the mode bypassPermissions allows everything that no rule denies")
    if call.read_only and all(_inside(path, ctx.working_dirs + ctx.readable_dirs) for path in facts.reads):
        return Allow("mode", "reading inside the working directory needs no permission")
    if mode is PermissionMode.PLAN and call.kind in (ToolKind.EDIT, ToolKind.DELETE, ToolKind.MOVE):
        return Deny("mode", "the mode plan allows no edits; describe the change instead")
    if call.kind is not ToolKind.EDIT or _guarded(facts) or not facts.writes:
        return None
    if mode is PermissionMode.ACCEPT_EDITS and all(_inside(path, ctx.working_dirs) for path in facts.writes):
        return Allow("mode", "the mode acceptEdits allows edits inside the working directory")
    own = (ctx.worktree,) if ctx.worktree else ()
    if mode is PermissionMode.BUBBLE and own and all(_inside(path, own) for path in facts.writes):
        return Allow("mode", "edits inside the agent's own worktree reach the user's files only through review")
    return None


def _ask(ctx: PolicyContext, reason: str, nearest: str = "") -> PermissionDecision:
    if ctx.mode is PermissionMode.DONT_ASK:
        return Deny("mode", f"the mode dontAsk never asks, and {reason}", nearest)
    return Ask(reason, nearest)


def _nearest(call: Call, hits: Hits) -> str:
    """Of the allow rules for this tool the first, highest in the order of the files."""
    rule = next((rule for rule, _ in hits if rule.behavior == "allow"), None)
    return f"{rule.text} in {rule.place} does not cover it: {why_not(rule, call)}" if rule else ""


def why_not(rule: PermissionRule, call: Call) -> str:
    """Why a rule for the tool of `call` does not speak of it, in words for the one who wrote it."""
    facts = call.facts
    if facts.command is not None:
        return "the command, or a part of it, is another one"
    if facts.agent is not None or facts.skill is not None:
        return f"it names something else than {facts.agent or facts.skill}"
    if facts.url is not None:
        return f"it is for another host than that of {facts.url}"
    paths = ", ".join(str(path) for path in facts.writes + facts.reads)
    if not paths:
        return "it is not understood"
    much = "not all of it lies" if rule.behavior == "allow" else "nothing of it lies"
    return f"{much} there, by its path and by what a link leads to: {paths}"


def _reason(call: Call, ctx: PolicyContext) -> str:
    if _guarded(call.facts):
        return _guarded_reason(call.facts)
    if call.facts.command is not None:
        return "no rule allows this command"
    known = ctx.working_dirs if call.facts.writes else ctx.working_dirs + ctx.readable_dirs
    outside = [path for path in call.facts.writes + call.facts.reads if not _inside(path, known)]
    if outside:
        return f"{outside[0]} is outside the working directory"
    return f"no rule allows {call.tool} here"


def _guarded_reason(facts: PermissionFacts) -> str:
    path = next(path for path in facts.writes if guarded(path))
    return f"{path} can change what later commands do, so a person decides"


def _guarded(facts: PermissionFacts) -> bool:
    return any(guarded(path) for path in facts.writes)


def _inside(path: Path, folders: tuple[Path, ...]) -> bool:
    """By its target: a link inside that leads outside is outside."""
    target = path.resolve()
    return any(target.is_relative_to(folder) for folder in folders)


def _first(hits: Hits, behavior: Behavior, how: Match) -> PermissionRule | None:
    return next((rule for rule, result in hits if rule.behavior == behavior and result is how), None)

"""Mode, rules and facts to Allow, Deny or Ask. Pure; the order is deny, ask, mode, allow, ask (features of PM-1, PM-2).

Every Bash command asks unless a rule names it exactly: taking commands apart comes with the shell parser.
"""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from agent_core.permissions.rules import Match, MatchContext, match
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

GUARDED_FOLDERS = frozenset(
    {".git", ".vscode", ".idea", ".husky", ".cargo", ".devcontainer", ".yarn", ".mvn", ".claude", ".ssh"}
)
GUARDED_FILES = frozenset(
    {".gitconfig", ".gitmodules", ".bashrc", ".bash_profile", ".profile", ".zshrc", ".zprofile", ".envrc", ".npmrc"}
    | {".yarnrc", ".yarnrc.yml", ".mcp.json", ".claude.json", ".ripgreprc", ".pre-commit-config.yaml", "lefthook.yml"}
)
"""Writes there can make later commands run something else, so that no mode but bypass frees them (features 13)."""


@frozen
class PolicyContext:
    """`working_dirs` are real paths inside which the mode may free a call; `worktree` the agent's own, if any."""

    mode: PermissionMode
    rules: tuple[PermissionRule, ...]
    working_dirs: tuple[Path, ...]
    worktree: Path | None
    matching: MatchContext


@frozen
class Call:
    """`agent_name` is the type that an Agent call would start, else empty."""

    tool: str
    kind: ToolKind
    read_only: bool
    facts: PermissionFacts
    agent_name: str = ""


def decide(call: Call, ctx: PolicyContext) -> PermissionDecision:
    hits = [(rule, match(rule, call.tool, call.facts, call.agent_name, ctx.matching)) for rule in ctx.rules]
    if rule := _first(hits, "deny", Match.YES):
        return Deny("rule", f"denied by the rule {rule.text} in {rule.source}")
    if rule := _first(hits, "ask", Match.YES) or _first(hits, "ask", Match.UNCLEAR):
        return _ask(ctx, f"the rule {rule.text} in {rule.source} asks")
    if rule := _first(hits, "deny", Match.UNCLEAR):
        return _ask(ctx, f"the deny rule {rule.text} in {rule.source} may speak of this")
    if (decided := _by_mode(call, ctx)) is not None:
        return decided
    if rule := _first(hits, "allow", Match.YES):
        if not _guarded(call.facts):
            return Allow("rule", f"allowed by the rule {rule.text} in {rule.source}")
        return _ask(ctx, _guarded_reason(call.facts))
    return _ask(ctx, _reason(call, ctx))


def _by_mode(call: Call, ctx: PolicyContext) -> PermissionDecision | None:
    mode, facts = ctx.mode, call.facts
    if facts.agent is not None:
        return Allow("mode", "launching an agent needs no permission; what it does is judged by itself")
    if mode is PermissionMode.BYPASS:
        return Allow("mode", "the mode bypassPermissions allows everything that no rule denies")
    if call.read_only and all(_inside(path, ctx.working_dirs) for path in facts.reads):
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


def _ask(ctx: PolicyContext, reason: str) -> PermissionDecision:
    if ctx.mode is PermissionMode.DONT_ASK:
        return Deny("mode", f"the mode dontAsk never asks, and {reason}")
    return Ask(reason)


def _reason(call: Call, ctx: PolicyContext) -> str:
    if _guarded(call.facts):
        return _guarded_reason(call.facts)
    if call.facts.command is not None:
        return "no rule allows this command"
    outside = [path for path in call.facts.writes + call.facts.reads if not _inside(path, ctx.working_dirs)]
    if outside:
        return f"{outside[0]} is outside the working directory"
    return f"no rule allows {call.tool} here"


def _guarded_reason(facts: PermissionFacts) -> str:
    path = next(path for path in facts.writes if _guarded_path(path))
    return f"{path} can change what later commands do, so a person decides"


def _guarded(facts: PermissionFacts) -> bool:
    return any(_guarded_path(path) for path in facts.writes)


def _guarded_path(path: Path) -> bool:
    """In any case: on some disks `.GIT` is `.git`."""
    return any(
        spelling.name.casefold() in GUARDED_FILES or GUARDED_FOLDERS & {part.casefold() for part in spelling.parts}
        for spelling in (path, path.resolve())
    )


def _inside(path: Path, folders: tuple[Path, ...]) -> bool:
    """By its target: a link inside that leads outside is outside."""
    target = path.resolve()
    return any(target.is_relative_to(folder) for folder in folders)


def _first(hits: list[tuple[PermissionRule, Match]], behavior: Behavior, how: Match) -> PermissionRule | None:
    return next((rule for rule, result in hits if rule.behavior == behavior and result is how), None)

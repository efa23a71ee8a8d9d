"""Why a call would be allowed, denied or asked for, rule by rule, and part by part where it is a shell command. Pure
apart from resolving symlinks."""

from __future__ import annotations

import re
from pathlib import Path

from attrs import frozen

from agent_core.permissions.decision import decide
from agent_core.permissions.policy import Call, PolicyContext, hits_of, why_not
from agent_core.permissions.rules import EDITS, READS
from agent_core.permissions.shell.deciding import explain_command
from agent_core.permissions.types import (
    Allow,
    Deny,
    Match,
    PermissionDecision,
    PermissionFacts,
    PermissionRule,
    ToolKind,
)

Parts = tuple[tuple[str, PermissionDecision], ...]


@frozen
class Finding:
    """One rule for the tool of the call. `says` is `matches`, `may match` or `does not match`, `why` of the last."""

    rule: PermissionRule
    says: str
    why: str = ""


@frozen
class Explanation:
    """`parts` are (text, decision) of the commands that a Bash command is made of."""

    call: Call
    decision: PermissionDecision
    findings: tuple[Finding, ...]
    parts: Parts = ()

    @property
    def outcome(self) -> str:
        return "allow" if isinstance(self.decision, Allow) else "deny" if isinstance(self.decision, Deny) else "ask"


_SAYS = {Match.YES: "matches", Match.UNCLEAR: "may match, so that it only restricts", Match.NO: "does not match"}


def explain(call: Call, ctx: PolicyContext) -> Explanation:
    findings = tuple(
        Finding(rule, _SAYS[found], why_not(rule, call) if found is Match.NO else "")
        for rule, found in hits_of(call, ctx)
    )
    parts = explain_command(call, ctx) if call.facts.command is not None else ()
    return Explanation(call, decide(call, ctx), findings, tuple((part.text, part.decision) for part in parts))


def call_of(text: str, cwd: Path, home: Path) -> Call | None:
    """The call that a text such as `Bash(git status)`, `Edit(src/a.py)` or `mcp__git__log` describes, None when it
    describes none. Paths start in `cwd`."""
    found = re.fullmatch(r"([A-Za-z_][\w.-]*)(?:\((.*)\))?", text.strip(), re.DOTALL)
    if found is None:
        return None
    tool, given = found[1], found[2] or ""
    if tool == "Bash":
        return Call(tool, ToolKind.EXECUTE, False, PermissionFacts(command=given, cwd=cwd, input={"command": given}))
    if tool in ("Agent", "Task"):
        name = given or "general-purpose"
        return Call("Agent", ToolKind.OTHER, False, PermissionFacts(agent=name, input={"subagent_type": name}), name)
    if tool in EDITS:
        path = _path(given, cwd, home)
        return Call(tool, ToolKind.EDIT, False, PermissionFacts(writes=(path,), input={"file_path": given}))
    if tool in READS:
        path = _path(given, cwd, home)
        kind = ToolKind.READ if tool == "Read" else ToolKind.SEARCH
        return Call(tool, kind, True, PermissionFacts(reads=(path,), input={"file_path": given}))
    if tool == "WebFetch":
        url = given.removeprefix("domain:")
        return Call(tool, ToolKind.FETCH, False, PermissionFacts(url=url, input={"url": url}))
    if tool == "Skill":
        return Call(tool, ToolKind.OTHER, False, PermissionFacts(skill=given, input={"skill": given}))
    return Call(tool, ToolKind.OTHER, False, PermissionFacts(input={}))


def _path(text: str, cwd: Path, home: Path) -> Path:
    """As in a rule `//p` is absolute; a single slash is too, since nobody types a path for the settings' folder."""
    if text.startswith("~/"):
        return home / text[2:]
    return cwd / (text[1:] if text.startswith("//") else text)

"""What is wrong with a rule that can be parsed: it is told, it hides no other rule, and it never allows. Pure."""

from __future__ import annotations

import difflib

from agent_core.permissions.path_rules import understood
from agent_core.permissions.rules import NO_PARAMETERS, PATHLESS, names_server, parameter
from agent_core.permissions.types import PermissionRule
from agent_core.tool_pool import IN_BACKGROUND, NOT_FOR_CHILDREN

KNOWN_TOOLS = (
    IN_BACKGROUND
    | NOT_FOR_CHILDREN
    | {"BashOutput", "Cd", "KillShell", "ListMcpResourcesTool", "LS", "LSP", "MultiEdit", "NotebookRead"}
    | {"ReadMcpResourceTool", "TodoRead", "WriteMcpResourceTool"}
)
_TAKES = {"Agent", "Bash", "Cd", "Edit", "PowerShell", "Read", "Skill", "WebFetch"}
"""Tools with specifiers of their own; other specifiers name a parameter."""


def fault(rule: PermissionRule) -> str | None:
    """For the one who wrote it, with what to write instead; None when nothing is wrong."""
    tool = rule.tool
    if "*" in tool and rule.behavior == "allow" and not names_server(tool):
        return f"{rule.text}: an allow rule may have * in a tool's name only behind mcp__<server>__; it allows nothing"
    if "*" not in tool and not tool.startswith("mcp__") and tool not in KNOWN_TOOLS:
        near = difflib.get_close_matches(tool, sorted(KNOWN_TOOLS), 1)
        return f"{rule.text}: there is no tool {tool!r}" + (f"; did you mean {near[0]}?" if near else "")
    return _specifier_fault(rule) if rule.specifier is not None else None


def _specifier_fault(rule: PermissionRule) -> str | None:
    tool, specifier, named = rule.tool, rule.specifier or "", parameter(rule, rule.tool)
    if tool in ("Read", "Edit"):
        if understood(specifier, rule.behavior):
            return None
        return f"{rule.text}: {specifier!r} is no path pattern in gitignore syntax; {_consequence(rule)}"
    if named is not None and named[0] in NO_PARAMETERS:
        instead = "WebFetch(domain:...)" if named[0] == "url" else "Read(...), Edit(...) or Bash(...)"
        return f"{rule.text}: a rule cannot name the parameter {named[0]}; write {instead}; {_consequence(rule)}"
    if named is not None and rule.behavior != "allow":
        return None
    if named is not None:
        return f"{rule.text}: only deny and ask rules can name a parameter; it allows nothing"
    if tool in PATHLESS:
        instead = "Read" if tool == "Glob" else "Edit"
        return (
            f"{rule.text}: paths are looked up in {instead} rules; write {instead}({specifier}); {_consequence(rule)}"
        )
    if (tool == "WebFetch" and not specifier.removeprefix("domain:").strip(". ")) or not _has_syntax(tool, specifier):
        return f"{rule.text}: {tool} does not understand {specifier!r}; {_consequence(rule)}"
    return None


def _has_syntax(tool: str, specifier: str) -> bool:
    return tool in _TAKES and (tool != "WebFetch" or specifier.startswith("domain:"))


def _consequence(rule: PermissionRule) -> str:
    return "it allows nothing" if rule.behavior == "allow" else "until then it asks where it could be meant"

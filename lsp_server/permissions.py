"""`agent-ls permissions explain | list`: what the rules here say of a call, and which rules there are."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_core.loading.configuration import Configuration
from agent_core.permissions.explaining import Explanation, call_of, explain
from agent_core.permissions.gate import context_of
from agent_core.permissions.types import PermissionMode, PermissionRule
from agent_core.runtime import Runtime
from agent_core.tool import Place

FOUND, FAULTS, WRONG = 0, 1, 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="permissions", metavar="COMMAND", required=True)
    one = commands.add_parser("explain", help="whether a call would run, and why")
    one.add_argument("call", help="such as 'Bash(git status && rm -rf x)', 'Edit(src/a.py)' or mcp__git__log")
    one.add_argument("--mode", choices=[mode.value for mode in PermissionMode], help="default: the settings' own")
    every = commands.add_parser("list", help="all rules with file and line, and what is wrong with them")
    for command in (one, every):
        command.add_argument("--cwd", type=Path, help="the working folder (default: this one)")
        command.add_argument("--json", action="store_true", help="for programs")


def main(options: argparse.Namespace) -> int:
    """0, 1 when `list` finds faults, 2 when the command line is wrong. Session grants are not seen: no agent runs."""
    cwd = (options.cwd or Path.cwd()).absolute()
    if not cwd.is_dir():
        return _wrong(f"--cwd: {str(cwd)!r} is no folder")
    return asyncio.run(_explain(options, cwd) if options.permissions == "explain" else _list(options, cwd))


async def _explain(options: argparse.Namespace, cwd: Path) -> int:
    project = await Runtime(env=dict(os.environ), folders=(cwd,)).project(cwd)
    call = call_of(options.call, cwd, project.home)
    if call is None:
        return _wrong(f"CALL: {options.call!r} describes no call; write Tool or Tool(what it is given)")
    start = project.configuration.settings.default_mode or PermissionMode.DEFAULT
    mode = PermissionMode(options.mode) if options.mode else start
    context = context_of(project, Place(cwd), mode)
    found = explain(call, context)
    idle = [(rule, why) for rule, why in project.configuration.idle if rule.tool == call.tool]
    if options.json:
        _print_json({**_explained(found), "mode": context.mode.value, "notInForce": [_rule(*each) for each in idle]})
    else:
        _show(found, context.mode, options.mode, idle)
    return FOUND


async def _list(options: argparse.Namespace, cwd: Path) -> int:
    configuration = (await Runtime(env=dict(os.environ), folders=(cwd,)).project(cwd)).configuration
    if options.json:
        _print_json(_listed(configuration))
    else:
        for rule in configuration.settings.rules:
            _line(f"{rule.behavior:<6} {rule.text}   {rule.place}")
        for rule, why in configuration.idle:
            _line(f"{rule.behavior:<6} {rule.text}   {rule.place}   not in force: {why}")
        if not configuration.settings.rules and not configuration.idle:
            _line("no rules")
        for problem in configuration.problems:
            sys.stderr.write(f"{problem.path}:{problem.line + 1}: {problem.message}\n")
    return FAULTS if configuration.problems else FOUND


def _show(found: Explanation, mode: PermissionMode, asked: str | None, idle: list[tuple[PermissionRule, str]]) -> None:
    _line(f"{found.outcome}: {found.decision.reason}")
    _line(f"mode: {mode.value}" + (f" (policy forbids {asked})" if asked not in (None, mode.value) else ""))
    for text, decision in found.parts:
        _line(f"part: {text}: {type(decision).__name__.lower()}: {decision.reason}")
    for finding in found.findings:
        why = f": {finding.why}" if finding.why else ""
        _line(f"  {finding.rule.behavior:<6} {finding.rule.text}   {finding.rule.place}   {finding.says}{why}")
    for rule, why in idle:
        _line(f"  {rule.behavior:<6} {rule.text}   {rule.place}   not in force: {why}")


def _explained(found: Explanation) -> Mapping[str, Any]:
    return {
        "decision": found.outcome,
        "reason": found.decision.reason,
        "parts": [
            {"text": text, "decision": type(each).__name__.lower(), "reason": each.reason} for text, each in found.parts
        ],
        "rules": [{**_rule(each.rule), "says": each.says, "why": each.why or None} for each in found.findings],
    }


def _listed(configuration: Configuration) -> Mapping[str, Any]:
    return {
        "trusted": configuration.trusted,
        "rules": [_rule(rule) for rule in configuration.settings.rules],
        "notInForce": [_rule(*each) for each in configuration.idle],
        "problems": [
            {"file": str(each.path), "line": each.line + 1, "severity": each.severity, "message": each.message}
            for each in configuration.problems
        ],
    }


def _rule(rule: PermissionRule, idle: str | None = None) -> dict[str, Any]:
    line = None if rule.line is None else rule.line + 1
    found = {"behavior": rule.behavior, "rule": rule.text, "source": rule.source, "line": line}
    return {**found, "reason": idle} if idle else found


def _print_json(value: Mapping[str, Any]) -> None:
    _line(json.dumps(value, indent=2, ensure_ascii=False))


def _line(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _wrong(text: str) -> int:
    sys.stderr.write(f"agent-ls: {text}\n")
    return WRONG

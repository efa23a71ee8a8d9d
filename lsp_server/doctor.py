"""`agent-ls doctor`: what works and what does not, each with its fix. Secrets are named, never shown."""

from __future__ import annotations

import asyncio
import os
import platform
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

from attrs import frozen

from agent_core.errors import AgentError, MissingCredentials
from agent_core.loading.configuration import state_dir
from agent_core.model.aliases import ALIASES, exact_id
from agent_core.model.messages_api import listed_models
from agent_core.repository import GitCommand, find_repository
from agent_core.runtime import Runtime, is_live
from lsp_server.capabilities import VERSION

_CONNECT_SECONDS, _LIST_SECONDS = 3.0, 5.0


@frozen
class Finding:
    """`level` is ok, warning or error."""

    level: str
    text: str


def main() -> int:
    """1 when something keeps agents from working, else 0."""
    return asyncio.run(_main(Path.cwd()))


async def _main(cwd: Path) -> int:
    worst = 0
    async for finding in examine(cwd):
        sys.stdout.write(f"{finding.level:<8} {finding.text}\n")
        worst = max(worst, finding.level == "error")
    return worst


async def examine(cwd: Path) -> AsyncIterator[Finding]:
    runtime = Runtime(env=dict(os.environ), folders=(cwd,))
    yield Finding("ok", f"agent-ls {VERSION}, Python {platform.python_version()}")
    yield await _git(cwd)
    configuration = (await runtime.project(cwd)).configuration
    trust = "trusted" if configuration.trusted else "not trusted: its allow rules and wider modes wait"
    yield Finding("ok", f"the folder {cwd} is {trust}")
    for problem in configuration.problems:
        level = "error" if problem.severity == 1 else "warning"
        yield Finding(level, f"{problem.path}:{problem.line + 1}: {problem.message}")
    yield Finding("ok", f"agents: {', '.join(agent.name for agent in configuration.definitions.active)}")
    for finding in (_credentials(runtime), await _endpoint(runtime), _state(runtime)):
        yield finding
    async for finding in _aliases(runtime):
        yield finding
    live = [info for info in await runtime.list() if is_live(info)]
    yield Finding(
        "ok", f"running: {', '.join(f'{info.agent_type} ({info.description})' for info in live) or 'nothing'}"
    )


async def _git(cwd: Path) -> Finding:
    git = GitCommand()
    try:
        version = (await git.run(cwd, "--version")).decode().strip()
    except AgentError as error:
        return Finding("error", str(error))
    try:
        found = await find_repository(git, cwd)
    except AgentError as error:
        return Finding("warning", f"{version}; {error}; isolation: worktree is not possible here")
    return Finding(
        "ok", f"{version}; repository {found.toplevel or found.git_dir}, branch {found.branch or '(detached)'}"
    )


def _credentials(runtime: Runtime) -> Finding:
    try:
        return Finding("ok", f"credentials: {runtime.credentials().described}")
    except MissingCredentials as error:
        return Finding("error", str(error))


async def _endpoint(runtime: Runtime) -> Finding:
    try:
        url = runtime.credentials().endpoint
    except MissingCredentials:
        return Finding("warning", "the model service was not tried without credentials")
    parts = urlsplit(url)
    shown = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"
    port = parts.port or (80 if parts.scheme == "http" else 443)
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(parts.hostname, port)
        writer.close()
    except (OSError, TimeoutError) as error:
        return Finding(
            "error",
            f"the model service {shown} cannot be reached ({error}); check the network, and the base URL if one is set",
        )
    return Finding("ok", f"the model service {shown} accepts connections")


async def _aliases(runtime: Runtime) -> AsyncIterator[Finding]:
    """Nothing is wrong with a service that lists no models."""
    try:
        listed = await listed_models(runtime.credentials(), _LIST_SECONDS)
    except MissingCredentials:
        listed = None
    if not listed:
        yield Finding("ok", "model aliases were not checked: the service lists no models")
        return
    wrong = 0
    for alias in ALIASES:
        name = exact_id(alias, runtime.env).removesuffix("[1m]")
        if not any(each == name or re.fullmatch(re.escape(name) + r"-\d{8}", each) for each in listed):
            wrong += 1
            fix = f"set ANTHROPIC_DEFAULT_{alias.upper()}_MODEL to one that it lists"
            yield Finding("warning", f"the alias {alias} stands for {name}, which the service does not list; {fix}")
    if not wrong:
        yield Finding("ok", f"model aliases: {', '.join(ALIASES)} are listed by the service")


def _state(runtime: Runtime) -> Finding:
    folder = state_dir(runtime.env)
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    if os.access(existing, os.W_OK) and existing.is_dir():
        return Finding("ok", f"state folder {folder}")
    return Finding("error", f"the state folder {folder} cannot be written; set AGENT_LS_STATE_DIR to one that can")

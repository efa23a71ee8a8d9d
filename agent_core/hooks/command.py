"""`command` hooks: a program that reads JSON on stdin and answers by its exit code and what it prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_core.hooks.answers import of_process
from agent_core.hooks.values import MAX_TEXT, Answer, Command, failed
from agent_core.ports import Processes

_MAX_OUTPUT = 8 * MAX_TEXT
"""JSON of several texts, each of which is cut by itself."""


async def run_command(
    processes: Processes, handler: Command, payload: Mapping[str, Any], *, cwd: Path, project: Path, timeout: float
) -> Answer:
    """In `cwd`, without a terminal; whatever it has started ends with it."""
    event = str(payload["hook_event_name"])
    given = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
    environment = {"CLAUDE_PROJECT_DIR": str(project)}
    try:
        done = await processes.exchange(
            _argv(handler, project),
            cwd=cwd if cwd.is_dir() else project,
            timeout=timeout,
            max_output=_MAX_OUTPUT,
            env=environment,
            stdin=given,
        )
    except OSError as error:
        return failed(f"it could not be started: {error.strerror or error}")
    if done.exit_code is None:
        return Answer("timeout", f"it did not end within {timeout:g} s and was ended, so it decides nothing")
    return of_process(event, done.exit_code, done.stdout, done.stderr)


def _argv(handler: Command, project: Path) -> list[str]:
    """Bash finds the variable in its environment; a program that is started directly gets its value."""
    if handler.args is None:
        return ["bash", "-c", handler.command]
    return [part.replace("${CLAUDE_PROJECT_DIR}", str(project)) for part in (handler.command, *handler.args)]

"""Bash: one command in the agent's working directory."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from typing import Any

from agent_core.errors import ToolError
from agent_core.messages import TextBlock
from agent_core.permissions.types import PermissionFacts, ToolKind
from agent_core.ports import ProcessResult
from agent_core.tool import ToolContext, ToolResult
from agent_core.tools.paths import check_place, one_line

_TIMEOUT_MS = 120_000
_MAX_TIMEOUT_MS = 600_000
_MAX_OUTPUT = 30_000
_HIGHEST_MAX_OUTPUT = 150_000
_MAX_REPORTED = 1_000_000  # characters shown live; a command that prints for ever must not fill the log

_SCHEMA = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "minLength": 1, "description": "Passed to bash -c."},
        "timeout": {
            "type": "integer",
            "minimum": 1,
            "description": "Milliseconds (default 120000; at most 600000, more is shortened).",
        },
        "description": {"type": "string", "description": "What it does, in 5-10 words, for the user."},
    },
    "required": ["command"],
    "additionalProperties": False,
}


class Bash:
    name = "Bash"
    description = (
        "Run a shell command and get its output (stdout and stderr together) and exit code. Each call starts in the "
        "working directory: cd and variables do not last, so use absolute paths or chain with &&. Nobody can answer "
        "prompts: use flags such as --yes. Processes left in the background end with the command. Long output is "
        "shortened in the middle. For files prefer Read, Edit, Write, Glob and Grep to cat, sed, echo, find and grep."
    )
    input_schema: Mapping[str, Any] = _SCHEMA
    kind = ToolKind.EXECUTE
    read_only = False
    concurrent = False

    def title(self, input: Mapping[str, Any]) -> str:
        return one_line(f"Bash {input['command']}")

    async def facts(self, input: Mapping[str, Any], ctx: ToolContext) -> PermissionFacts:
        return PermissionFacts(command=input["command"], cwd=ctx.place.cwd)

    async def run(self, input: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        check_place(ctx.place)
        command: str = input["command"]
        if "\0" in command:
            raise ToolError("command contains a NUL character, which no shell accepts.")
        seconds = _timeout(input) / 1000
        try:
            result = await ctx.processes.run(
                ["bash", "-c", command],
                cwd=ctx.place.cwd,
                timeout=seconds,
                max_output=min(_setting("BASH_MAX_OUTPUT_LENGTH", _MAX_OUTPUT), _HIGHEST_MAX_OUTPUT),
                env=ctx.place.environment,
                on_output=_bounded(ctx.report),
            )
        except OSError as error:
            raise ToolError(f"bash could not be started in {ctx.place.cwd}: {error.strerror}.") from error
        return _result(result, seconds)


def _timeout(input: Mapping[str, Any]) -> int:
    """Milliseconds."""
    wanted = int(input.get("timeout", _setting("BASH_DEFAULT_TIMEOUT_MS", _TIMEOUT_MS)))
    return min(wanted, _setting("BASH_MAX_TIMEOUT_MS", _MAX_TIMEOUT_MS))


def _setting(name: str, default: int) -> int:
    """A positive whole number from the environment; anything else counts as not set."""
    text = os.environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else default


def _bounded(report: Callable[[str], None]) -> Callable[[str], None]:
    room = _MAX_REPORTED

    def forward(text: str) -> None:
        nonlocal room
        if room > 0:
            report(text[:room] if len(text) <= room else text[:room] + "\n[further output is not shown live]\n")
            room -= len(text)

    return forward


def _result(result: ProcessResult, seconds: float) -> ToolResult:
    if result.timed_out:
        status = f"Timed out after {seconds:g} s; the command and all its processes were ended."
        return ToolResult.error(f"{status} Output until then:\n{result.output or '(none)'}")
    if result.exit_code:
        return ToolResult.error(f"{_exit(result.exit_code)}\n{result.output}".rstrip("\n"))
    return ToolResult((TextBlock(result.output or "(no output)"),))


def _exit(code: int) -> str:
    if code > 0:
        return f"Exit code {code}"
    try:
        return f"Ended by signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"Ended by signal {-code}"

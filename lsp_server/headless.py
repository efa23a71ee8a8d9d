"""`agent-ls run`: the same without an editor. With nobody to ask, only what rules or the mode allow is done.

It ends when nothing of the conversation works any more: agents in the background are waited for, and what they wake.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
from attrs import frozen

from agent_core.disk import Disk
from agent_core.disk_target import DiskTarget
from agent_core.errors import AgentError, InvalidParams
from agent_core.event_log import EventLog
from agent_core.events import AgentInfo
from agent_core.loading.layers import Layer, parse
from agent_core.messages import StopReason
from agent_core.permissions.types import PermissionMode
from agent_core.processes import LocalProcesses
from agent_core.repository import GitCommand
from agent_core.runtime import Runtime, SpawnRequest, is_live, open_runtime
from agent_core.task import TaskStatus
from agent_core.text import encodable
from lsp_server import convert
from lsp_server.wire import to_wire

COMPLETED, FAILED, TURN_LIMIT = 0, 1, 2
CEILING = "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS"
_CEILING_MS = 600_000


@frozen
class Order:
    """What the command line asks for."""

    request: SpawnRequest
    agent: str | None
    settings: Layer | None
    agents: Mapping[str, Any]
    trust: bool
    output: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompt", help="the task; - reads it from standard input")
    parser.add_argument("--agent", metavar="NAME", help="the agent that answers (default: the main thread)")
    parser.add_argument("--model", help="opus, sonnet, haiku, fable or a full id")
    parser.add_argument("--permission-mode", choices=[mode.value for mode in PermissionMode])
    parser.add_argument("--isolation", choices=["none", "worktree"])
    parser.add_argument("--max-turns", type=int, metavar="N")
    parser.add_argument("--cwd", type=Path, default=None, help="the working folder (default: this one)")
    parser.add_argument("--settings", metavar="FILE|JSON", help="settings above all files but managed ones")
    parser.add_argument("--agents", metavar="JSON", help="agents of this run: name to {description, prompt, ...}")
    parser.add_argument("--trust", action="store_true", help="trust the folder's own settings for this run")
    parser.add_argument("--output-format", choices=["text", "json", "stream-json"], default="text")


def main(options: argparse.Namespace) -> int:
    """0 completed, 2 turn limit, 1 anything else, 128 and its number after a signal; faults in one line on stderr."""
    received: list[int] = []
    try:
        return asyncio.run(_until_signalled(_order(options), received))
    except (AgentError, BadOption) as error:
        sys.stderr.write(f"agent-ls: {error}\n")
        return FAILED
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except asyncio.CancelledError:
        return 128 + received[0]


class BadOption(Exception):
    """Names the option and what is wrong with it."""


def _order(options: argparse.Namespace) -> Order:
    prompt = encodable(_standard_input() if options.prompt == "-" else options.prompt)
    if not prompt.strip():
        raise InvalidParams("PROMPT", "is empty; say what the agent shall do")
    if options.max_turns is not None and options.max_turns < 1:
        raise InvalidParams("--max-turns", f"must be at least 1, not {options.max_turns}")
    cwd = (options.cwd or Path.cwd()).absolute()
    if not cwd.is_dir():
        raise InvalidParams("--cwd", f"{str(cwd)!r} is no folder")
    request = SpawnRequest(
        prompt=prompt,
        cwd=cwd,
        agent_type=options.agent,
        model=options.model,
        permission_mode=PermissionMode(options.permission_mode) if options.permission_mode else None,
        isolation=options.isolation,
        max_turns=options.max_turns,
    )
    settings = settings_option(options.settings, cwd)
    agents = _json("--agents", options.agents)
    return Order(request, options.agent, settings, agents, options.trust, options.output_format)


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode(sys.stdin.encoding).replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InvalidParams(
            "PROMPT", f"standard input is no text in {error.encoding.upper()} (byte {error.start + 1})"
        ) from error


def settings_option(given: str | None, cwd: Path) -> Layer | None:
    """A file, whose folder its rules' `/path` starts in, or JSON, where that is `cwd`. BadOption when it is neither."""
    if given is None:
        return None
    file = None if given.lstrip().startswith("{") else Path(given).absolute()
    try:
        text = given if file is None else file.read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        raise BadOption(f"--settings: {error}") from error
    values = _json("--settings", text)
    return Layer(str(file or "--settings"), values, file.parent if file else cwd, "command line", text)


def _json(option: str, text: str | None) -> Mapping[str, Any]:
    if text is None:
        return {}
    try:
        return dict(encodable(parse(text)))
    except ValueError as error:
        raise BadOption(f"{option}: {error}") from error


async def _until_signalled(order: Order, received: list[int]) -> int:
    """SIGTERM and SIGHUP end it in order, as SIGINT does: commands are ended and worktrees let go."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None

    def stop(number: int) -> None:
        received.append(number)
        if len(received) == 1:  # a second one must not disturb the ending
            task.cancel()

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            loop.add_signal_handler(number, stop, number)
    return await _run(order)


async def _run(order: Order) -> int:
    runtime = Runtime(
        env=dict(os.environ),
        folders=(order.request.cwd,),
        cli_settings=order.settings,
        cli_agents=order.agents,
        interactive=False,
        trusted=True if order.trust else None,
    )
    opened = open_runtime(runtime, files=Disk(), target=DiskTarget(), processes=LocalProcesses(), git=GitCommand())
    async with opened, anyio.create_task_group() as group:
        if order.output == "stream-json":
            runtime.watch(lambda log: _start(group.start_soon, log))
        outcome = await _outcome(runtime, order)
        group.cancel_scope.cancel()
    if isinstance(outcome, AgentError):
        raise outcome
    _report(outcome, order.output)
    return _exit_code(outcome)


async def _outcome(runtime: Runtime, order: Order) -> AgentInfo | AgentError:
    """A refusal is given back: raised inside a task group it would arrive wrapped."""
    try:
        info = await (runtime.spawn(order.request) if order.agent else runtime.run_main(order.request))
        return await _last_answer(runtime, info.id, _ceiling(runtime.env))
    except AgentError as error:
        return error


async def _last_answer(runtime: Runtime, agent_id: str, seconds: float) -> AgentInfo:
    """At the end of its last run: agents in the background may wake it with what they found. Waiting for them, while
    it does nothing itself, takes so many seconds at most."""
    while True:
        info = await runtime.wait(agent_id)
        live = [each.id for each in await runtime.list() if each.root_id == agent_id and is_live(each)]
        if not live and await runtime.wait(agent_id) == info:
            return info
        if not live or agent_id in live:  # it was woken meanwhile
            continue
        begun = time.monotonic()
        with anyio.move_on_after(seconds) as timed:
            await _first_end(runtime, live)
        if timed.cancelled_caught:
            sys.stderr.write(f"agent-ls: stopped what still worked in the background: {len(live)} ({CEILING})\n")
            return info
        seconds -= time.monotonic() - begun


async def _first_end(runtime: Runtime, agents: Sequence[str]) -> None:
    async def one(agent_id: str) -> None:
        await runtime.wait(agent_id)
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for each in agents:
            group.start_soon(one, each)


def _ceiling(env: Mapping[str, str]) -> float:
    """Seconds; 0 in the variable means no limit."""
    text = env.get(CEILING, "")
    return (int(text) if text.isdecimal() else _CEILING_MS) / 1000 or math.inf


def _start(start_soon: Callable[..., Any], log: EventLog) -> None:
    start_soon(_stream, log)


async def _stream(log: EventLog) -> None:
    async for event in log.read(written=True):
        if event.durable:
            _line(to_wire(convert.progress(event, log.state.info)))


def _report(info: AgentInfo, output: str) -> None:
    if output == "text":
        sys.stdout.write(f"{info.result or ''}\n")
        if info.error:
            sys.stderr.write(f"agent-ls: {info.error}\n")
    else:
        _line({"type": "result", "agent": to_wire(convert.agent(info))})


def _line(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def _exit_code(info: AgentInfo) -> int:
    if info.status is not TaskStatus.COMPLETED:
        return FAILED
    return TURN_LIMIT if info.stop_reason is StopReason.MAX_TURNS else COMPLETED

"""Commands as child processes: the Processes port.

Each command gets a session of its own, so everything it starts can be ended together; what it leaves in the
background is ended with it. Only a process that makes a new session itself (a daemon) escapes.

PR_SET_PDEATHSIG is deliberately absent: it would need preexec_fn, which is unsafe beside threads, and it
fires when the starting *thread* ends. The owner calls `kill_all` on its way out.
"""

from __future__ import annotations

import codecs
import os
import re
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

import anyio
import anyio.abc
from attrs import define, field

from agent_core.ports import Exchange, ProcessResult

_CHUNK = 64 * 1024
_MAX_DRAIN = 1024 * 1024  # more than a pipe can hold
_PATIENCE = 2.0  # seconds between SIGTERM and SIGKILL

# Credentials of the model service: the agent's own key is not for the commands it runs. Everything else that a user
# has exported (GITHUB_TOKEN, AWS_..., OPENAI_API_KEY) is theirs, and their tools and tests need it.
_SECRET = re.compile(
    r"ANTHROPIC_.*(KEY|TOKEN|SECRET)|ANTHROPIC_CUSTOM_HEADERS|AWS_BEARER_TOKEN_BEDROCK|CLAUDE_CODE_OAUTH_TOKEN.*"
)
# git's repository is decided by the working directory, never by variables of a git hook that started us (WT-2).
_MISLEADING = frozenset(
    f"GIT_{name}"
    for name in ("DIR", "WORK_TREE", "INDEX_FILE", "COMMON_DIR", "OBJECT_DIRECTORY", "PREFIX", "NAMESPACE")
)
_ALWAYS = {
    "CLAUDECODE": "1",
    "CLAUDE_CODE_CHILD_SESSION": "1",
    "GIT_TERMINAL_PROMPT": "0",  # there is no terminal to answer on
    "GIT_EDITOR": "true",
    "GIT_PAGER": "cat",
    "PAGER": "cat",
}


def child_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our environment without secrets, plus `extra`, which may bring a secret back on purpose."""
    kept = {k: v for k, v in os.environ.items() if not _SECRET.fullmatch(k) and k not in _MISLEADING}
    return {**kept, **_ALWAYS, **(extra or {})}


@define
class LocalProcesses:
    """Processes on this machine (POSIX). `_live` holds the pid of each leader that has not been cleared away."""

    _live: set[int] = field(factory=set)

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        timeout: float,
        max_output: int,
        env: Mapping[str, str] | None = None,
        on_output: Callable[[str], None] | None = None,
    ) -> ProcessResult:
        """See the port. `on_output` gets every piece of output once, in order; `max_output` is in characters."""
        output = ShortenedOutput(max_output, on_output)
        with _pipe() as (reader, writer):
            process = await _start(argv, cwd, child_environment(env), writer)
            self._live.add(process.pid)
            try:
                with anyio.move_on_after(timeout) as limit:
                    await _follow(process, (reader, output))
            finally:
                await _clear_away(process)
                self._live.discard(process.pid)
            _drain(reader, output)
        timed_out = limit.cancelled_caught
        exit_code = None if timed_out else process.returncode
        return ProcessResult(exit_code, output.finish(), timed_out, output.dropped > 0)

    async def exchange(
        self, argv: Sequence[str], *, cwd: Path, timeout: float, max_output: int, env: Mapping[str, str], stdin: bytes
    ) -> Exchange:
        """See the port."""
        out, err = ShortenedOutput(max_output), ShortenedOutput(max_output)
        with _pipe() as (reader, writer), _pipe() as (errors, error_writer), _source() as (source, feeder):
            process = await _start(argv, cwd, child_environment(env), writer, error_writer, source)
            self._live.add(process.pid)
            try:
                with anyio.move_on_after(timeout) as limit:
                    await _follow(process, (reader, out), (errors, err), feed=(feeder, stdin))
            finally:
                await _clear_away(process)
                self._live.discard(process.pid)
            _drain(reader, out)
            _drain(errors, err)
        return Exchange(None if limit.cancelled_caught else process.returncode, out.finish(), err.finish())

    def kill_all(self) -> None:
        """SIGKILL to everything still running. For the end of the program; neither waits nor fails."""
        for pid in tuple(self._live):
            _signal_session(pid, signal.SIGKILL)


@define
class ShortenedOutput:
    """Collects bytes, keeps at most `limit` characters: the first half and, in a ring, the last."""

    limit: int
    on_output: Callable[[str], None] | None = None
    dropped: int = 0
    _decoder: codecs.IncrementalDecoder = field(factory=lambda: codecs.getincrementaldecoder("utf-8")("replace"))
    _head: list[str] = field(factory=list)
    _head_room: int = field(init=False)
    _tail: deque[str] = field(factory=deque)
    _tail_size: int = 0

    def __attrs_post_init__(self) -> None:
        self._head_room = self.limit // 2

    def feed(self, data: bytes, *, final: bool = False) -> None:
        text = self._decoder.decode(data, final)
        if not text:
            return
        if self.on_output is not None:
            self.on_output(text)
        head, text = text[: self._head_room], text[self._head_room :]
        self._head.append(head)
        self._head_room -= len(head)
        self._keep_tail(text)

    def finish(self) -> str:
        """All text, or its two ends around a note."""
        self.feed(b"", final=True)
        note = f"\n\n[... {self.dropped} characters left out here ...]\n\n" if self.dropped else ""
        return "".join(self._head) + note + "".join(self._tail)

    def _keep_tail(self, text: str) -> None:
        self._tail.append(text)
        self._tail_size += len(text)
        excess = self._tail_size - (self.limit - self.limit // 2)
        while excess > 0:
            first = self._tail.popleft()
            if len(first) > excess:
                self._tail.appendleft(first[excess:])
            removed = min(len(first), excess)
            self._tail_size -= removed
            self.dropped += removed
            excess -= removed


@contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    """Our own pipe rather than asyncio's: its end does not have to be awaited, so a heir of it cannot hold us up."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    try:
        yield reader, writer
    finally:
        os.close(reader)


@contextmanager
def _source() -> Iterator[tuple[int, FileIO]]:
    """A pipe that the child reads; its own end is taken over by `_start`."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with FileIO(writer, "wb") as file:
        yield reader, file


async def _start(
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    writer: int,
    errors: int | None = None,
    source: int = subprocess.DEVNULL,
) -> anyio.abc.Process:
    """Takes over the descriptors. Shielded, so that no process starts without us knowing its pid."""
    stderr = writer if errors is None else errors
    try:
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(
                list(argv), stdin=source, stdout=writer, stderr=stderr, cwd=cwd, env=env, start_new_session=True,
            )  # fmt: skip
    finally:
        for descriptor in {writer, stderr, source} - {subprocess.DEVNULL}:
            os.close(descriptor)
    return process


async def _follow(
    process: anyio.abc.Process, *outputs: tuple[int, ShortenedOutput], feed: tuple[FileIO, bytes] | None = None
) -> None:
    async with anyio.create_task_group() as tasks:
        for reader, output in outputs:
            tasks.start_soon(_pump, reader, output)
        if feed is not None:
            tasks.start_soon(_feed, *feed)
        await process.wait()
        tasks.cancel_scope.cancel()


async def _feed(writer: FileIO, data: bytes) -> None:
    """All of it, then the end. A program that has enough closes its side."""
    rest = memoryview(data)
    with suppress(BrokenPipeError):
        while rest:
            await anyio.wait_writable(writer)
            rest = rest[os.write(writer.fileno(), rest[:_CHUNK]) :]
    writer.close()


async def _pump(reader: int, output: ShortenedOutput) -> None:
    while True:
        await anyio.wait_readable(reader)
        data = os.read(reader, _CHUNK)
        if not data:
            return
        output.feed(data)


def _drain(reader: int, output: ShortenedOutput) -> None:
    """What is in the pipe already. Bounded, because a daemon may still be writing."""
    with suppress(BlockingIOError):
        for _ in range(_MAX_DRAIN // _CHUNK):
            data = os.read(reader, _CHUNK)
            if not data:
                return
            output.feed(data)


async def _clear_away(process: anyio.abc.Process) -> None:
    """End whatever is left of the session. Bounded: about two patiences, less when everybody obeys."""
    if process.returncode is not None and not _group_exists(process.pid):
        return
    with anyio.CancelScope(shield=True):
        for number in (signal.SIGTERM, signal.SIGKILL):
            _signal_session(process.pid, number)
            if await _gone(process.pid):
                break
        with anyio.move_on_after(_PATIENCE):
            await process.wait()


async def _gone(session: int) -> bool:
    pause = 0.002
    with anyio.move_on_after(_PATIENCE):
        while _session_exists(session):
            await anyio.sleep(pause)
            pause = min(pause * 2, 0.1)
        return True
    return False


def _signal_session(session: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(session, number)
    for pid in _members(session) or ():
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _session_exists(session: int) -> bool:
    members = _members(session)
    return _group_exists(session) if members is None else bool(members)


def _group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _members(session: int) -> list[int] | None:
    """Pids of the session that are not dead yet, also those in other groups (`set -m`). None without /proc.

    Zombies do not count: in a container nobody may ever collect them, and a signal 0 still reaches them.
    """
    try:
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except FileNotFoundError:
        return None
    return [pid for pid in pids if _lives_in(pid, session)]


def _lives_in(pid: int, session: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    state, _parent, _group, of_session = stat.rpartition(")")[2].split()[:4]
    return int(of_session) == session and state not in "ZX"

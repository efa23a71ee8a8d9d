"""What the core needs from the outside world. Adapters implement these; tests may too.

Every async method may be cancelled at any await and then leaves nothing half done and no process behind.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from attrs import frozen

from agent_core.permissions.types import PermissionAnswer, PermissionRequest


@frozen
class FileState:
    """`data` is what the agent should see: the unsaved buffer when there is one, else the bytes on disk.

    `unsaved` is True when an editor holds a text that differs from the disk.
    """

    data: bytes
    unsaved: bool


class FileSystem(Protocol):
    """Files as agents see them. Paths are absolute. OSError passes through (FileNotFoundError and the like)."""

    async def read(self, path: Path) -> FileState: ...

    async def write(self, path: Path, data: bytes, *, expected: bytes | None) -> bool:
        """Replace the content in one step (temporary file and rename, mode bits kept; parents are made).

        `expected` is the content that the caller saw (None: the file did not exist); when it has changed meanwhile
        ToolError is raised and nothing is written. A file with an unsaved buffer is edited in the editor instead and
        not saved: then the result is False, else True.
        """
        ...

    async def unsaved(self, folder: Path) -> Mapping[Path, bytes]:
        """What editors hold for files below `folder` and have not saved, as they would save it; by real path."""
        ...


@frozen
class ProcessResult:
    """`exit_code` is None when the time ran out. `output` is stdout and stderr in the order written, UTF-8 with
    replacement, shortened in the middle when `truncated`."""

    exit_code: int | None
    output: str
    timed_out: bool
    truncated: bool


@frozen
class Exchange:
    """What a program made of its input. `exit_code` is None when the time ran out; both outputs are shortened."""

    exit_code: int | None
    stdout: str
    stderr: str


class Processes(Protocol):
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
        """Run in a process group of its own with stdin closed. Time-out (seconds) and cancellation end the whole
        group: SIGTERM, two seconds, SIGKILL. `env` is added to a copy of ours without secrets. OSError when it
        cannot start.
        """
        ...

    async def exchange(
        self, argv: Sequence[str], *, cwd: Path, timeout: float, max_output: int, env: Mapping[str, str], stdin: bytes
    ) -> Exchange:
        """As `run`, for a program that reads `stdin` and answers on two outputs, each of at most `max_output`
        characters. One that does not read all of it is fine."""
        ...

    def kill_all(self) -> None:
        """SIGKILL to everything still running, for the end of the program; neither waits nor fails."""
        ...


class Git(Protocol):
    async def run(
        self,
        cwd: Path,
        *args: str,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        ok: Sequence[int] = (0,),
    ) -> bytes:
        """Run `git ARGS` in `cwd`, without hooks, prompts or external helpers; stdout as bytes.

        GitFailed (a WorktreeFailed) with the command and git's own words when the exit code is not in `ok`.
        """
        ...


@frozen
class ModelRequest:
    """One request in wire form, apart from credentials. `tools`, `system` and `messages` are plain JSON values."""

    model: str
    max_tokens: int
    system: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]]
    messages: Sequence[Mapping[str, Any]]
    thinking: Mapping[str, Any] | None = None


class ModelClient(Protocol):
    def stream(self, request: ModelRequest) -> AsyncGenerator[Mapping[str, Any], None]:
        """The service's stream events as plain dicts, in order, ending after `message_stop`.

        RetryableModelError, FatalModelError or MissingCredentials otherwise. Closing the iterator closes the socket.
        """
        ...


class Clock(Protocol):
    def now(self) -> datetime:
        """Aware, UTC."""
        ...

    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...


class Asker(Protocol):
    async def ask(self, request: PermissionRequest) -> PermissionAnswer | None:
        """Put the question to a person. None: this asker can never answer (pass over it). Waits without limit
        otherwise; cancellation withdraws the question wherever it is shown."""
        ...


class ReviewTarget(Protocol):
    """Where reviewed changes go: the user's files, as they are now.

    bytes: a file without an open buffer; str: the text of an open buffer, in the form the editor sent it (its own line
    ends, no BOM unless the editor keeps it in the text); None: there is no such file.
    """

    async def read_all(self, paths: Sequence[Path]) -> list[bytes | str | OSError | None]:
        """One for each path; an error in place of what cannot be read."""
        ...

    def keeps(self, path: Path) -> str | None:
        """Why this file cannot be deleted, in words."""
        ...

    async def write(
        self, path: Path, before: bytes | str | None, after: bytes | str | None, executable: bool | None = None
    ) -> None:
        """Replace `before` by `after` (None deletes) and verify the outcome by content. bytes are written atomically,
        str goes to the editor as a versioned edit and is never saved. `executable` sets or clears the x bits.
        ReviewConflict, with nothing changed, when the present content is not `before` or the editor refuses."""
        ...

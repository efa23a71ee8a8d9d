"""Git through GitPython: one command runner and the facts about a repository.

Absent on purpose: `git.Repo` and its object database. They keep `cat-file` children that are not thread-safe; one
command per operation is as fast, can be killed, and reads what is on disk now.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from anyio.lowlevel import checkpoint_if_cancelled
from attrs import define, field, frozen

from agent_core.errors import GitFailed, WorktreeFailed
from agent_core.ports import Git

MINIMUM = (2, 33)
"""`worktree add --lock --reason` came with 2.33."""

_OPTIONS: tuple[str, ...] = (
    "--no-pager", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false",
    "-c", "protocol.ext.allow=never", "-c", "submodule.recurse=false",
)  # fmt: skip
_ENVIRONMENT = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
_INHERITED = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_EXTERNAL_DIFF", "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS", "GIT_DEFAULT_HASH", "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_IMPLICIT_WORK_TREE",
)  # fmt: skip
"""An editor started from a git hook or alias has these; they would redirect every command to another repository."""

_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.4)
"""Seconds before a command that lost a race of git's own is tried again."""

_TERMINATE = signal.SIGTERM
_KILL = signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL


class GitCommand:
    """The Git port. Cancelling `run` ends git and its children (SIGTERM, so that it removes its lock files; SIGKILL
    after two seconds) before it returns."""

    def __init__(self) -> None:
        self._version: tuple[int, ...] | None = None

    async def run(
        self,
        cwd: Path,
        *args: str,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        ok: Sequence[int] = (0,),
    ) -> bytes:
        """Stdout. WorktreeFailed when git is missing or too old; GitFailed when the exit code is not in `ok`."""
        result = await self._once(cwd, args, env or {}, stdin)
        for pause in _PAUSES:
            if not _raced(result):
                break
            await anyio.sleep(pause)
            result = await self._once(cwd, args, env or {}, stdin)
        if isinstance(result, WorktreeFailed):
            raise result
        exit_code, output, words = result
        if exit_code not in ok:
            said = words.decode(errors="replace").strip() or "no message"
            raise GitFailed(f"`git {' '.join(args)}` in {cwd} failed with exit code {exit_code}: {said}", exit_code)
        return output

    async def _once(
        self, cwd: Path, args: Sequence[str], env: Mapping[str, str], stdin: bytes | None
    ) -> tuple[int, bytes, bytes] | WorktreeFailed:
        child = _Child()
        work = partial(self._run, child, cwd, args, env, stdin)
        async with anyio.create_task_group() as group:
            group.start_soon(child.end_when_cancelled)
            try:
                result = await to_thread.run_sync(work)
            finally:
                child.finished.set()
            group.cancel_scope.cancel()
        await checkpoint_if_cancelled()
        return result

    def _run(
        self, child: _Child, cwd: Path, args: Sequence[str], env: Mapping[str, str], stdin: bytes | None
    ) -> tuple[int, bytes, bytes] | WorktreeFailed:
        """In a thread. Failures are returned: raised in a task group they would arrive wrapped."""
        try:
            import git  # here, because it takes 90 ms and runs `git version`

            self._version = self._version or git.Git().version_info
            if self._version < MINIMUM:
                return WorktreeFailed(f"git {_dotted(self._version)} is too old; install {_dotted(MINIMUM)} or newer")
            # GitPython falls back to our own folder when cwd is gone; -C makes that an error
            command = [*_without(env), git.Git.GIT_PYTHON_GIT_EXECUTABLE or "git", "-C", str(cwd), *_OPTIONS, *args]
            pipe = subprocess.PIPE if stdin is not None else None
            process = git.Git(cwd).execute(
                command, istream=pipe, as_process=True, env={**_ENVIRONMENT, **env}, start_new_session=True
            )
        except (ImportError, OSError, subprocess.SubprocessError) as error:
            return WorktreeFailed(f"git cannot be started; install it and put it on PATH ({error})")
        except Exception as error:  # noqa: BLE001  git.exc cannot be named before the import worked
            return WorktreeFailed(f"git cannot be started; install it and put it on PATH ({error})")
        return child.wait(process.proc, stdin)


@define
class _Child:
    """A process in a group of its own; `wait` runs in a thread, the rest on the event loop."""

    process: subprocess.Popen[bytes] | None = None
    cancelled: bool = False
    finished: anyio.Event = field(factory=anyio.Event)

    def wait(self, process: Any, stdin: bytes | None) -> tuple[int, bytes, bytes]:
        self.process = process
        if self.cancelled:
            self.signal(_TERMINATE)
        output, words = process.communicate(stdin)
        self.process = None
        return process.returncode, output, words

    async def end_when_cancelled(self) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            self.cancelled = True
            self.signal(_TERMINATE)
            with anyio.move_on_after(2, shield=True):
                await self.finished.wait()
            self.signal(_KILL)

    def signal(self, number: int) -> None:
        process = self.process
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                process.terminate()
            else:
                os.killpg(process.pid, number)


def _raced(result: tuple[int, bytes, bytes] | WorktreeFailed) -> bool:
    """git looks at all worktrees of a repository, and fails when another git is just making one (seen with 2.39)."""
    return not isinstance(result, WorktreeFailed) and result[0] == 128 and b"/commondir" in result[2]


def _without(env: Mapping[str, str]) -> list[str]:
    """GitPython always hands on our whole environment, so what must not reach git is removed by `env`."""
    names = [name for name in _INHERITED if name in os.environ and name not in env]
    if names and sys.platform == "win32":
        raise OSError(f"unset {', '.join(names)}: the variable redirects git to another repository")
    return ["env", *(word for name in names for word in ("-u", name))] if names else []


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


@frozen
class Repository:
    """A repository as seen from one folder. All paths are real paths.

    `toplevel` is the checkout that holds the folder, None in a bare repository; `git_dir` is that checkout's own git
    folder, `common_dir` the shared one (equal in the main checkout). `head` is None while there is no commit; `branch`
    is None when HEAD is detached. `superproject` is the outer checkout of a submodule.
    """

    toplevel: Path | None
    git_dir: Path
    common_dir: Path
    is_bare: bool
    head: str | None
    branch: str | None
    superproject: Path | None = None


async def find_repository(git: Git, cwd: Path) -> Repository:
    """Ask git what `cwd` belongs to. WorktreeFailed when it is in no repository or inside a `.git` folder."""
    bare, inside, git_dir, common_dir, *places = await _facts(git, cwd)
    if bare != "true" and inside != "true":
        raise WorktreeFailed(f"{cwd} is inside a git folder ({git_dir}); use a folder of the checkout")
    toplevel, superproject = (_path(cwd, os.fsencode(place)) if place else None for place in (*places, "", "")[:2])
    commit = ("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    head, name = await at_once(git, cwd, commit, ("symbolic-ref", "--quiet", "HEAD"))
    reference = name.decode(errors="surrogateescape")
    return Repository(
        toplevel=toplevel,
        git_dir=_path(cwd, git_dir.encode(errors="surrogateescape")),
        common_dir=_path(cwd, common_dir.encode(errors="surrogateescape")),
        is_bare=toplevel is None,
        head=head.decode().strip() or None,
        branch=reference.strip().removeprefix("refs/heads/") or None,
        superproject=superproject,
    )


async def at_once(git: Git, cwd: Path, *questions: tuple[str, ...]) -> list[bytes]:
    """The answers, each empty where there is none. Several gits take no longer than one, while there are processors."""
    answers = [b""] * len(questions)

    async def ask(index: int, question: tuple[str, ...]) -> None:
        answers[index] = await git.run(cwd, *question, ok=(0, 1, 128))

    await side_by_side(*(partial(ask, index, question) for index, question in enumerate(questions)))
    return answers


async def side_by_side(*works: Callable[[], Awaitable[None]]) -> None:
    """All of them at once; the first WorktreeFailed when one fails, which a task group would wrap."""
    faults: list[WorktreeFailed] = []

    async def do(work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except WorktreeFailed as error:
            faults.append(error)

    async with anyio.create_task_group() as group:
        for work in works:
            group.start_soon(do, work)
    if faults:
        raise faults[0]


async def hidden_by_index(git: Git, cwd: Path, env: Mapping[str, str]) -> list[str]:
    """Tracked paths that git was told not to look at (assume-unchanged, skip-worktree): it tells no change of them.
    Files that a sparse checkout left out are not among them."""
    listed = (await git.run(cwd, "ls-files", "-v", "-z", env=env)).split(b"\0")
    flagged = [(entry[:1], os.fsdecode(entry[2:])) for entry in listed if entry]
    return [path for flag, path in flagged if flag.islower() or (flag == b"S" and os.path.lexists(cwd / path))]


async def require_checkout(git: Git, cwd: Path) -> Repository:
    """The repository when `cwd` is in a checkout of it; WorktreeFailed says what is in the way."""
    repository = await find_repository(git, cwd)
    if repository.toplevel is None:
        raise WorktreeFailed(f"{repository.git_dir} is a bare repository; open one of its worktrees")
    return repository


def with_commit(repository: Repository) -> Repository:
    if repository.head is None:
        fix = "commit something, set worktree.base to `snapshot`, or use isolation `none`"
        raise WorktreeFailed(f"the repository {repository.toplevel} has no commit yet; {fix}")
    return repository


async def _facts(git: Git, cwd: Path) -> list[str]:
    if not await to_thread.run_sync(cwd.is_dir):
        raise WorktreeFailed(f"{cwd} is not a folder")
    questions = ("--is-bare-repository", "--is-inside-work-tree", "--absolute-git-dir", "--git-common-dir")
    places: tuple[str, ...] = ("--show-toplevel", "--show-superproject-working-tree")
    try:
        try:
            output = await git.run(cwd, "rev-parse", *questions, *places)
        except GitFailed as error:
            if "must be run in a work tree" not in str(error):
                raise
            output, places = await git.run(cwd, "rev-parse", *questions), ()
    except GitFailed as error:
        if "not a git repository" in str(error):
            raise WorktreeFailed(
                f"{cwd} is in no git repository; run `git init` and commit, or use isolation `none`"
            ) from None
        raise
    facts = output.decode(errors="surrogateescape").splitlines()
    fits = len(facts) in (len(questions) + bool(places), len(questions) + len(places))
    if not fits or (places and not cwd.resolve().is_relative_to(Path(facts[len(questions)]).resolve())):
        raise WorktreeFailed(f"the git folder of {cwd} has a line break in its name; rename it")
    return facts


def _path(cwd: Path, output: bytes) -> Path:
    """git may answer relative to `cwd`."""
    return (cwd / os.fsdecode(output.removesuffix(b"\n"))).resolve()

"""What we put into a new worktree besides the files of git, so that tests run there: folders of the user's checkout as
links (`worktree.symlinkDirectories`), ignored files that `.worktreeinclude` names, submodules (`worktree.submodules`).

All of it is written down (`Made`), so that none of it counts as an agent's work: it is in no review and no commit, and
does not keep a worktree alive (C6). Links are never followed, when it is copied nor when it goes (C17). Whatever cannot
be had is left out and told.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import anyio
from anyio import to_thread
from attrs import field, frozen

from agent_core.disk import write_atomically
from agent_core.errors import GitFailed
from agent_core.permissions.gitignore import regex_of
from agent_core.ports import Git
from agent_core.settings import Furnishing
from agent_core.worktree import Worktree

INCLUDE = ".worktreeinclude"
_MADE = "agent-ls-made"
_EXCLUDE = "agent-ls-exclude"
_MOST_BYTES = 500_000_000
_SUBMODULE_SECONDS = 60.0


@frozen
class Made:
    """Paths relative to the worktree: links with their target, files with the SHA-256 of their content."""

    links: Mapping[str, str] = field(factory=dict)
    files: Mapping[str, str] = field(factory=dict)

    def unchanged(self, worktree: Path) -> frozenset[str]:
        """Those that are as they were made."""
        links = (path for path, target in self.links.items() if _link(worktree / path) == target)
        files = (path for path, digest in self.files.items() if _digest(worktree / path) == digest)
        return frozenset((*links, *files))


def made(worktree: Worktree) -> Made:
    """Nothing, where nothing was made or it cannot be read."""
    try:
        values = json.loads((worktree.git_dir / _MADE).read_bytes())
        return Made(dict(values["links"]), dict(values["files"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Made()


def take_away(worktree: Worktree) -> None:
    """Before the worktree is removed. Links are unlinked, what they lead to is not touched."""
    for path in made(worktree).unchanged(worktree.path):
        (worktree.path / path).unlink(missing_ok=True)


def environment(worktree: Worktree, *, sparse: bool) -> dict[str, str]:
    """For the commands of the agent: what we made is no untracked file for its git, which else would commit it."""
    count = os.environ.get("GIT_CONFIG_COUNT", "")
    first = int(count) if count.isdecimal() else 0
    values = [("core.excludesFile", str(worktree.git_dir / _EXCLUDE))]
    values += [("core.sparseCheckout", "true"), ("core.sparseCheckoutCone", "true")] if sparse else []
    found = {"GIT_CONFIG_COUNT": str(first + len(values))}
    for number, (name, value) in enumerate(values, first):
        found |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return found


def is_furnished(worktree: Worktree) -> bool:
    return (worktree.git_dir / _EXCLUDE).exists()


async def furnish(git: Git, worktree: Worktree, wanted: Furnishing) -> list[str]:
    """What could not be had, in words."""
    told: list[str] = []
    names = await _included(git, worktree, told.append) if wanted.include else []
    with anyio.CancelScope(shield=True):  # what is made is written down
        links = await to_thread.run_sync(_link_folders, worktree, wanted.linked, told.append)
        files = await to_thread.run_sync(_copy_files, worktree, names, told.append)
        await _write_down(git, worktree, Made(links, files))
    if wanted.submodules:
        told += await _submodules(git, worktree)
    return told


# Linked folders


def _link_folders(worktree: Worktree, folders: Iterable[str], tell: Callable[[str], None]) -> dict[str, str]:
    made: dict[str, str] = {}
    for folder in folders:
        source, target = worktree.repository / folder, worktree.path / folder
        if reason := _why_no_link(worktree, folder, source, target):
            tell(f"worktree.symlinkDirectories: {folder} {reason}")
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(source)
        made[folder] = str(source)
    return made


def _why_no_link(worktree: Worktree, folder: str, source: Path, target: Path) -> str | None:
    if Path(folder).is_absolute() or {"..", ".git"} & set(Path(folder).parts) or not folder.strip("./"):
        return "must be a folder inside the repository"
    if not source.is_dir():
        return "is no folder of the checkout"
    if os.path.lexists(target):
        return "is in the worktree already, since git knows it"
    parents = [parent for parent in target.parents if parent.is_relative_to(worktree.path)]
    return "is behind a link" if any(parent.is_symlink() for parent in parents) else None


# Ignored files


async def _included(git: Git, worktree: Worktree, tell: Callable[[str], None]) -> list[str]:
    """Files that the user's `.worktreeinclude` names and git ignores."""
    top = worktree.repository
    lines = await to_thread.run_sync(_patterns, top / INCLUDE, tell)
    if not lines:
        return []
    patterns = worktree.git_dir / "agent-ls-include"
    patterns.write_text("".join(f"{line}\n" for line in lines), "utf-8", "surrogateescape")
    try:
        listed = await git.run(top, "ls-files", "-z", "--others", "--ignored", f"--exclude-from={patterns}")
        ignored = await git.run(top, "check-ignore", "-z", "--stdin", stdin=listed, ok=(0, 1)) if listed else b""
    except GitFailed as error:
        tell(f"{INCLUDE}: {error}")
        return []
    finally:
        patterns.unlink()
    names = (os.fsdecode(name) for name in ignored.split(b"\0") if name)
    return [name for name in names if not name.endswith("/") and "\n" not in name]


def _patterns(file: Path, tell: Callable[[str], None]) -> list[str]:
    try:
        lines = file.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []
    good = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        if regex_of(line.removeprefix("!"), folders_too=True) is None:
            tell(f"{INCLUDE}:{number}: {line!r} is no pattern; it was passed over")
            continue
        good.append(line)
    return good


def _copy_files(worktree: Worktree, names: Sequence[str], tell: Callable[[str], None]) -> dict[str, str]:
    made: dict[str, str] = {}
    room = _MOST_BYTES
    for name in names:
        source, target = worktree.repository / name, worktree.path / name
        try:
            if source.is_symlink() or not source.is_file() or os.path.lexists(target):
                continue
            room -= source.stat().st_size
            if room < 0:
                tell(f"{INCLUDE}: more than {_MOST_BYTES // 1_000_000} MB; {name} and what follows was left out")
                break
            if not target.parent.resolve().is_relative_to(worktree.path):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            shutil.copymode(source, target)
            made[name] = _digest(target) or ""
        except OSError as error:
            tell(f"{INCLUDE}: {name} could not be copied: {error.strerror}")
    return made


# Submodules


async def _submodules(git: Git, worktree: Worktree) -> list[str]:
    if not (worktree.path / ".gitmodules").exists():
        return []
    try:
        with anyio.fail_after(_SUBMODULE_SECONDS):
            await git.run(worktree.path, "submodule", "--quiet", "update", "--init", "--recursive")
    except TimeoutError:
        return [f"the submodules were not there within {_SUBMODULE_SECONDS:g} s; run `git submodule update --init`"]
    except GitFailed as error:
        return [f"the submodules could not be had: {error}"]
    return []


# The record


async def _write_down(git: Git, worktree: Worktree, new: Made) -> None:
    before = await git.run(worktree.repository, "config", "--path", "--get", "core.excludesFile", ok=(0, 1))
    users = Path(os.fsdecode(before.strip())) if before.strip() else _usual_excludes()
    names = "".join(f"/{_escaped(path)}\n" for path in (*new.links, *new.files))
    try:
        own = users.read_text("utf-8", "surrogateescape")
    except OSError:
        own = ""
    text = f"{own.rstrip()}\n{names}" if own.strip() else names
    (worktree.git_dir / _EXCLUDE).write_text(text, "utf-8", "surrogateescape")
    values = {"links": dict(new.links), "files": dict(new.files)}
    write_atomically(worktree.git_dir / _MADE, json.dumps(values).encode(), mode=0o600)


def _usual_excludes() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
    return Path(home) / "git" / "ignore"


def _escaped(path: str) -> str:
    """As a pattern of git that means this path alone."""
    return "".join(f"\\{char}" if char in "\\*?[!# " else char for char in path)


def _link(path: Path) -> str | None:
    try:
        return str(path.readlink())
    except OSError:
        return None


def _digest(path: Path) -> str | None:
    try:
        if path.is_symlink():
            return None
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None

"""Real repositories for tests. No user or system configuration counts."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

AGENT = "0123456789abcdef"


class Repo:
    """A checkout in a temporary folder; `git(...)` is plain git, run apart from the code under test."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def git(self, *args: str, env: Mapping[str, str] | None = None) -> str:
        command = ["git", "-C", str(self.path), *args]
        done = subprocess.run(command, capture_output=True, env={**os.environ, **(env or {})}, check=False)
        assert done.returncode == 0, (command, done.stderr.decode())
        return done.stdout.decode(errors="surrogateescape").strip()

    def write(self, files: Mapping[str, bytes | str]) -> None:
        for name, data in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data if isinstance(data, bytes) else data.encode())

    def commit(self, files: Mapping[str, bytes | str] | None = None, message: str = "change") -> str:
        self.write(files or {})
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def state(self) -> dict[str, str]:
        """What creating a worktree adds to, and removing takes away."""
        return {
            "worktrees": self.git("worktree", "list", "--porcelain"),
            "branches": self.git("for-each-ref", "--format=%(refname) %(objectname)"),
            "status": self.git("status", "--porcelain", "--ignored"),
        }


def init(path: Path, files: Mapping[str, bytes | str] | None = None) -> Repo:
    """A repository with one commit of `files`; without `files` it has no commit."""
    path.mkdir(parents=True)
    repo = Repo(path)
    repo.git("init", "-q", "-b", "main")
    if files is not None:
        repo.commit(files, "first")
    return repo


@pytest.fixture
def clean_git(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Test")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "test@example.com")


@pytest.fixture
def repo(tmp_path: Path, clean_git: None) -> Repo:
    return init(tmp_path / "project", {"a.txt": "one\ntwo\nthree\n", "src/b.py": "b = 1\n"})

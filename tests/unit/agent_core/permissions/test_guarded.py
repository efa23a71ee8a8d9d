"""Guarded and critical paths: the whole table."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_core.permissions.guarded import critical, guarded

WORK, HOME = Path("/w/project"), Path("/home/me")


@pytest.mark.spec("PM-1")
@pytest.mark.parametrize(
    "path",
    [
        ".git/config", ".GIT/hooks/x", ".config/git/config", ".vscode/tasks.json", ".idea/x", ".husky/pre-commit",
        ".cargo/config.toml", ".devcontainer/x", ".yarn/x", ".mvn/x", ".claude/settings.json", ".claude/agents/a.md",
        ".ssh/config", ".gitconfig", ".gitmodules", ".bashrc", ".zshenv", ".profile", ".envrc", ".npmrc", ".yarnrc",
        ".yarnrc.yml", ".pnp.cjs", ".pnp.loader.mjs", "bunfig.toml", ".bazelrc", ".bazelversion",
        ".pre-commit-config.yaml", "lefthook.yml", ".lefthook-local.yaml", "gradle/wrapper/gradle-wrapper.properties",
        ".mvn/wrapper/maven-wrapper.properties", ".devcontainer.json", ".ripgreprc", "pyrightconfig.json", ".mcp.json",
        ".claude.json", "deep/down/.git/x", ".claude/worktrees/one/.git", ".claude/worktrees/one/.claude/settings.json",
    ],
)  # fmt: skip
def test_guarded(path: str) -> None:
    assert guarded(WORK / path)


@pytest.mark.spec("PM-1")
@pytest.mark.parametrize(
    "path", ["a.py", ".gitignore", ".github/x", "git/config", ".claude/worktrees/one/src/a.py", ".config/x", "npmrc"]
)
def test_free(path: str) -> None:
    assert not guarded(WORK / path)


def test_a_link_into_a_guarded_folder_is_guarded(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "harmless").symlink_to(tmp_path / ".git")
    assert guarded(tmp_path / "harmless" / "x")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", True), ("/etc", True), ("/home/me", True), ("/home", True), ("/w/project", True), ("/w", True),
        ("/w/project/../../w/project", True), ("/mnt/c", True), ("/mnt/c/Users", True), ("/extra/one", True),
        ("/w/project/build", False), ("/home/me/x", False), ("/mnt/c/Users/me", False), ("/etc/nginx", False),
    ],
)  # fmt: skip
def test_critical(path: str, expected: bool) -> None:
    assert critical(Path(path), WORK, HOME, [Path("/extra/one")]) is expected

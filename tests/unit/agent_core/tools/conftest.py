"""A workspace for tool tests: a folder, the real disk, real processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from agent_core.disk import Disk
from agent_core.ids import AgentId
from agent_core.processes import LocalProcesses
from agent_core.tool import Place, ReadFiles, ToolContext


@pytest.fixture
def ctx(tmp_path: Path) -> ToolContext:
    return ToolContext(AgentId("a"), Place(tmp_path), Disk(), LocalProcesses(), ReadFiles())


@pytest.fixture
def isolated(ctx: ToolContext, tmp_path: Path) -> ToolContext:
    """Works in `worktree`; `main` and its git directory are forbidden."""
    for folder in ("main/.git", "main/src", "worktree/src"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "main/src/a.txt").write_text("main\n")
    (tmp_path / "worktree/src/a.txt").write_text("mine\n")
    main, worktree = tmp_path / "main", tmp_path / "worktree"
    return evolve(ctx, place=Place(worktree, worktree, (main, main / ".git")))

"""Review values to wire values."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from agent_core.review import FileChange, Review
from lsp_server import protocol as wire


def review(found: Review, checkout: Path, round: Literal["all", "new"]) -> wire.Review:
    stats = found.stats
    return wire.Review(
        agent_id=found.agent_id,
        round=round,
        base=wire.ReviewBase(found.base_commit, found.branch),
        worktree=str(found.worktree) if found.worktree else None,
        head=found.head,
        files=[_file(found.agent_id, file, checkout) for file in found.files],
        stats=wire.ReviewStats(stats.files, stats.insertions, stats.deletions),
    )


def _file(agent_id: str, file: FileChange, checkout: Path) -> wire.FileChange:
    return wire.FileChange(
        path=file.path,
        old_path=file.old_path,
        status=file.status,
        binary=file.binary,
        uri=(checkout / file.path).as_uri(),
        base_uri=f"agent-base:/{agent_id}/{quote(os.fsencode(file.old_path or file.path))}",
        worktree_uri=f"agent-worktree:/{agent_id}/{quote(os.fsencode(file.path))}",
        hunks=[
            wire.Hunk(h.id, h.old_start, h.old_lines, h.new_start, h.new_lines, h.header, h.text, h.state)
            for h in file.hunks
        ],
        notes=list(file.notes),
        conflict=wire.FileConflict(file.conflict.reason, list(file.conflict.hunks)) if file.conflict else None,
        needs_confirmation=file.needs_confirmation,
    )

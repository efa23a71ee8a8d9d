"""What differs between runs and siblings: told in the first user message, after the shared prefix (CTX-4)."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from datetime import datetime

from agent_core.definitions import BaseKind
from agent_core.events import WorktreeInfo
from agent_core.tool import Place

_STARTS_FROM: Mapping[BaseKind, str] = {
    "head": "It starts from the last commit: what the user has not committed is not in it.",
    "snapshot": "It starts from the user's checkout as it was, with what is not committed and not saved.",
    "fresh": "It starts from the default branch of the remote: what the user has beyond that is not in it.",
}


def environment(place: Place, today: datetime, worktree: WorktreeInfo | None) -> str:
    """Lines of facts inside `<environment>`, for models."""
    lines = [
        f"Working directory: {place.cwd}",
        f"Platform: {platform.system().lower()}",
        f"Date: {today.date().isoformat()}",
    ]
    if worktree and worktree.branch:
        lines.append(f"Git branch: {worktree.branch}")
    if place.worktree:
        lines.append(
            "This is your own worktree. Work only inside it: the user reviews your changes and takes them over. "
            "The user's checkout is elsewhere and must not be written to."
        )
    if worktree and not worktree.by_hook:
        lines.append(starts_from(worktree))
    return "<environment>\n" + "\n".join(lines) + "\n</environment>"


def starts_from(worktree: WorktreeInfo) -> str:
    note = f" Note: {worktree.note}." if worktree.note else ""
    return f"{_STARTS_FROM[worktree.base]}{note}"

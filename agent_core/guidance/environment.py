"""What differs between runs and siblings: told in the first user message, after the shared prefix (CTX-4)."""

from __future__ import annotations

import platform
from datetime import datetime

from agent_core.tool import Place


def environment(place: Place, today: datetime, branch: str | None) -> str:
    """Lines of facts inside `<environment>`, for models."""
    lines = [
        f"Working directory: {place.cwd}",
        f"Platform: {platform.system().lower()}",
        f"Date: {today.date().isoformat()}",
    ]
    if branch:
        lines.append(f"Git branch: {branch}")
    if place.worktree:
        lines.append(
            "This is your own worktree. Work only inside it: the user reviews your changes and takes them over. "
            "The user's checkout is elsewhere and must not be written to."
        )
    return "<environment>\n" + "\n".join(lines) + "\n</environment>"

"""The tools every agent can have, in the order in which the model is told about them (TL-5)."""

from __future__ import annotations

from agent_core.tool import Tool
from agent_core.tools.bash import Bash
from agent_core.tools.edit import Edit
from agent_core.tools.glob import Glob
from agent_core.tools.grep import Grep
from agent_core.tools.read import Read
from agent_core.tools.write import Write


def builtin_tools() -> tuple[Tool, ...]:
    """Alphabetical. They hold no state, so agents may share them."""
    return (Bash(), Edit(), Glob(), Grep(), Read(), Write())

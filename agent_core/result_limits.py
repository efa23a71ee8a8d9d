"""How long what a parent reads of its agents may be: each answer (RES-7), and all that one turn gets (J1). Pure."""

from __future__ import annotations

from collections.abc import Mapping

TELLING = frozenset({"Agent", "SendMessage", "TaskOutput", "TaskStop"})
"""Tools whose results hold what agents said."""

_RESULT, _MOST, _LEAST = 32_000, 160_000, 1_000
"""Characters; TASK_MAX_OUTPUT_LENGTH changes the first, up to the second."""
_FULL = 3
"""So many answers of one turn may have their full length; more of them share that."""


def result_limit(env: Mapping[str, str], together: int = 1) -> int:
    """Of each of the answers that come in one turn."""
    limit = _limit(env)
    return min(limit, max(_LEAST, _FULL * limit // max(together, 1)))


def room_left(env: Mapping[str, str], taken: int) -> int:
    """Of a further answer when so many characters wait for the same turn already."""
    limit = _limit(env)
    return min(limit, max(_LEAST, _FULL * limit - taken))


def _limit(env: Mapping[str, str]) -> int:
    text = env.get("TASK_MAX_OUTPUT_LENGTH", "")
    return min(int(text), _MOST) if text.isdecimal() and int(text) > 0 else _RESULT

"""A rule into the text of a settings file, where everything else stays as it is, to the byte. Pure.

Numbers, key order, the file's own way to break lines and keys that nobody here knows are not written anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from agent_core.json_places import Span, Where, spans
from agent_core.permissions.types import Behavior

_INDENT = "  "


def with_rules(text: str, behavior: Behavior, rules: Sequence[str]) -> str:
    """`text` itself when it has them all. ValueError when it does not hold settings that a rule can be added to."""
    if not text.strip():
        return (
            json.dumps({"permissions": {behavior: list(dict.fromkeys(rules))}}, indent=len(_INDENT), ensure_ascii=False)
            + "\n"
        )
    before = _checked(text, behavior)
    new = [rule for rule in dict.fromkeys(rules) if rule not in before.get("permissions", {}).get(behavior, [])]
    if not new:
        return text
    after = _inserted(text, behavior, new)
    wanted = before.setdefault("permissions", {}).setdefault(behavior, [])
    wanted.extend(new)
    if json.loads(after) != before:
        raise ValueError("a rule cannot be added here without changing something else")
    return after


def _checked(text: str, behavior: Behavior) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    permissions = values.get("permissions", {}) if isinstance(values, dict) else None
    if not isinstance(permissions, dict) or not isinstance(permissions.get(behavior, []), list):
        raise ValueError("it does not hold settings that a rule can be added to")
    return dict(values)


def _inserted(text: str, behavior: Behavior, rules: list[str]) -> str:
    found = spans(text)
    if ("permissions", behavior) in found:
        return _append(text, found, ("permissions", behavior), [_json(rule) for rule in rules])
    listed = f"[{', '.join(_json(rule) for rule in rules)}]"
    if ("permissions",) in found:
        return _append(text, found, ("permissions",), [f'"{behavior}": {listed}'])
    return _append(text, found, (), [f'"permissions": {{"{behavior}": {listed}}}'])


def _append(text: str, found: dict[Where, Span] | Any, where: Where, items: list[str]) -> str:
    """Behind the last item of the array or object at `where`, on lines of their own where that one is."""
    inside = [span for each, span in found.items() if len(each) == len(where) + 1 and each[: len(where)] == where]
    if not inside:
        start = found[where].start + 1
        return text[:start] + ", ".join(items) + text[found[where].end - 1 :]
    last = max(inside, key=lambda span: span.end)
    gap = re.search(r"\s*\Z", text[: last.lead])
    between = gap[0] if gap and gap[0] else " "
    return text[: last.end] + "".join(f",{between}{item}" for item in items) + text[last.end :]


def _json(rule: str) -> str:
    return json.dumps(rule, ensure_ascii=False)

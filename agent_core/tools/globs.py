"""Glob patterns of Glob and Grep. Pure.

`*` and `?` stay within a name, `**` crosses folders, `{a,b}` and `[abc]` are known, names starting with a dot are
ordinary. A pattern without `/` matches the name at any depth, as in .gitignore and ripgrep.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from attrs import frozen

from agent_core.errors import ToolError

_MAX_ALTERNATIVES = 200
_MAGIC = re.compile(r"[*?\[{]")
_SAFE_NAME = re.compile(r"[\w.*?{},+-]+")


@frozen
class GlobPattern:
    """`negated` for patterns that start with `!`."""

    regex: re.Pattern[str]
    negated: bool = False

    def matches(self, *paths: str) -> bool:
        """True when any spelling of the path (relative, with `/`) fits."""
        return any(map(self.regex.fullmatch, paths)) != self.negated


def compile_glob(pattern: str, *, anchored: bool = False) -> GlobPattern:
    """`anchored`: without `/` it matches only at the top. ToolError when it has too many alternatives."""
    negated, body = pattern.startswith("!"), pattern.removeprefix("!").removeprefix("./")
    if body.endswith("/"):
        body += "**"
    source = "|".join(_regex(part, anchored) for part in alternatives(body))
    return GlobPattern(re.compile(source, re.DOTALL), negated)


def literal_folder(pattern: str) -> tuple[str, str]:
    """Split at the last `/` before the first special character: (`src/a/`, `**/*.py`)."""
    magic = _MAGIC.search(pattern)
    cut = pattern.rfind("/", 0, magic.start() if magic else len(pattern)) + 1
    return pattern[:cut], pattern[cut:]


def name_globs(patterns: Iterable[str]) -> tuple[str, ...]:
    """What the last name must match, for a quick first selection; empty when that cannot be said."""
    names = [pattern.rpartition("/")[2] for pattern in patterns]
    usable = all(_SAFE_NAME.fullmatch(name) and name.count("{") == name.count("}") for name in names)
    return tuple(names) if usable and "**" not in names else ()


def alternatives(pattern: str) -> list[str]:
    """Braces worked out, nested ones too."""
    done: list[str] = []
    todo = [pattern]
    while todo:
        if len(done) + len(todo) > _MAX_ALTERNATIVES:
            raise ToolError(f"pattern {pattern!r}: more than {_MAX_ALTERNATIVES} alternatives in braces; use fewer.")
        current = todo.pop()
        inner = re.search(r"\{([^{}]*,[^{}]*)\}", current)
        if inner is None:
            done.append(current)
        else:
            todo += [current[: inner.start()] + part + current[inner.end() :] for part in inner[1].split(",")]
    return done


def _regex(pattern: str, anchored: bool) -> str:
    out = "" if anchored or "/" in pattern else "(?:.*/)?"
    parts = pattern.removeprefix("/").split("/")
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part == "**":
            out += ".*" if last else "(?:.*/)?"
        else:
            out += _segment(part) + ("" if last else "/")
    return out


def _segment(part: str) -> str:
    out, at = "", 0
    while at < len(part):
        end = part.find("]", at + 2) if part[at] == "[" else -1
        if end > 0:
            out += _character_class(part[at + 1 : end])
            at = end
        else:
            out += {"*": "[^/]*", "?": "[^/]"}.get(part[at], re.escape(part[at]))
        at += 1
    return out


def _character_class(body: str) -> str:
    negated, body = body[0] in "!^", body.lstrip("!^") if body[0] in "!^" else body
    escaped = re.sub(r"[\\\[\]^&~|]", lambda found: "\\" + found[0], body)
    text = f"(?!/)[{'^' if negated else ''}{escaped}]"
    try:
        re.compile(text)
    except re.error as error:
        raise ToolError(f"pattern: [{body}] is not a set of characters ({error}).") from None
    return text

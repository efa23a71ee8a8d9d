"""One gitignore line to a regular expression, as git's wildmatch reads it; git itself is the oracle of its tests. Pure.

A library for this exists, but takes a few patterns for wider, and others for narrower, than git does: the one would
allow too much, the other deny too little.
"""

from __future__ import annotations

import re

_CLASSES = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "blank": r" \t", "digit": "0-9", "lower": "a-z", "space": r"\s",
    "upper": "A-Z", "xdigit": "a-fA-F0-9", "punct": r"!-/:-@\[-`{-~",
}  # fmt: skip


def regex_of(line: str, *, folders_too: bool) -> str | None:
    """Matches whole paths relative to the line's folder ("" is that folder). `folders_too`: `dir/` means the folder
    itself as well, not only what is in it. None for what is no pattern: empty, a comment, a negation, a broken one."""
    line = re.sub(r"((?:\\.|[^\\])*?) +\Z", r"\1", line, flags=re.DOTALL) if line.endswith(" ") else line
    if not line or line[0] in "#!":
        return None
    only_folders = line.endswith("/")
    body = line.removesuffix("/")
    anchored = "/" in body
    body = body.removeprefix("/")
    if not body or any(part in (".", "..", "") for part in body.split("/")):
        return None  # git never has such a path
    found = _translated(body)
    if found is None:
        return None
    inside = "/.*" if only_folders and not folders_too else "(?:/.*)?"
    return f"{'' if anchored else '(?:.*/)?'}{found}{inside}\\Z"


def _translated(body: str) -> str | None:
    out, at = [], 0
    while at < len(body):
        char = body[at]
        if char == "*":
            end = len(body) - len(body[at:].lstrip("*"))
            part, at = _stars(body, at, end)
        elif char == "?":
            part, at = "[^/]", at + 1
        elif char == "[":
            if (found := _bracket(body, at + 1)) is None:
                return None
            part, at = found
        elif char == "\\":
            if at + 1 == len(body):
                return None
            part, at = re.escape(body[at + 1]), at + 2
        else:
            part, at = re.escape(char), at + 1
        out.append(part)
    return "".join(out)


def _stars(body: str, at: int, end: int) -> tuple[str, int]:
    """Two and more that fill a part of the path mean any number of folders."""
    alone = (at == 0 or body[at - 1] == "/") and (end == len(body) or body[end] == "/")
    if end - at == 1 or not alone:
        return "[^/]*", end
    return (".*", end) if end == len(body) else ("(?:.*/)?", end + 1)


def _bracket(body: str, at: int) -> tuple[str, int] | None:
    """From behind `[`. It never matches a slash."""
    negated = body[at : at + 1] in ("!", "^")
    at += negated
    items, first = [], True
    while at < len(body) and (first or body[at] != "]"):
        first = False
        if body.startswith("[:", at) and (end := body.find(":]", at)) > 0:
            if (known := _CLASSES.get(body[at + 2 : end])) is None:
                return None
            items.append(known)
            at = end + 2
            continue
        low, at = _one(body, at)
        if body[at : at + 1] == "-" and body[at + 1 : at + 2] not in ("", "]"):
            high, at = _one(body, at + 1)
            if low <= high:
                items.append(f"{re.escape(low)}-{re.escape(high)}")
        else:
            items.append(re.escape(low))
    if at >= len(body):
        return None
    if not items:
        return ("[^/]" if negated else r"(?!)"), at + 1
    return f"(?!/)[{'^' if negated else ''}{''.join(items)}]", at + 1


def _one(body: str, at: int) -> tuple[str, int]:
    if body[at] == "\\" and at + 1 < len(body):
        return body[at + 1], at + 2
    return body[at], at + 1

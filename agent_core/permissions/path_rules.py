"""Path patterns of rules, in gitignore syntax with four anchors. Pure, apart from resolving symlinks.

//p    the root of the file system            ~/p   the home folder
/p     the folder of the settings' source     p     the working folder, at any depth where gitignore says so
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Literal

from attrs import define, field, frozen

from agent_core.permissions.gitignore import regex_of
from agent_core.permissions.types import Behavior, PermissionRule

Start = Literal["root", "home", "anchor", "base"]


@frozen
class MatchContext:
    """`bases` are the folders that relative patterns are tried in, the agent's working directory first. `ignore_case`
    is for disks where `A` is `a`: there restrictions hold in any spelling."""

    bases: tuple[Path, ...]
    home: Path
    ignore_case: bool = False


def specifier_of(path: Path) -> str | None:
    """Of a rule that matches this path and no other; None for a name that ends with a space, which patterns lose:
    `/folder/ ` would speak of everything in the folder."""
    text = str(path)
    return None if text.endswith(" ") else "/" + re.sub(r"([\\*?\[\]!#])", r"\\\1", text)


@frozen
class Pattern:
    """`part` stands in every path that matches."""

    start: Start
    regex: re.Pattern[str]
    part: str


@frozen
class Below:
    """`text`: all of the paths, to look for a part of them at once."""

    paths: tuple[str, ...]
    text: str


@define(eq=False)
class Places:
    """The paths of one call, and where they lie below the folders that patterns start in: worked out once, for hundreds
    of rules."""

    paths: tuple[Path, ...]
    _pairs: tuple[tuple[str, str], ...] | None = None
    _known: dict[tuple[Start, bool, Path | None], Below] = field(factory=dict)

    def below(self, start: Start, rule: PermissionRule, ctx: MatchContext) -> Below:
        """Of every path its spelling and its target, relative. An allow rule gets none when not all are inside."""
        allows = rule.behavior == "allow"
        key = (start, allows, rule.anchor if start == "anchor" else None)
        found = self._known.get(key)
        if found is None:
            every = [self._below(base) for base in _bases(start, rule, ctx)]
            inside = dict.fromkeys(rel for each in every for rel in each if rel is not None)
            paths = () if allows and None in every[0] else tuple(inside)
            self._known[key] = found = Below(paths, "\n".join(paths))
        return found

    def _below(self, base: Path) -> list[str | None]:
        if self._pairs is None:
            self._pairs = tuple((os.path.normpath(path), os.path.realpath(path)) for path in self.paths)
        roots = tuple(dict.fromkeys((os.path.normpath(base), os.path.realpath(base))))
        return [_relative(each, roots) for pair in self._pairs for each in pair]


def understood(specifier: str, behavior: Behavior) -> bool:
    """Comments, negations and broken patterns are valid gitignore lines that match nothing, or the opposite."""
    return compiled(specifier, behavior, False) is not None


def matches(rule: PermissionRule, places: Places, ctx: MatchContext) -> bool | None:
    """An allow needs all paths, by link and by target; a deny or an ask hits on any of them. None: not understood."""
    behavior = rule.behavior
    pattern = compiled(rule.specifier or "", behavior, ctx.ignore_case and behavior != "allow")
    if pattern is None:
        return None
    below = places.below(pattern.start, rule, ctx)
    if pattern.part not in below.text or not below.paths:
        return False
    hit = pattern.regex.match
    return all(map(hit, below.paths)) if behavior == "allow" else any(map(hit, below.paths))


def _bases(start: Start, rule: PermissionRule, ctx: MatchContext) -> Iterator[Path]:
    """Restrictions of the main checkout hold in every folder that the agent works in; what is allowed does not."""
    if start == "root":
        yield Path("/")
    elif start == "home":
        yield ctx.home
    elif rule.behavior != "allow":
        anchor = (rule.anchor,) if start == "anchor" and rule.anchor else ()
        yield from dict.fromkeys((*anchor, *ctx.bases))
    else:
        yield (rule.anchor if start == "anchor" else None) or ctx.bases[0]


@lru_cache(maxsize=256)
def ignores_case(folder: Path) -> bool:
    """Whether the disk of `folder` takes its name in other letters for the same."""
    other = folder.with_name(folder.name.swapcase()) if folder.name else folder
    if other == folder:
        return ignores_case(folder.parent) if folder.parent != folder else False
    try:
        return other.samefile(folder)
    except OSError:
        return False


@lru_cache(maxsize=16_384)
def compiled(specifier: str, behavior: Behavior, ignore_case: bool) -> Pattern | None:
    """Once for each text, so that a decision among hundreds of rules compiles nothing."""
    start, line = _line(specifier, behavior)
    try:
        text = regex_of(line, folders_too=behavior != "allow")
        regex = re.compile(text, re.DOTALL | (re.IGNORECASE if ignore_case else 0)) if text else None
    except re.error:
        return None
    return Pattern(start, regex, "" if ignore_case else _part(line)) if regex else None


def _part(line: str) -> str:
    """The longest piece of a gitignore line that stands for itself."""
    return "" if re.search(r"[\[\\]", line) else max(re.split(r"[*?/ ]", line), key=len)


def _line(specifier: str, behavior: Behavior) -> tuple[Start, str]:
    """`dir/**` allows in the working folder alone and restricts at any depth."""
    if specifier.startswith("//"):
        return "root", specifier[1:]
    if specifier.startswith("~/"):
        return "home", specifier[1:]
    if specifier.startswith("/"):
        return "anchor", specifier
    relative = specifier.removeprefix("./")
    folder = re.fullmatch(r"[^/]+/\*\*", relative) is not None
    if behavior == "allow":
        return "base", f"/{relative}" if folder or relative != specifier else relative
    return "base", f"**/{relative}" if folder else relative


def _relative(path: str, roots: tuple[str, ...]) -> str | None:
    for root in roots:
        if path == root:
            return ""
        if path.startswith(root if root.endswith("/") else f"{root}/"):
            return path[len(root) :].lstrip("/")
    return None

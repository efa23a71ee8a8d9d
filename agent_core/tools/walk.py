"""A small stand-in for ripgrep, run as a program of its own when `rg` is not installed.

    python walk.py '{"mode": "files" | "list" | "count" | "lines", ...}' ROOT

A process rather than a thread, because one regular expression can take for ever and Python's engine cannot be
interrupted. It prints what `rg --null` prints, skips what rg skips (.git, symlinks, files ignored by git's own rules,
binary files) and exits 0, or 2 with a message for a bad pattern. Imports nothing of this package.
"""

from __future__ import annotations

import codecs
import fnmatch
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pathspec import GitIgnoreSpec

Rules = list[tuple[str, GitIgnoreSpec]]  # (folder, its rules), the nearest last

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def main(arguments: list[str]) -> int:
    options, root = json.loads(arguments[0]), arguments[1]
    try:
        pattern = _compile(options) if options["mode"] != "files" else None
    except re.error as error:
        sys.stdout.write(f"regex parse error: {error}\n")
        return 2
    for path in _files(root):
        if not options["names"] or any(fnmatch.fnmatchcase(Path(path).name, name) for name in options["names"]):
            sys.stdout.write(f"{path}\0" if pattern is None else _report(path, pattern, options))
    return 0


def _compile(options: dict[str, Any]) -> re.Pattern[str]:
    flags = (re.IGNORECASE if options["ignore_case"] else 0) | re.MULTILINE
    return re.compile(options["pattern"], flags | (re.DOTALL if options["multiline"] else 0))


def _files(root: str) -> Iterator[str]:
    if Path(root).is_file():
        yield root
        return
    absolute = str(Path(root).absolute())
    yield from _walk(root, absolute, _outer_rules(absolute))


def _walk(folder: str, absolute: str, rules: Rules) -> Iterator[str]:
    rules = [*rules, *_rules_file(absolute, Path(absolute, ".gitignore"))]
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        inner = f"{absolute.rstrip('/')}/{entry.name}"
        if entry.name == ".git" or entry.is_symlink() or _ignored(inner, is_folder, rules):
            continue
        if is_folder:
            yield from _walk(entry.path, inner, rules)
        elif entry.is_file():
            yield entry.path


def _ignored(path: str, is_folder: bool, rules: Rules) -> bool:
    for folder, spec in reversed(rules):
        name = path[len(folder.rstrip("/")) + 1 :] + ("/" if is_folder else "")
        verdict = spec.check_file(name).include
        if verdict is not None:
            return verdict
    return False


def _outer_rules(root: str) -> Rules:
    """Rules of the folders above, up to the top of the repository; none when they ignore `root`: it was asked for."""
    rules: Rules = []
    for folder in (Path(root), *Path(root).parents):
        if folder != Path(root):
            rules = _rules_file(str(folder), folder / ".gitignore") + rules
        if (folder / ".git").exists():
            rules = _rules_file(str(folder), _git_folder(folder / ".git") / "info" / "exclude") + rules
            break
    ancestors = (root, *map(str, Path(root).parents))
    asked_for = any(
        _ignored(path, True, [rule])
        for rule in rules
        for path in ancestors
        if len(path) > len(rule[0]) and path.startswith(rule[0])
    )
    return [] if asked_for else rules


def _git_folder(entry: Path) -> Path:
    """The folder shared by all worktrees, where info/exclude is."""
    if entry.is_dir():
        return entry
    try:
        own = Path(entry.parent, entry.read_text().partition("gitdir:")[2].strip())
        return own / (own / "commondir").read_text().strip()
    except OSError:
        return entry


def _rules_file(folder: str, path: Path) -> Rules:
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [(folder, GitIgnoreSpec.from_lines(line for line in lines if _valid(line)))]


def _valid(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def _report(path: str, pattern: re.Pattern[str], options: dict[str, Any]) -> str:
    text = _text(path)
    if text is None:
        return ""
    if options["mode"] == "list":
        return f"{path}\0" if next(_matches(pattern, text, options), None) else ""
    spans = list(_matches(pattern, text, options))
    if options["mode"] == "count":
        return f"{path}\0{len(spans)}\n" if spans else ""
    return "".join(_lines(path, text, spans, options))


def _text(path: str) -> str | None:
    """None for binary files."""
    try:
        data = Path(path).read_bytes()
    except OSError:
        return None
    mark = next(((bom, name) for bom, name in _BOMS if data.startswith(bom)), None)
    if mark is None and b"\0" in data[:65536]:
        return None
    text = data.decode("utf-8", "replace") if mark is None else data[len(mark[0]) :].decode(mark[1], "replace")
    return text.replace("\r\n", "\n")


def _matches(pattern: re.Pattern[str], text: str, options: dict[str, Any]) -> Iterator[tuple[int, int]]:
    """(first, last) line of each match, from 0; without `multiline` at most one for each line."""
    if options["multiline"]:
        for match in pattern.finditer(text):
            yield text.count("\n", 0, match.start()), text.count("\n", 0, max(match.start(), match.end() - 1))
        return
    for number, line in enumerate(_split(text)):
        if pattern.search(line):
            yield number, number


def _split(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _lines(path: str, text: str, spans: list[tuple[int, int]], options: dict[str, Any]) -> Iterator[str]:
    lines = _split(text)
    hits = {number for first, last in spans for number in range(first, min(last + 1, len(lines)))}
    shown = {near for hit in hits for near in range(hit - options["before"], hit + options["after"] + 1)}
    for number in sorted(shown & set(range(len(lines)))):
        yield f"{path}\0{number + 1}{':' if number in hits else '-'}{lines[number]}\n"


if __name__ == "__main__":
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(encoding="utf-8", errors="replace", newline="\n")
    raise SystemExit(main(sys.argv[1:]))

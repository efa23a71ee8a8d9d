"""Rules that answers add: for the session in memory, for longer in a settings file that is read back (PM-5, B2)."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import define, field

from agent_core.disk import replace_if_unchanged, write_atomically
from agent_core.errors import ToolError
from agent_core.permissions.rule_writing import with_rules
from agent_core.permissions.rules import parse_rule
from agent_core.permissions.types import Behavior, PermissionOption, PermissionRule

SOURCE = "this session"
_ATTEMPTS = 100
_BOM = "\ufeff"


@define
class SessionGrants:
    """The rules of one conversation; every agent of it, at any depth, is judged by them (A12). They live as long as it
    does, over restarts: in `path`."""

    path: Path
    _rules: list[PermissionRule] = field(factory=list)
    _anchors: list[Path] = field(factory=list)

    @classmethod
    def load(cls, path: Path) -> SessionGrants:
        """What cannot be read grants nothing."""
        grants = cls(path)
        try:
            entries = json.loads(path.read_text("utf-8"))
            for behavior, text, anchor in entries if isinstance(entries, list) else ():
                if behavior in ("allow", "deny"):
                    grants._take(parse_rule(str(text), behavior, SOURCE, Path(anchor)), Path(anchor))
        except (OSError, ValueError, TypeError):
            return cls(path)
        return grants

    @property
    def rules(self) -> tuple[PermissionRule, ...]:
        return tuple(self._rules)

    def add(self, option: PermissionOption, anchor: Path) -> None:
        for text in option.rules:
            self._take(parse_rule(text, _behavior(option), SOURCE, anchor), anchor)

    def save(self) -> None:
        """OSError when that cannot be done."""
        entries = zip(self._rules, self._anchors, strict=True)
        data = json.dumps([[rule.behavior, rule.text, str(anchor)] for rule, anchor in entries])
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(self.path, data.encode("utf-8", "surrogatepass"), mode=0o600)

    def _take(self, rule: PermissionRule | None, anchor: Path) -> None:
        if rule is not None and rule not in self._rules:
            self._rules.append(rule)
            self._anchors.append(anchor)


def store_rules(path: Path, option: PermissionOption) -> None:
    """Add the rules of an answer to a settings file and change nothing else in it; a link stays one.

    OSError or ValueError when that cannot be done. A lock on the folder keeps concurrent writers from losing each
    other's rules, and leaves no file behind; what others write without that lock is seen before it would be lost.
    """
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.parent):
        for _ in range(_ATTEMPTS):
            if _added(target, _behavior(option), option.rules):
                return
    raise OSError(errno.EAGAIN, "The file is changed again and again by another program", str(path))


def _behavior(option: PermissionOption) -> Behavior:
    return "allow" if option.kind.allows else "deny"


def _added(path: Path, behavior: Behavior, rules: Sequence[str]) -> bool:
    """False when the file was changed between reading and writing."""
    text = _read(path)
    bom = _BOM if (text or "").startswith(_BOM) else ""
    try:
        after = bom + with_rules((text or "").removeprefix(_BOM), behavior, rules)
    except ValueError as error:
        raise ValueError(f"{path}: {error}; the file was left as it is") from error
    if after == text:
        return True
    try:
        replace_if_unchanged(path, after.encode(), None if text is None else text.encode())
    except ToolError:
        return False
    return True


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None

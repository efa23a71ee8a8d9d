"""What must hold in the scripted demo. Every method raises DemoFailed, with one line for a person, when it does not."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field

from lsp_server.demo.project import BEFORE, CHANGES, TEST_COMMAND, TRACE, snapshot, test_passes


class DemoFailed(Exception):
    """The demo did not go as it should; the text is one line."""


@define
class Checks:
    """`folder` is the user's checkout."""

    folder: Path
    _start: Mapping[str, bytes] = field(factory=dict)
    _asked: list[str] = field(factory=list)
    _allowed: bool = False
    _ended_tools: set[str] = field(factory=set)
    _worktree: Path | None = None
    _reviewed: dict[str, bytes | None] = field(factory=dict)

    async def before(self) -> None:
        self._start = snapshot(self.folder)
        if await asyncio.to_thread(test_passes, self.folder):
            raise DemoFailed("the project's test passes before anything was changed")

    def saw(self, event: Mapping[str, Any]) -> None:
        if event["kind"] == "toolUpdate":
            self._ended_tools.add(event["toolCallId"])

    async def before_answer(self, params: Mapping[str, Any]) -> None:
        """Gives a command that runs without an answer the time to betray itself."""
        command = (params.get("detail") or {}).get("command")
        if params["tool"]["name"] != "Bash" or command != TEST_COMMAND:
            raise DemoFailed(f"asked for {params['title']!r}, expected only the command {TEST_COMMAND!r}")
        self._asked.append(command)
        place = Path(params["detail"]["cwd"])
        if place.resolve().is_relative_to(self.folder.resolve()):
            raise DemoFailed(f"the command would run in the user's checkout, not in a worktree: {place}")
        await asyncio.sleep(0.3)
        if params["tool"]["useId"] in self._ended_tools or (place / TRACE).exists():
            raise DemoFailed("the command ran before it was allowed")

    def answered(self, kind: str) -> None:
        self._allowed = kind.startswith("allow")

    def ended(self, agent: Mapping[str, Any]) -> None:
        if agent["status"] != "completed":
            raise DemoFailed(f"the agent ended as {agent['status']}: {agent.get('error') or agent.get('stopReason')}")
        if self._asked != [TEST_COMMAND]:
            raise DemoFailed(f"the test command was asked for {len(self._asked)} times, expected once")
        if "worktree" not in agent:
            raise DemoFailed("the agent has no worktree")
        self._worktree = Path(agent["worktree"]["path"])
        if (self._worktree / TRACE).exists() != self._allowed:
            done, wish = ("ran", "rejected") if not self._allowed else ("did not run", "allowed")
            raise DemoFailed(f"the command {done} although it was {wish}")
        self._unchanged("before anything was applied")

    def review(self, files: Sequence[Mapping[str, Any]]) -> None:
        listed = sorted((change["path"], change["status"]) for change in files)
        expected = sorted((path, status) for path, (status, _) in CHANGES.items())
        if listed != expected:
            raise DemoFailed(f"the review lists {listed}, expected {expected}")
        assert self._worktree
        for path, (_, content) in CHANGES.items():
            there = self._worktree / path
            self._reviewed[path] = there.read_bytes() if there.is_file() else None
            if self._reviewed[path] != (None if content is None else content.encode()):
                raise DemoFailed(f"{path} in the agent's worktree is not what the model wrote")
        self._unchanged("by looking at the review")

    def applied(self, paths: Sequence[str]) -> None:
        """`paths`: all that were applied so far. Those are as reviewed, everything else is as it was."""
        wanted = dict(self._start)
        for path in paths:
            content = self._reviewed[path]
            if content is None:
                wanted.pop(path)
            else:
                wanted[path] = content
        _compare(wanted, snapshot(self.folder), "after the apply")

    async def after(self, paths: Sequence[str]) -> None:
        self.applied(paths)
        whole = set(paths) == set(CHANGES)
        if whole and not await asyncio.to_thread(test_passes, self.folder):
            raise DemoFailed("the project's test still fails in the user's checkout")
        if whole and sorted(path for path in snapshot(self.folder) if path != "HEAD") != _expected_files():
            raise DemoFailed("the user's checkout holds files that do not belong there")

    def _unchanged(self, when: str) -> None:
        _compare(self._start, snapshot(self.folder), when)


def _expected_files() -> list[str]:
    gone = {path for path, (_, content) in CHANGES.items() if content is None}
    return sorted((set(BEFORE) | set(CHANGES)) - gone)


def _compare(wanted: Mapping[str, bytes], found: Mapping[str, bytes], when: str) -> None:
    wrong = sorted(path for path in {*wanted, *found} if wanted.get(path) != found.get(path))
    if wrong:
        raise DemoFailed(f"the user's checkout is not as it should be {when}: {', '.join(wrong)}")

"""What must hold in the scripted demo. Every method raises DemoFailed, with one line for a person, when it does not."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field

from lsp_server.demo.project import BEFORE, CHANGES, REMOVE_COMMAND, TEST_COMMAND, has_run, snapshot, test_passes


class DemoFailed(Exception):
    """The demo did not go as it should; the text is one line."""


@define
class Checks:
    """`folder` is the user's checkout."""

    folder: Path
    _start: Mapping[str, bytes] = field(factory=dict)
    _answers: list[tuple[str, bool]] = field(factory=list)  # command, allowed
    _changes: dict[str, tuple[str, str | None]] = field(factory=lambda: dict(CHANGES))
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
        if params["tool"]["name"] != "Bash" or command not in (TEST_COMMAND, REMOVE_COMMAND):
            raise DemoFailed(f"asked for {params['title']!r}, expected only the command {TEST_COMMAND!r}")
        place = Path(params["detail"]["cwd"])
        if place.resolve().is_relative_to(self.folder.resolve()):
            raise DemoFailed(f"the command would run in the user's checkout, not in a worktree: {place}")
        await asyncio.sleep(0.3)
        if params["tool"]["useId"] in self._ended_tools or has_run(command, place):
            raise DemoFailed("the command ran before it was allowed")

    def answered(self, params: Mapping[str, Any], kind: str) -> None:
        command, allowed = params["detail"]["command"], kind.startswith("allow")
        self._answers.append((command, allowed))
        if command == REMOVE_COMMAND and not allowed:
            del self._changes["shop/old_rounding.py"]

    def ended(self, agent: Mapping[str, Any]) -> None:
        if agent["status"] != "completed":
            raise DemoFailed(f"the agent ended as {agent['status']}: {agent.get('error') or agent.get('stopReason')}")
        asked = [command for command, _ in self._answers].count(TEST_COMMAND)
        if asked != 1:
            raise DemoFailed(f"the test command was asked for {asked} times, expected once")
        if "worktree" not in agent:
            raise DemoFailed("the agent has no worktree")
        self._worktree = Path(agent["worktree"]["path"])
        for command, allowed in self._answers:
            if has_run(command, self._worktree) != allowed:
                done, wish = ("did not run", "allowed") if allowed else ("ran", "rejected")
                raise DemoFailed(f"the command {command!r} {done} although it was {wish}")
        self._unchanged("before anything was applied")

    def review(self, files: Sequence[Mapping[str, Any]]) -> None:
        listed = sorted((change["path"], change["status"]) for change in files)
        expected = sorted((path, status) for path, (status, _) in self._changes.items())
        if listed != expected:
            raise DemoFailed(f"the review lists {listed}, expected {expected}")
        assert self._worktree
        for path, (_, content) in self._changes.items():
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
        whole = set(paths) == set(self._changes)
        if whole and not await asyncio.to_thread(test_passes, self.folder):
            raise DemoFailed("the project's test still fails in the user's checkout")
        if whole and sorted(snapshot(self.folder)) != self._expected_files():
            raise DemoFailed("the user's checkout holds files that do not belong there")

    def _expected_files(self) -> list[str]:
        gone = {path for path, (_, content) in self._changes.items() if content is None}
        return sorted({"HEAD", *BEFORE, *self._changes} - gone)

    def _unchanged(self, when: str) -> None:
        _compare(self._start, snapshot(self.folder), when)


def _compare(wanted: Mapping[str, bytes], found: Mapping[str, bytes], when: str) -> None:
    wrong = sorted(path for path in {*wanted, *found} if wanted.get(path) != found.get(path))
    if wrong:
        raise DemoFailed(f"the user's checkout is not as it should be {when}: {', '.join(wrong)}")

"""Worktrees whose files are still being written: an agent begins at once, its first call that needs files waits.

Registering a worktree takes git some milliseconds, checking it out as long as there are files. Until that is done no
agent has seen the folder, so that one whose agent ends before is taken back whole.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import anyio
from anyio.abc import TaskGroup
from attrs import define, field

from agent_core.errors import WorktreeFailed
from agent_core.furnishing import furnish
from agent_core.ports import Git
from agent_core.repository import Repository, require_checkout, with_commit
from agent_core.settings import Furnishing
from agent_core.worktree import Registered, Worktree, fill, fill_rest, is_unfinished, is_untouched

logger = logging.getLogger(__name__)

_FRESH_SECONDS = 2.0
"""What was read of a repository for the launch of an agent is good for its start; HEAD is read anew."""


_MOMENT_SECONDS = 1.0


@define(eq=False)
class _Checkout:
    worktree: Worktree
    registered: Registered | None
    furnishing: Furnishing | None = None
    tell: Callable[[list[str]], None] = lambda faults: None
    scope: anyio.CancelScope = field(factory=anyio.CancelScope)
    done: anyio.Event = field(factory=anyio.Event)
    failed: str | None = None


@define(eq=False)
class Checkouts:
    """`group` is the runtime's own, so that a checkout outlives the agent's turn."""

    git: Git
    group: TaskGroup
    _open: dict[Path, _Checkout] = field(factory=dict)
    _known: dict[Path, tuple[float, Repository]] = field(factory=dict)

    async def repository(self, cwd: Path, *, unborn: bool = False) -> Repository:
        """The one that an isolated agent can start from; `unborn`: also one without a commit. WorktreeFailed says what
        is in the way."""
        read, known = self._known.get(cwd, (0.0, None))
        if known is None or anyio.current_time() - read > _FRESH_SECONDS or known.head is None:
            known = await require_checkout(self.git, cwd)
            self._known[cwd] = (anyio.current_time(), known)
        return known if unborn else with_commit(known)

    def begin(
        self,
        worktree: Worktree,
        registered: Registered | None = None,
        furnishing: Furnishing | None = None,
        tell: Callable[[list[str]], None] = lambda faults: None,
    ) -> None:
        """Without `registered`, which knows how to take it back: of an earlier process. `tell` is called when something
        of the furnishing could not be had."""
        checkout = _Checkout(worktree, registered, furnishing, tell)
        self._open[worktree.path] = checkout
        self.group.start_soon(self._fill, checkout)

    def go_on(self, worktree: Worktree) -> None:
        """With one that an earlier process did not finish."""
        if worktree.path not in self._open and is_unfinished(worktree):
            self.begin(worktree)

    def is_waiting(self, path: Path | None) -> bool:
        return path in self._open

    async def ready(self, path: Path | None) -> None:
        """WorktreeFailed when git could not write the files: nothing runs without them, nor elsewhere (C7)."""
        checkout = self._open.get(path) if path else None
        if checkout is not None:
            await checkout.done.wait()
            if checkout.failed is not None:
                raise WorktreeFailed(checkout.failed)

    async def take_back(self, path: Path) -> bool:
        """Remove a worktree that is not finished, with its branch. False when it is finished, which takes a moment
        where files are few, and when somebody has written there meanwhile: then it is finished, and as any other."""
        checkout = self._open.get(path)
        if checkout is None or checkout.registered is None:
            return False
        with anyio.move_on_after(_MOMENT_SECONDS):
            await checkout.done.wait()
        checkout.scope.cancel()
        await checkout.done.wait()
        if self._open.pop(path, None) is None:
            return False
        try:  # cut off here, a further run finishes it (`go_on`)
            if untouched := await is_untouched(self.git, checkout.worktree):
                await checkout.registered.undo(self.git)
            else:
                await fill_rest(self.git, checkout.worktree)
            return untouched
        finally:
            checkout.registered.claim.close()

    async def _fill(self, checkout: _Checkout) -> None:
        try:
            with checkout.scope:
                if checkout.registered is None:
                    await fill_rest(self.git, checkout.worktree)
                else:
                    await fill(self.git, checkout.worktree, checkout.furnishing.sparse if checkout.furnishing else ())
                if checkout.furnishing and (faults := await furnish(self.git, checkout.worktree, checkout.furnishing)):
                    checkout.tell(faults)
                self._forget(checkout)
        except (WorktreeFailed, OSError) as error:
            checkout.failed = f"the files of the worktree {checkout.worktree.path} could not be written: {error}"
            logger.warning("%s", checkout.failed)
        finally:
            checkout.done.set()

    def _forget(self, checkout: _Checkout) -> None:
        self._open.pop(checkout.worktree.path, None)
        if checkout.registered is not None:
            checkout.registered.claim.close()

"""Siblings that are launched together do not all pay for the same new prefix (FK-9).

A cache entry is readable only once the answer that writes it has begun. So of all that are about to send the same new
prefix one goes first, and the others are held until its first byte, its end, or `staggerMs`, whichever comes first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

import anyio
from attrs import define, field

from agent_core.model.prompt import Json, Prompt
from agent_core.ports import Clock

FRESH_SECONDS = 240.0
"""A prefix that was sent that recently is cached still; the service keeps it for 300."""
WORTH_BYTES = 4096
"""About 1,000 tokens. Of less no model caches tools and system prompt, and a fork saves too little for its wait."""


@define(eq=False)
class Turn:
    """`begun` is called at the first byte of the answer; `over` at its end, whatever happened."""

    begun: Callable[[], None]
    over: Callable[[], None]


_FREE = Turn(lambda: None, lambda: None)


@define(eq=False)
class Stagger:
    """One for all agents. Holds nobody whose prefix is cached, short, or his alone."""

    clock: Clock
    _first: dict[str, anyio.Event] = field(factory=dict)
    _warm: dict[str, float] = field(factory=dict)

    async def turn(self, key: str | None, hold_ms: int) -> Turn:
        """Wait until the request may be sent."""
        if key is None or not hold_ms or self._cached(key):
            return _FREE
        if (first := self._first.get(key)) is not None:
            with anyio.move_on_after(hold_ms / 1000):
                await first.wait()
            return _FREE
        self._first[key] = first = anyio.Event()
        return Turn(lambda: self._begun(key, first), lambda: self._over(key, first))

    def _cached(self, key: str) -> bool:
        now = self.clock.monotonic()
        self._warm = {each: at for each, at in self._warm.items() if now - at < FRESH_SECONDS}
        return key in self._warm

    def _begun(self, key: str, first: anyio.Event) -> None:
        self._warm[key] = self.clock.monotonic()
        self._over(key, first)

    def _over(self, key: str, first: anyio.Event) -> None:
        first.set()
        if self._first.get(key) is first:
            del self._first[key]


def new_prefix(model: str, prompt: Prompt, *, fork: bool) -> str | None:
    """What names the prefix that an agent's first request shares with its siblings beyond what is cached already: for
    a fork its parent's last turn and what it has of the answer to that, else tools and system prompt. None when it is
    too short to be worth a wait."""
    if not fork:
        parts = [*prompt.tools, *prompt.system]
    elif prompt.shared is not None:
        parts = _shared_turn(prompt, *prompt.shared)
    else:
        return None
    data = json.dumps(parts, sort_keys=True).encode("utf-8", "surrogatepass")
    if len(data) < WORTH_BYTES:
        return None
    head = f"{model}\0{len(prompt.messages) if fork else 'named'}\0".encode()
    return hashlib.sha256(head + data).hexdigest()


def _shared_turn(prompt: Prompt, index: int, block: int) -> list[Json]:
    return [*prompt.messages[index - 1 : index], *prompt.messages[index]["content"][: block + 1]]

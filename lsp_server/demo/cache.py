"""The service's prompt cache, simulated by the documented rules. Pure apart from its own table; time is passed in.

- A hit needs an identical prefix up to a breakpoint, and the same model.
- Writes happen only at breakpoints; a read looks at a breakpoint's position and the 19 before it.
- An entry lives 5 minutes or an hour from the start of the last request that wrote or read it; a read also renews the
  request's breakpoints before it, whose content it used.
- An entry is readable only once the answer that wrote it has begun (`Lookup.begin`).
- Below a model's minimum nothing is cached, silently.
- `tool_choice`, thinking, effort and the presence of images count for the messages, `speed` for system and messages.

Tokens are bytes / 4, rounded down on the sum so far, so that the parts always add up to the whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from attrs import define, evolve, field, frozen

from lsp_server.demo.body import MESSAGES, TOOLS, Position, Rendered, render, walk

LOOK_BACK = 20
SECONDS = {"5m": 300.0, "1h": 3600.0}
MINIMUM = (  # tokens by model, first match
    (r"claude-(opus|fable|mythos)-5", 512),
    (r"claude-opus-4-7|claude-3-5-haiku|claude-haiku-3-5", 2048),
    (r"claude-opus-4-[56]|claude-haiku-4-5", 4096),
    (r"", 1024),
)
Key = tuple[str, str, bytes]


@frozen
class CacheUsage:
    """Tokens. `input_tokens` is what was neither read nor written; the four add up to the whole prompt."""

    input_tokens: int
    read: int
    written_5m: int
    written_1h: int

    def wire(self) -> dict[str, Any]:
        return {
            "input_tokens": self.input_tokens,
            "cache_read_input_tokens": self.read,
            "cache_creation_input_tokens": self.written_5m + self.written_1h,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.written_5m,
                "ephemeral_1h_input_tokens": self.written_1h,
            },
        }


@frozen
class Entry:
    ttl: float
    used: float

    def live(self, now: float) -> bool:
        return now < self.used + self.ttl


@define
class Lookup:
    """What one request reads and will write. Call `begin` when its answer begins; without it nothing was written."""

    usage: CacheUsage
    _table: dict[Key, Entry] = field(repr=False)
    _writes: dict[Key, Entry] = field(repr=False)

    def begin(self) -> None:
        self._table.update(self._writes)


@define
class PromptCache:
    """`minimum` replaces the table of minimum lengths (tokens)."""

    minimum: int | None = None
    _table: dict[Key, Entry] = field(factory=dict, repr=False)

    def look_up(self, body: Mapping[str, Any], now: float, rendered: Rendered | None = None) -> Lookup:
        """What the request reads, writes and pays. `now`: seconds at which it arrived. A read renews its entry."""
        rendered = rendered or render(body)
        keys = _keys(body, rendered)
        hit = self._longest_hit(rendered.positions, keys, now)
        self._renew([key for i, key in enumerate(keys) if i == hit or (i < hit and rendered.positions[i].ttl)], now)
        least = self.minimum if self.minimum is not None else minimum_for(str(body.get("model")))
        breakpoints = [i for i, p in enumerate(rendered.positions) if p.ttl and i > hit and p.size // 4 >= least]
        writes = {keys[i]: Entry(SECONDS[rendered.positions[i].ttl or "5m"], now) for i in breakpoints}
        return Lookup(_usage(rendered, hit, breakpoints), self._table, writes)

    def _renew(self, keys: list[Key], now: float) -> None:
        for key in keys:
            if (entry := self._table.get(key)) is not None and entry.live(now):
                self._table[key] = evolve(entry, used=now)

    def _longest_hit(self, positions: tuple[Position, ...], keys: list[Key], now: float) -> int:
        for index in reversed([i for i, p in enumerate(positions) if p.ttl]):
            for place in range(index, max(index - LOOK_BACK, -1), -1):
                entry = self._table.get(keys[place])
                if entry is not None and entry.live(now):
                    return place
        return -1


def minimum_for(model: str) -> int:
    """Tokens below which the model's prompts are not cached."""
    return next(tokens for pattern, tokens in MINIMUM if re.match(pattern, model))


def _usage(rendered: Rendered, hit: int, breakpoints: list[int]) -> CacheUsage:
    read = done = rendered.positions[hit].size // 4 if hit >= 0 else 0
    written = {"5m": 0, "1h": 0}
    for index in breakpoints:
        place = rendered.positions[index]
        written[place.ttl or "5m"] += place.size // 4 - done
        done = place.size // 4
    return CacheUsage(rendered.size // 4 - done, read, written["5m"], written["1h"])


def _keys(body: Mapping[str, Any], rendered: Rendered) -> list[Key]:
    model = str(body.get("model"))
    salts = {TOOLS: ""}
    speed = str(body.get("speed") or "standard")
    images = any(_has_image(block) for _, _, _, block in walk(body))
    parts = [speed, *(body.get(key) for key in ("tool_choice", "thinking", "output_config")), images]
    salts[MESSAGES] = json.dumps(parts, sort_keys=True)
    return [(model, salts.get(place.section, speed), place.digest) for place in rendered.positions]


def _has_image(block: Mapping[str, Any]) -> bool:
    content = block.get("content") if block.get("type") == "tool_result" else None
    parts = content if isinstance(content, list) else ()
    return block.get("type") == "image" or any(isinstance(p, Mapping) and p.get("type") == "image" for p in parts)

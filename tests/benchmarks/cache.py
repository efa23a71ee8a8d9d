"""What agents that are launched together read from the prompt cache, by the scripted model's strict rules: an entry is
readable once the answer that writes it has begun. Each next to the same with nobody held back (`staggerMs: 0`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from attrs import frozen

from lsp_server.demo.connection import Connection
from tests.benchmarks.setting import Setting

FORKS = (5, 10, 20)
CONTEXT = "All of this was said before. " * 9_000
"""About 64,000 tokens."""
DIRECTIVE = "Look at this part of the project with care, and tell what you have found in it. " * 10
"""800 characters behind what tells one fork from another."""
FORK_MS = 200
"""Until the first byte of a fork's answer."""
SIBLINGS, MODEL_MS = 50, (200, 1500)
WIDE = f"---\nname: wide\ndescription: knows much\n---\n{'Know this. ' * 8_000}"
ENOUGH = 0.95
NO_HOLD = {"staggerMs": 0}
Usage = Mapping[str, int]


@frozen
class Forked:
    """Shares of the tokens of each fork's first request, from the lowest; of what each turn held, the parent's next."""

    forks: list[float]
    parent: list[float]


@frozen
class Row:
    """`held` and `free` are shown in `unit`."""

    name: str
    held: float
    free: float
    target: str
    unit: str


async def rows(setting: Setting) -> list[Row]:
    found: list[Row] = []
    for count in FORKS:
        held, free = await forks(setting, count, {}), await forks(setting, count, NO_HOLD)
        found += [
            _share(f"{count} forks of a 64,000-token context: the first one", held.forks[0], free.forks[0], ""),
            _share("   the least of the others", held.forks[1], free.forks[1], "99"),
            _share("   the least of the parent's next turns", min(held.parent), min(free.parent), "99"),
        ]
    for milliseconds in MODEL_MS:
        enough = [
            sum(share >= ENOUGH for share in await siblings(setting, milliseconds, settings))
            for settings in ({}, NO_HOLD)
        ]
        name = f"{SIBLINGS} siblings of one type, {milliseconds} ms of model time: read 95 %"
        found.append(Row(name, enough[0], enough[1], str(SIBLINGS - 1), ""))
    return found


def _share(name: str, held: float, free: float, target: str) -> Row:
    return Row(name, 100 * held, 100 * free, target, "%")


async def forks(setting: Setting, count: int, settings: Mapping[str, Any]) -> Forked:
    """So many in one message, each of which answers at once; then the parent hears of all of them."""
    calls = [_launch(f"directive no {number}. {DIRECTIVE}", fork=True) for number in range(count)]
    parent = [[{"type": "tool_use", "name": "Read", "input": {"file_path": "a.txt"}}], calls, ["they work"]]
    setting.set_script(
        {
            "unique_ids": True,
            "conversations": [
                *(_child(f"fork {number}", {"user": f"directive no {number}."}, 2, FORK_MS) for number in range(count)),
                {"name": "parent", "turns": [{"content": each} for each in [*parent, *[["heard"]] * (count + 1)]]},
            ],
        }
    )
    log = await _run(setting, f"go {CONTEXT}", settings)
    turns = [entry["usage"] for entry in log if entry["conversation"] == "parent"]
    return Forked(
        forks=sorted(_read(entry["usage"]) for entry in log if entry["conversation"] != "parent"),
        parent=[after["cache_read_input_tokens"] / _tokens(before) for before, after in pairwise(turns[1:])],
    )


async def siblings(setting: Setting, model_ms: int, settings: Mapping[str, Any]) -> list[float]:
    """Named agents of one type with a large system prompt; the share that the first request of each has read."""
    agents = setting.folder / "home" / ".claude" / "agents"
    agents.mkdir(parents=True, exist_ok=True)
    (agents / "wide.md").write_text(WIDE, "utf-8")
    calls = [_launch(f"part {number}.", subagent_type="wide") for number in range(SIBLINGS)]
    conversations = [
        *(_child(f"part {number}", {"first_user": f"part {number}."}, 0, model_ms) for number in range(SIBLINGS)),
        {"name": "parent", "turns": [{"content": each} for each in [calls, ["done"]]]},
    ]
    setting.set_script({"conversations": conversations})
    log = await _run(setting, "the whole", {"maxConcurrentAgents": 64, **settings})
    return [_read(entry["usage"]) for entry in log if entry["conversation"] != "parent"]


def _launch(prompt: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "name": "Agent", "input": {"description": "a part of it", "prompt": prompt, **more}}


def _child(name: str, match: Mapping[str, str], offset: int, first_byte_ms: int) -> dict[str, Any]:
    turns = [{"content": ["found"], "first_byte_ms": first_byte_ms}]
    return {"name": name, "match": match, "offset": offset, "turns": turns}


async def _run(setting: Setting, prompt: str, settings: Mapping[str, Any]) -> Sequence[Any]:
    """The log of the model once nothing of this conversation works any more."""
    async with setting.server(settings=settings) as (connection, _):
        root = (await connection.request("agent/spawn", {"prompt": prompt}))["agent"]["id"]
        while (found := await _statuses(connection, root)) & {"pending", "running", "waiting"}:
            await asyncio.sleep(0.1)
    assert found == {"completed"}, found
    return setting.log()


async def _statuses(connection: Connection, root: str) -> set[str]:
    agents = (await connection.request("agent/list", {}))["agents"]
    return {agent["status"] for agent in agents if agent["rootId"] == root}


def _read(usage: Usage) -> float:
    return usage["cache_read_input_tokens"] / _tokens(usage)


def _tokens(usage: Usage) -> int:
    return sum(usage[key] for key in ("cache_read_input_tokens", "cache_creation_input_tokens", "input_tokens"))

"""Runs all measures and prints them with their targets. `python -m tests.benchmarks [--runs N]`"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks import cache, decisions, measures
from tests.benchmarks import crowd as crowds
from tests.benchmarks.setting import Setting, setting

Row = tuple[str, Sequence[float], float | None, float]
"""Name, what was measured, target in the unit shown, and what to divide by to show it."""

MS, S, MIB, KB = 1e-3, 1.0, float(1 << 20), 1e3


async def main(runs: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        async with setting(Path(folder)) as place:
            rows, ratios = await _single(place, runs)
            more, more_ratios = await _crowd(place, runs)
            read = await cache.rows(place)
    units = {MS: "ms", S: "s", MIB: "MiB", KB: "kB"}
    print(f"{'measure':<58}{'median':>9}{'min':>9}{'max':>9}{'target':>9}")
    for name, found, target, unit in [*rows, *more]:
        shown = (statistics.median(found), min(found), max(found))
        figures = "".join(f"{value / unit:>9.{2 if unit == S else 1}f}" for value in shown)
        print(f"{name:<58}{figures}{target or '':>9} {units[unit]}")
    print("ratios to the floor:", "; ".join([*ratios, *more_ratios]))
    print(f"\n{'tokens read from the cache':<64}{'held':>9}{'not held':>9}{'target':>9}")
    for row in read:
        print(f"{row.name:<64}{row.held:>9.1f}{row.free:>9.1f}{row.target:>9} {row.unit}")
    return 0


async def _single(place: Setting, runs: int) -> tuple[list[Row], list[str]]:
    """One agent at a time."""
    await measures.cold_spawn(place)  # fills the caches that a second start has
    starts = [await measures.start(place) for _ in range(runs * 2)]
    cold = [await measures.cold_spawn(place) for _ in range(runs)]
    warm = [await measures.warm_spawn(place) for _ in range(runs)]
    isolated = {n: [await measures.isolated_spawn(place, n) for _ in range(runs)] for n in (5_000, 50_000)}
    product, floor = [], []
    for _ in range(runs):
        product.append(statistics.median(await measures.product_gaps(place)))
        floor.append(statistics.median(measures.floor_gaps(place)))
    reviews, plain_git = await measures.review(place, runs * 3)
    cancels = [await measures.cancel(place) for _ in range(runs)]
    stalls = [await measures.stalled_client(place) for _ in range(max(1, runs // 2))]
    rows: list[Row] = [
        ("process start to initialize answered", starts, 60, MS),
        ("process start to first spawn answered", [answered for answered, _ in cold], 700, MS),
        ("process start to first model request", [request for _, request in cold], 3000, MS),
        ("spawn answered, warm", [answered for answered, _ in warm], None, MS),
        ("spawn to first model request, warm", [request for _, request in warm], None, MS),
        *((f"the same, isolated, in {files:,} files", seconds, 60, MS) for files, seconds in isolated.items()),
        ("review of 1,000 changed files in 50,000", reviews, 500, MS),
        ("   plain git: snapshot and difference", plain_git, None, MS),
        ("tool turn: answer sent to next request", product, 5, MS),
        ("tool turn of the floor (same SDK)", floor, None, MS),
        ("stop to closed socket", cancels, 10, MS),
        ("longest extra gap while the client stalls 2 s", stalls, 50, MS),
        (f"permission decision, {decisions.RULES} rules", decisions.measure(runs * 200), 1, MS),
    ]
    return rows, [
        f"tool turn {_ratio(product, floor):.2f} (target 2.5)",
        f"review {_ratio(reviews, plain_git):.2f} (target 2)",
    ]


async def _crowd(place: Setting, runs: int) -> tuple[list[Row], list[str]]:
    """Agents that launch agents."""
    there, back, turns = [], [], []
    for _ in range(runs):
        called, answered = await crowds.fan_out(place)
        there.append(called)
        back.append(answered)
        turns.append(statistics.median(measures.floor_gaps(place)))
    wide, queued, floor = [], [], []
    for _ in range(runs):
        wide.append(await crowds.crowd(place, 64))
        queued.append(await crowds.crowd(place, None))
        floor.append(crowds.crowd_floor(place))
    kept = [await crowds.kept(place) for _ in range(max(1, runs // 2))]
    some = f"{crowds.CROWD} agents, {crowds.TURNS} tool turns each"
    rows: list[Row] = [
        ("fan-out: call sent to the child's first request", there, 5, MS),
        ("fan-out: child's answer sent to the parent's next request", back, 5, MS),
        (f"{some}, all at once", [each.wall for each in wide], 1.5, S),
        ("   CPU of the server", [each.cpu for each in wide], 1.5, S),
        ("   as many loops of the floor (same SDK)", [wall for wall, _ in floor], None, S),
        ("   CPU of the floor", [cpu for _, cpu in floor], None, S),
        ("   peak memory of the server", [each.peak for each in wide], 200, MIB),
        ("the same at the default limit: until the queue is empty", [each.drained for each in queued], 2.5, S),
        ("   peak memory of the server", [each.peak for each in queued], 200, MIB),
        ("memory kept per ended agent that read 100 kB", kept, 500, KB),
        (
            "transcript of an agent with 3 tool calls, not queued",
            [size for each in wide for size in each.transcripts],
            15,
            KB,
        ),
        ("   queued at the default limit", [size for each in queued for size in each.transcripts], 15, KB),
    ]
    return rows, [
        f"fan-out {_ratio(there, turns):.2f} and {_ratio(back, turns):.2f} (tool turns of the floor)",
        f"{some} {_ratio([each.wall for each in wide], [wall for wall, _ in floor]):.2f}",
        f"their CPU {_ratio([each.cpu for each in wide], [cpu for _, cpu in floor]):.2f}",
    ]


def _ratio(product: Sequence[float], floor: Sequence[float]) -> float:
    return statistics.median(product) / statistics.median(floor)


def _transcripts(runs: Sequence[crowds.Crowd]) -> list[int]:
    return [size for each in runs for size in each.transcripts]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("--runs", type=int, default=5)
    sys.exit(asyncio.run(main(parser.parse_args().runs)))

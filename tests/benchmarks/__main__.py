"""Runs all measures and prints them with their targets. `python -m tests.benchmarks [--runs N]`"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
from pathlib import Path

from tests.benchmarks import measures
from tests.benchmarks.setting import setting


async def main(runs: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        async with setting(Path(folder)) as place:
            await measures.cold_spawn(place)  # fills the caches that a second start has
            starts = [await measures.start(place) for _ in range(runs * 2)]
            cold = [await measures.cold_spawn(place) for _ in range(runs)]
            warm = [await measures.warm_spawn(place) for _ in range(runs)]
            product, floor = [], []
            for _ in range(runs):
                product.append(statistics.median(await measures.product_gaps(place)))
                floor.append(statistics.median(measures.floor_gaps(place)))
            cancels = [await measures.cancel(place) for _ in range(runs)]
            stalls = [await measures.stalled_client(place) for _ in range(max(1, runs // 2))]
    ratio = statistics.median(product) / statistics.median(floor)
    rows = [
        ("process start to initialize answered", starts, 60),
        ("process start to first spawn answered", [answered for answered, _ in cold], 700),
        ("process start to first model request", [request for _, request in cold], 3000),
        ("spawn answered, warm", [answered for answered, _ in warm], None),
        ("spawn to first model request, warm", [request for _, request in warm], None),
        ("tool turn: answer sent to next request", product, 5),
        ("tool turn of the floor (same SDK)", floor, None),
        ("stop to closed socket", cancels, 10),
        ("longest extra gap while the client stalls 2 s", stalls, 50),
    ]
    print(f"{'measure':<48}{'median':>10}{'min':>10}{'max':>10}{'target':>10}   (ms)")
    for name, seconds, target in rows:
        low, middle, high = (1000 * value for value in (min(seconds), statistics.median(seconds), max(seconds)))
        print(f"{name:<48}{middle:>10.1f}{low:>10.1f}{high:>10.1f}{target or '':>10}")
    print(f"tool turn, ratio to the floor: {ratio:.2f} (target 2.5)")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("--runs", type=int, default=5)
    sys.exit(asyncio.run(main(parser.parse_args().runs)))

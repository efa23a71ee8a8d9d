"""The least that many tool loops at once cost: the floor's loop, so many times, over one client of the SDK.

`python -m tests.benchmarks.floor_crowd REQUEST.json FILE TURNS COUNT` prints {"wall", "cpu"} in seconds, counted from
a process that has the SDK loaded and has been answered once.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from unittest.mock import patch

from anthropic import AsyncAnthropic

from tests.benchmarks import floor


async def main(request: Path, file: Path, turns: int, count: int) -> None:
    client = AsyncAnthropic(max_retries=0)
    with patch.object(floor, "AsyncAnthropic", lambda **_: client):
        await floor.main(request, file, turns)
        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(floor.main(request, file, turns) for _ in range(count)))
        print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))

"""The real clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import anyio
from attrs import frozen


@frozen
class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)

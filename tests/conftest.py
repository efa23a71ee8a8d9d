"""What every test may use, and how many examples the property tests take.

The same examples every time by default; AGENT_LS_SOAK=1 takes many more, and new ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import psutil
import pytest
from hypothesis import HealthCheck, settings

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "normal", max_examples=50, derandomize=True, deadline=None, database=None, suppress_health_check=SLOW
)
settings.register_profile("soak", max_examples=1000, deadline=None, print_blob=True, suppress_health_check=SLOW)
settings.load_profile("soak" if os.environ.get("AGENT_LS_SOAK") == "1" else "normal")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def left_behind() -> Callable[[], list[psutil.Process]]:
    """Processes that the test has started and that still run; servers that the whole run shares are not among them."""
    before = set(psutil.Process().children(recursive=True))
    return lambda: [each for each in psutil.Process().children(recursive=True) if each not in before]

"""What every test may use."""

from __future__ import annotations

from collections.abc import Callable

import psutil
import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def left_behind() -> Callable[[], list[psutil.Process]]:
    """Processes that the test has started and that still run; servers that the whole run shares are not among them."""
    before = set(psutil.Process().children(recursive=True))
    return lambda: [each for each in psutil.Process().children(recursive=True) if each not in before]

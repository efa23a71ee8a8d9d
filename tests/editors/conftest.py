"""Real editors use the servers, models and repositories of the end-to-end tests."""

import pytest

from tests.e2e.conftest import anyio_backend, cache, clean_git, model, server_env, workspace

__all__ = ["anyio_backend", "cache", "clean_git", "model", "server_env", "workspace"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Side by side with other tests, but one after the other: a desktop has one editor in front."""
    for item in items:
        if "tests/editors" in item.path.as_posix():
            item.add_marker(pytest.mark.xdist_group("editors"))

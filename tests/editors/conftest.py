"""Real editors use the servers, models and repositories of the end-to-end tests."""

from tests.e2e.conftest import anyio_backend, cache, clean_git, model, server_env, workspace

__all__ = ["anyio_backend", "cache", "clean_git", "model", "server_env", "workspace"]

"""Fixtures of the VS Code tests; a test module imports them by name.

One VS Code, browser and scripted model serve a module. Playwright's own event loop counts as running in this thread as
long as it lives, so it must be gone before other modules run theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.e2e.conftest import environment
from tests.editors.nvim_editor import Model
from tests.editors.vscode_editor import PICTURES, Code, Window, package
from tests.git_helpers import Repo, clean_git, init

__all__ = ["clean_git"]

FILES = {
    "app.py": "".join(f"line_{n} = {n}\n" for n in range(1, 21)),
    "notes.txt": "one\ntwo\nthree\n",
    "old.txt": "to go\n",
}


@pytest.fixture(scope="module")
def code_and_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Code, Model]]:
    place = tmp_path_factory.mktemp("vscode")
    model = Model()
    env = environment(place / "env", place / "cache", model.url)
    with sync_playwright() as playwright:
        code = Code(place, env, playwright)
        try:
            code.start(package(place))
            yield code, model
        finally:
            code.close()
    model.close()


@pytest.fixture
def model(code_and_model: tuple[Code, Model]) -> Iterator[Model]:
    found = code_and_model[1]
    found.says()
    yield found
    assert found.server.problems == []


@pytest.fixture
def repo(tmp_path: Path, clean_git: None) -> Repo:
    return init(tmp_path / "project", FILES)


@pytest.fixture
def code(request: pytest.FixtureRequest, code_and_model: tuple[Code, Model], model: Model) -> Iterator[Code]:
    """Closes the test's windows. When it failed, what they show is kept with the pictures."""
    found = code_and_model[0]
    failed = request.session.testsfailed
    yield found
    if PICTURES and request.session.testsfailed > failed:
        for number, each in enumerate(found.windows):
            each.picture(f"failed-{request.node.name}-{number}")
    found.settings()
    found.close_windows()


@pytest.fixture
def window(code: Code, repo: Repo) -> Window:
    return code.open(repo.path)

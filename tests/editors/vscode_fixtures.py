"""Fixtures of the VS Code tests; a test module imports them by name.

One VS Code, browser and scripted model serve a module. Playwright's own event loop counts as running in this thread as
long as it lives, so it must be gone before other modules run theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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


@pytest.fixture(scope="session")
def vsix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return package(tmp_path_factory.mktemp("vsix"))


@pytest.fixture(scope="module")
def code_and_model(tmp_path_factory: pytest.TempPathFactory, vsix: Path) -> Iterator[tuple[Code, Model]]:
    place = tmp_path_factory.mktemp("vscode")
    model = Model()
    env = environment(place / "env", place / "cache", model.url)
    with sync_playwright() as playwright:
        code = Code(place, env, playwright)
        try:
            code.start(vsix)
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
    """For windows of this test's own, which are closed after it."""
    found = code_and_model[0]
    before = len(found.windows)
    with pictured(request, found):
        yield found
    found.settings()
    found.close_windows(before)


@pytest.fixture
def window(code: Code, repo: Repo) -> Window:
    """This test's own."""
    return code.open(repo.path)


@pytest.fixture
def shared_repo(request: pytest.FixtureRequest, code_and_model: tuple[Code, Model], clean_git: None) -> Repo:
    """One for the module, another after a failure: nobody knows in what state that left it."""
    path = code_and_model[0].place / "shared" / str(request.session.testsfailed) / "project"
    return Repo(path) if path.exists() else init(path, FILES)


@pytest.fixture
def win(
    request: pytest.FixtureRequest, code_and_model: tuple[Code, Model], model: Model, shared_repo: Repo
) -> Iterator[Window]:
    """A window in `shared_repo` for several tests: opening one takes seconds."""
    code = code_and_model[0]
    found = next((each for each in code.windows if each.folder == shared_repo.path), None)
    with pictured(request, code):
        yield found or code.open(shared_repo.path)


@contextmanager
def pictured(request: pytest.FixtureRequest, code: Code) -> Iterator[None]:
    """When the test fails, what the windows show is kept with the pictures."""
    failed = request.session.testsfailed
    yield
    if PICTURES and request.session.testsfailed > failed:
        for number, each in enumerate(code.windows):
            each.picture(f"failed-{request.node.name}-{number}")

"""Fixtures of the Neovim tests; a test module imports them by name.

`editor` is a Neovim with a server that many tests share, in this test's own repository and with nothing open.
`start("app.py")` starts one for this test alone.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import define

from tests.e2e.conftest import environment
from tests.editors.nvim_editor import NVIM, SIZE, Editor, Model
from tests.git_helpers import Repo, clean_git, init

__all__ = ["clean_git"]

FILES = {
    "app.py": "".join(f"line_{n} = {n}\n" for n in range(1, 41)),
    "notes.txt": "one\ntwo\nthree\n",
    "old.txt": "to go\n",
}
LIMIT = 100
"""Seconds for one test, within those of pytest."""
Start = Callable[..., Editor]


@define
class Shared:
    """Started again after a failure: nobody knows in what state that left it."""

    place: Path
    model: Model
    editor: Editor | None = None
    failures: int = 0

    def get(self, failures: int) -> Editor:
        if self.editor is not None and failures == self.failures:
            return self.editor
        if self.editor is not None:
            self.editor.kill()
        self.failures = failures
        env = editor_environment(Path(tempfile.mkdtemp(dir=self.place)), self.place / "cache", self.model)
        self.editor = Editor.start(env, self.place, SIZE)
        return self.editor

    def close(self) -> None:
        if self.editor is not None:
            self.editor.quit()
        self.editor = None


def editor_environment(place: Path, cache: Path, model: Model) -> dict[str, str]:
    """With `agent-ls` on PATH, where the plugin looks for it."""
    found = environment(place, cache, model.url)
    return {**found, "PATH": f"{NVIM.parent}{os.pathsep}{found['PATH']}"}


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    found = Shared(tmp_path_factory.mktemp("nvim"), Model())
    yield found
    found.close()
    found.model.close()


@pytest.fixture
def model(shared: Shared) -> Iterator[Model]:
    shared.model.says()
    yield shared.model
    assert shared.model.server.problems == []


@pytest.fixture
def repo(tmp_path: Path, clean_git: None) -> Repo:
    return init(tmp_path / "project", FILES)


@pytest.fixture
def editor(request: pytest.FixtureRequest, shared: Shared, model: Model, repo: Repo) -> Iterator[Editor]:
    found = shared.get(request.session.testsfailed)
    with found.limited(LIMIT):
        found.reset(repo.path)
        yield found
        if request.session.testsfailed == shared.failures:
            found.stop_all()


@pytest.fixture
def start(model: Model, repo: Repo, tmp_path: Path, shared: Shared) -> Iterator[Start]:
    opened: list[Editor] = []
    env = editor_environment(tmp_path, shared.place / "cache", model)

    def start(*files: str, size: tuple[int, int] = SIZE, before: tuple[str, ...] = (), **more: str) -> Editor:
        """`before`: commands that run before the files are opened."""
        opened.append(Editor.start({**env, **more}, repo.path, size, *files, before=before))
        return opened[-1]

    with contextlib.ExitStack() as stack:

        def limited(*files: str, **options: Any) -> Editor:
            found = start(*files, **options)
            stack.enter_context(found.limited(LIMIT))
            return found

        yield limited
        for each in opened:
            each.quit()

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lsp_server.demo.script import conversation, say, use
from tests.e2e.conftest import environment
from tests.editors.nvim_editor import NVIM, Editor, Model
from tests.git_helpers import Repo, clean_git, init

__all__ = ["clean_git"]

FILES = {
    "app.py": "".join(f"line_{n} = {n}\n" for n in range(1, 41)),
    "notes.txt": "one\ntwo\nthree\n",
    "old.txt": "to go\n",
}


@pytest.fixture
def model() -> Iterator[Model]:
    found = Model()
    yield found
    assert found.close() == []


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def repo(tmp_path: Path, clean_git: None) -> Repo:
    return init(tmp_path / "project", FILES)


Start = Callable[..., Editor]


@pytest.fixture
def start(model: Model, repo: Repo, tmp_path: Path, cache: Path) -> Iterator[Start]:
    env = environment(tmp_path, cache, model.url)
    env["PATH"] = f"{NVIM.parent}:{env['PATH']}"
    opened: list[Editor] = []

    def start(*files: str, size: tuple[int, int] = (100, 30), cwd: Path | None = None, **more: str) -> Editor:
        opened.append(Editor.start({**env, **more}, cwd or repo.path, size, *files))
        return opened[-1]

    yield start
    for editor in opened:
        editor.quit()


def test_thin_path(start, model, repo):
    model.says(
        conversation(
            say("Let me look.", use("Bash", command="true"), use("Read", file_path="app.py")),
            say(use("Edit", file_path="app.py", old_string="line_3 = 3\n", new_string="line_3 = 33\n")),
            say("All done."),
        )
    )
    editor = start("app.py")
    editor.command("Agent spawn isolation=worktree Fix line three")
    editor.wait_for(":Agent approve")
    print(editor.text)
    editor.command("Agent approve")
    print(editor.wait_for("Allow once"))
    editor.picture("ask")
    editor.answer("1")
    editor.wait_for("Agent done", timeout=20)
    print(editor.text)
    editor.command("Agent list")
    print(editor.wait_for("to review"))
    editor.command("Agent review")
    print(editor.wait_for("proposed"))
    editor.keys("ga")
    print(editor.wait_for("Accepted 1 change"))
    editor.keys("q")
    editor.command("Agent log")
    print(editor.wait_for("All done"))
    print(editor.messages())

"""`agent-ls demo` as a person runs it, against the real language server."""

from __future__ import annotations

import asyncio
import sys

import pytest

from lsp_server.demo.script import Script, conversation, say, use
from tests.git_helpers import Repo

pytestmark = pytest.mark.anyio


@pytest.fixture
def demo(server_env, tmp_path):
    """`code, lines = await demo(*arguments, cwd=..., answers=[...])`; temporary folders are made in tmp_path/tmp."""
    (tmp_path / "tmp").mkdir()
    env = {**server_env, "TMPDIR": str(tmp_path / "tmp"), "COLUMNS": "300"}

    async def run(*arguments, cwd=tmp_path, answers=()):
        pipe = asyncio.subprocess.PIPE
        command = [sys.executable, "-m", "lsp_server.demo", *arguments]
        process = await asyncio.create_subprocess_exec(
            *command, env=env, cwd=cwd, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.STDOUT
        )
        try:
            async with asyncio.timeout(90):
                output, _ = await process.communicate("".join(f"{answer}\n" for answer in answers).encode())
        finally:
            if process.returncode is None:
                process.kill()
        return process.returncode, output.decode().rstrip("\n").split("\n")

    return run


async def test_the_scripted_demo_goes_through_and_leaves_nothing(demo, tmp_path):
    code, lines = await demo("--yes")
    assert code == 0, lines
    assert lines[-1] == "✓ the agent's work is in the checkout, and only what was applied"
    assert [line for line in lines if line.endswith(("(modified)", "(deleted)", "(added)"))] == [
        "M shop/cart.py  (modified)",
        "D shop/old_rounding.py  (deleted)",
        "A shop/rounding.py  (added)",
    ]
    applied = [line.partition(";")[0] for line in lines if line.startswith("✓ applied")]
    assert applied == ["✓ applied shop/rounding.py", "✓ applied shop/cart.py, shop/old_rounding.py"]
    assert list((tmp_path / "tmp").iterdir()) == []


async def test_live_works_in_the_present_repository(demo, model, workspace):
    write = use("Write", file_path="new.txt", content="new\n")
    model.set_script(Script((conversation(say("I add a file.", write), say("Added."), user="Add a file"),)))
    code, lines = await demo("--live", "Add a file", cwd=workspace, answers=["1"])
    assert code == 0, lines
    assert Repo(workspace).git("status", "--porcelain") == "?? new.txt"
    assert (workspace / "new.txt").read_text() == "new\n"


async def test_a_live_failure_is_one_line(demo, model, workspace):
    model.set_script(Script((), invalid_keys=("test",)))
    code, lines = await demo("--live", "Add a file", cwd=workspace)
    assert code == 1
    assert lines[-1].startswith("✗ the agent ended as failed: ")
    assert [line for line in lines if "Traceback" in line] == []

"""`agent-ls run` as a script calls it: what it prints, when it ends, with which code."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from lsp_server.demo.model_server import ModelServer
from lsp_server.demo.script import Conversation, Fault, Script, conversation, say, use
from tests.e2e.conftest import SERVER

pytestmark = pytest.mark.anyio

CEILING = "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS"
Run = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture
def run(server_env: dict[str, str], workspace: Path) -> Run:
    """`code, output, errors = await run(*arguments, env={...})`, in the workspace."""

    async def start(*arguments: str, env: dict[str, str] | None = None) -> tuple[int, str, str]:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *SERVER, "run", "go", *arguments, env={**server_env, **(env or {})}, cwd=workspace, stdout=pipe, stderr=pipe
        )
        try:
            async with asyncio.timeout(60):
                output, errors = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        assert process.returncode is not None
        return process.returncode, output.decode(), errors.decode()

    return start


def job(prompt: str = "x", **more: Any) -> Any:
    return use("Agent", description=f"job {prompt}", prompt=f"child {prompt}", run_in_background=True, **more)


def child(*turns: Any, prompt: str = "x") -> Conversation:
    return conversation(*turns, first_user=f"child {prompt}", name=prompt)


def main(*turns: Any) -> Conversation:
    return conversation(*turns, name="main")


def script(model: ModelServer, *conversations: Conversation) -> None:
    model.set_script(Script(conversations))


async def test_it_prints_the_answer(run: Run, model: ModelServer):
    script(model, main(say("the answer")))
    assert await run() == (0, "the answer\n", "")


@pytest.mark.spec("RUN-8")
async def test_it_waits_for_agents_in_the_background_and_what_they_wake(run: Run, model: ModelServer):
    script(
        model,
        child(say("one it is", first_byte_ms=300), prompt="one"),
        child(say(job("three")), say("two it is", first_byte_ms=600), say("and three"), prompt="two"),
        child(say("three it is", first_byte_ms=1200), prompt="three"),
        main(say(job("one"), job("two")), say("They work."), *(say(f"Heard {number}.") for number in (1, 2, 3, 4))),
    )
    code, output, errors = await run("--settings", '{"maxDepth": 2}')
    assert (code, errors) == (0, "")
    told = [str(entry.json["messages"]) for entry in model.requests("main")]
    for found in ("one it is", "two it is", "and three"):
        assert f"<result>{found}</result>" in told[-1]
    assert output == f"Heard {len(told) - 2}.\n", "the last answer of the main thread, and nothing else"


@pytest.mark.spec("RUN-8")
async def test_json_and_the_stream_are_of_the_last_run_too(run: Run, model: ModelServer):
    script(
        model,
        child(say("found it", first_byte_ms=300)),
        main(say(job()), say("It works."), say("It found it.")),
    )
    code, output, _ = await run("--output-format", "json")
    result = json.loads(output)
    assert (code, result["type"], result["agent"]["result"]) == (0, "result", "It found it.")
    model.set_script(model.script, reset=True)
    code, output, _ = await run("--output-format", "stream-json")
    *events, last = [json.loads(line) for line in output.splitlines()]
    assert last["agent"]["result"] == "It found it."
    ends = [each["event"]["agent"]["result"] for each in events if each["event"]["kind"] == "ended"]
    assert ends == ["It works.", "found it", "It found it."]
    [told] = [each["event"] for each in events if each["event"]["kind"] == "notification"]
    assert (told["status"], told["summary"]) == ("completed", 'Agent "job x" is done')


async def test_it_waits_no_longer_than_the_ceiling(run: Run, model: ModelServer):
    script(model, child(say("never", gate="never")), main(say(job()), say("It works.")))
    started = time.monotonic()
    code, output, errors = await run(env={CEILING: "300"})
    assert (code, output) == (0, "It works.\n")
    assert errors == f"agent-ls: stopped what still worked in the background: 1 ({CEILING})\n"
    assert time.monotonic() - started < 30


async def test_zero_is_no_limit(run: Run, model: ModelServer):
    script(model, child(say("found it", first_byte_ms=500)), main(say(job()), say("It works."), say("It found it.")))
    assert await run(env={CEILING: "0"}) == (0, "It found it.\n", "")


async def test_an_agent_that_is_named_waits_for_its_own_too(run: Run, model: ModelServer):
    script(model, child(say("found it", first_byte_ms=300)), main(say(job()), say("It works."), say("It found it.")))
    assert await run("--agent", "general-purpose") == (0, "It found it.\n", "")


async def test_a_failure_in_the_background_is_told_to_the_main_thread(run: Run, model: ModelServer):
    broken = say("", fault=Fault("status", status=400, type="invalid_request_error", message="No."))
    script(model, child(broken), main(say(job()), say("It works."), say("It failed.")))
    assert await run() == (0, "It failed.\n", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_it_with_its_commands_and_lets_the_worktree_go(
    server_env: dict[str, str], workspace: Path, model: ModelServer, tmp_path: Path, number: signal.Signals
):
    begun = tmp_path / "begun"
    script(model, main(say(use("Bash", command=f"echo $$ > {begun}; sleep 300; true")), say("never")))
    options = ("--isolation", "worktree", "--settings", '{"permissions": {"allow": ["Bash"]}}')
    process = await asyncio.create_subprocess_exec(
        *SERVER,
        "run",
        "go",
        "--agent",
        "general-purpose",
        *options,
        env=server_env,
        cwd=workspace,
        stderr=subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(30):
            while not begun.exists() or not begun.read_text().strip():
                await asyncio.sleep(0.05)
            process.send_signal(number)
            _, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert (process.returncode, errors.decode()) == (128 + number, "")
    assert not psutil.pid_exists(int(begun.read_text()))
    listed = subprocess.run(["git", "worktree", "list", "--porcelain"], cwd=workspace, capture_output=True, check=True)
    assert b"\nlocked" not in listed.stdout


@pytest.mark.parametrize("utf8", ["0", "1"])
async def test_standard_input_that_is_no_text_is_refused_in_words(
    server_env: dict[str, str], workspace: Path, utf8: str
):
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *SERVER,
        "run",
        "-",
        env={**server_env, "LC_ALL": "C.UTF-8", "PYTHONUTF8": utf8},
        cwd=workspace,
        stdin=pipe,
        stderr=pipe,
    )
    _, errors = await process.communicate(b"caf\xe9")
    message = "agent-ls: PROMPT: standard input is no text in UTF-8 (byte 4)\n"
    assert (process.returncode, errors.decode()) == (1, message)

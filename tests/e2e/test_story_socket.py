"""Several clients on one runtime: `serve --listen`, each joined by `serve --connect` or straight to the socket."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lsp_server.demo.connection import Connection
from lsp_server.demo.script import Script, conversation, say, use

pytestmark = pytest.mark.anyio
AGENT_LS = [sys.executable, "-m", "lsp_server"]
CAPABLE = {"experimental": {"agent": {"version": 1, "progress": True, "permission": True}}}


@pytest.fixture
async def listening(tmp_path: Path, server_env: Any, model: Any) -> AsyncIterator[tuple[Path, Any]]:
    path, env = tmp_path / "socket", {**server_env}
    process = await asyncio.create_subprocess_exec(*AGENT_LS, "serve", "--listen", str(path), env=env)
    async with asyncio.timeout(20):
        while not path.exists():
            await asyncio.sleep(0.05)
    yield path, process
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 10) == 0
    assert not path.exists()


async def client(path: Path, env: Any, workspace: Path) -> Connection:
    connection = await Connection.start([*AGENT_LS, "serve", "--connect", str(path)], env, workspace)
    params = {"processId": os.getpid(), "rootUri": workspace.as_uri(), "capabilities": CAPABLE}
    await connection.request("initialize", {**params, "initializationOptions": {"trusted": True}})
    connection.notify("initialized", {})
    return connection


async def test_the_socket_is_private(listening: Any) -> None:
    path, _ = listening
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.spec("PM-8")
async def test_two_clients_see_one_agent_and_the_first_answer_wins(
    listening: Any, server_env: Any, workspace: Path, model: Any
) -> None:
    path, _ = listening
    model.set_script(Script((conversation(say("I ask", use("Bash", command="/bin/true")), say("done")),)), reset=True)
    async with await client(path, server_env, workspace) as one, await client(path, server_env, workspace) as two:
        asked, withdrawn = asyncio.Event(), asyncio.Event()
        kinds: list[str] = []

        async def waits(params: Any) -> Any:
            asked.set()
            try:
                await asyncio.sleep(60)
            finally:
                withdrawn.set()

        async def answers(params: Any) -> Any:
            await asked.wait()
            return {"optionId": "allowOnce"}

        one.requests["agent/permission"] = waits
        two.requests["agent/permission"] = answers
        two.notifications["agent/progress"] = lambda params: kinds.append(params["event"]["kind"])
        agent = (await one.request("agent/spawn", {"prompt": "go"}))["agent"]
        ended = (await two.request("agent/wait", {"agentId": agent["id"]}))["agent"]
        assert (ended["status"], ended["result"]) == ("completed", "done")
        await asyncio.wait_for(withdrawn.wait(), 5)
        assert {"started", "permissionResolved", "ended"} <= set(kinds)


async def test_a_client_that_goes_takes_no_agent_along(
    listening: Any, server_env: Any, workspace: Path, model: Any
) -> None:
    path, _ = listening
    model.set_script(Script((conversation(say("x" * 400, chunk=4, per_delta_ms=20)),)), reset=True)
    async with await client(path, server_env, workspace) as one:
        agent = (await one.request("agent/spawn", {"prompt": "talk"}))["agent"]
    async with await client(path, server_env, workspace) as two:
        replayed: list[int] = []
        two.notifications["agent/progress"] = lambda params: replayed.append(params["seq"])
        ended = (await two.request("agent/wait", {"agentId": agent["id"]}))["agent"]
        assert (ended["status"], ended["result"]) == ("completed", "x" * 400)


async def test_nobody_listens_there(tmp_path: Path, server_env: Any) -> None:
    path = tmp_path / "nothing"
    run = await asyncio.create_subprocess_exec(
        *AGENT_LS, "serve", "--connect", str(path), env=server_env, stdin=-1, stdout=-1, stderr=-1
    )
    _, stderr = await run.communicate(b"")
    assert run.returncode == 1
    assert f"nobody listens on {path}" in stderr.decode()


async def test_a_second_server_on_the_same_path_is_refused(listening: Any, server_env: Any) -> None:
    path, _ = listening
    run = await asyncio.create_subprocess_exec(*AGENT_LS, "serve", "--listen", str(path), env=server_env, stderr=-1)
    _, stderr = await run.communicate()
    assert (run.returncode, path.exists()) == (1, True)
    assert f"another agent-ls already listens on {path}" in stderr.decode()


async def test_a_dead_socket_is_replaced_and_a_file_is_not(tmp_path: Path, server_env: Any) -> None:
    import socket

    dead, file = tmp_path / "dead", tmp_path / "file"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(dead))
    file.write_text("mine")
    run = await asyncio.create_subprocess_exec(*AGENT_LS, "serve", "--listen", str(file), env=server_env, stderr=-1)
    _, stderr = await run.communicate()
    assert (run.returncode, file.read_text()) == (1, "mine")
    assert "exists and is no socket" in stderr.decode()
    process = await asyncio.create_subprocess_exec(*AGENT_LS, "serve", "--listen", str(dead), env=server_env)
    async with asyncio.timeout(20):
        while True:
            try:
                _, writer = await asyncio.open_unix_connection(str(dead))
                break
            except OSError:
                await asyncio.sleep(0.05)
    writer.close()
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0

"""The measures, one function each; all give seconds."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.benchmarks.setting import Setting

TURNS = 50
READ = {"type": "tool_use", "name": "Read", "input": {"file_path": "a.txt"}}
LOOP = {"conversations": [{"turns": [*({"content": [READ]} for _ in range(TURNS)), {"content": ["done"]}]}]}
HELLO = {"conversations": [{"turns": [{"content": ["hello"]}]}]}
CHATTY = {"conversations": [{"turns": [*({"content": ["x" * 3000, READ]} for _ in range(300)), {"content": ["done"]}]}]}
SLOW = {"conversations": [{"turns": [{"content": ["word " * 2000], "chunk": 5, "per_delta_ms": 5}]}]}


async def start(setting: Setting) -> float:
    async with setting.server() as (_, seconds):
        return seconds


async def cold_spawn(setting: Setting) -> tuple[float, float]:
    """Process start to the answer of the first spawn, and to the first model request."""
    setting.set_script(HELLO)
    begun, begun_ns = time.perf_counter(), time.monotonic_ns()
    async with setting.server() as (connection, _):
        agent = (await connection.request("agent/spawn", {"prompt": "hello"}))["agent"]
        answered = time.perf_counter() - begun
        await connection.request("agent/wait", {"agentId": agent["id"]})
        return answered, (setting.log()[0]["arrived_ns"] - begun_ns) / 1e9


async def warm_spawn(setting: Setting) -> tuple[float, float]:
    """The same once the server is warm: spawn to its answer, and to the first model request."""
    setting.set_script(HELLO)
    async with setting.server() as (connection, _):
        for _ in range(3):
            await _run(connection)
        begun, begun_ns, before = time.perf_counter(), time.monotonic_ns(), len(setting.log())
        agent = (await connection.request("agent/spawn", {"prompt": "hello"}))["agent"]
        answered = time.perf_counter() - begun
        await connection.request("agent/wait", {"agentId": agent["id"]})
        return answered, (setting.log()[before]["arrived_ns"] - begun_ns) / 1e9


async def isolated_spawn(setting: Setting, files: int) -> float:
    """Spawn of an isolated agent to its first model request, in a repository of so many files, once the server is
    warm."""
    large = setting.with_files(files)
    large.set_script(HELLO)
    async with large.server() as (connection, _):
        for _ in range(3):
            await _run(connection)
        begun_ns, before = time.monotonic_ns(), len(large.log())
        agent = (await connection.request("agent/spawn", {"prompt": "hello", "isolation": "worktree"}))["agent"]
        await connection.request("agent/wait", {"agentId": agent["id"]})
        return (float(large.log()[before]["arrived_ns"]) - begun_ns) / 1e9


async def review(setting: Setting, rounds: int) -> tuple[list[float], list[float]]:
    """Reviews of 1,000 changed files of 50,000 with a warm stat cache, and each time plain git's own way to the same:
    a copy of the index, add, a tree, and the difference."""
    large = setting.with_files(50_000)
    write = {"type": "tool_use", "name": "Write", "input": {"file_path": "new.txt", "content": "new\n"}}
    large.set_script({"conversations": [{"turns": [{"content": [write]}, {"content": ["done"]}]}]})
    product, floor = [], []
    async with large.server() as (connection, _):
        params = {"prompt": "write", "isolation": "worktree", "permissionMode": "acceptEdits"}
        agent = (await connection.request("agent/spawn", params))["agent"]
        info = (await connection.request("agent/wait", {"agentId": agent["id"]}))["agent"]
        top = Path(info["worktree"]["path"])
        for number in range(0, 50_000, 50):
            with (top / f"d{number // 100}" / f"f{number}.txt").open("a") as file:
                file.write("changed\n")
        await connection.request("agent/review", {"agentId": agent["id"]})
        for _ in range(rounds):
            begun = time.perf_counter()
            found = await connection.request("agent/review", {"agentId": agent["id"]})
            product.append(time.perf_counter() - begun)
            assert found["stats"]["files"] == 1001, found["stats"]
            floor.append(_plain_git(top, info["worktree"]["baseCommit"], large.folder / "index"))
    return product, floor


def _plain_git(top: Path, base: str, index: Path) -> float:
    begun = time.perf_counter()
    env = {**os.environ, "GIT_INDEX_FILE": str(index)}
    git = ["git", "-C", str(top)]
    own = subprocess.run([*git, "rev-parse", "--git-path", "index"], capture_output=True, check=True).stdout
    shutil.copy2(top / os.fsdecode(own.strip()), index)
    subprocess.run([*git, "add", "-A"], env=env, check=True)
    tree = subprocess.run([*git, "write-tree"], env=env, capture_output=True, check=True).stdout.decode().strip()
    diff = [*git, "diff-tree", "-r", "-M", "-p", "--raw", base, tree]
    subprocess.run(diff, env=env, capture_output=True, check=True)
    return time.perf_counter() - begun


async def product_gaps(setting: Setting) -> list[float]:
    """Answer sent to next request, in a loop of file reads by one agent."""
    setting.set_script(LOOP)
    async with setting.server() as (connection, _):
        await _run(connection)
        return _gaps(setting.log())


def floor_gaps(setting: Setting) -> list[float]:
    """The same loop by the floor, with the product's own tools and system prompt."""
    request = setting.folder / "request.json"
    request.write_text(json.dumps(_body(setting.log()[0])))
    setting.set_script(LOOP)
    arguments = [str(request), str(setting.repository / "a.txt"), str(TURNS)]
    command = [sys.executable, "-m", "tests.benchmarks.floor", *arguments]
    subprocess.run(command, env=dict(setting.env(PYTHONPATH=str(Path.cwd()))), check=True)
    return _gaps(setting.log())


async def cancel(setting: Setting) -> float:
    """`agent/stop` sent, while the model streams, to its socket being closed, in the model's process."""
    setting.set_script(SLOW)
    async with setting.server() as (connection, _):
        agent = (await connection.request("agent/spawn", {"prompt": "talk"}))["agent"]
        while not (log := setting.log()) or log[0]["begun_ns"] is None:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        begun_ns = time.monotonic_ns()
        await connection.request("agent/stop", {"agentId": agent["id"]})
        while (closed := setting.log()[0]["closed_early_ns"]) is None:
            await asyncio.sleep(0.005)
        return float(closed - begun_ns) / 1e9


async def stalled_client(setting: Setting) -> float:
    """The longest gap of a tool loop, above the median, while the client reads nothing for two seconds."""
    setting.set_script(CHATTY)
    async with setting.server() as (connection, _):
        await connection.request("agent/spawn", {"prompt": "loop"})
        while len(setting.log()) < 20:
            await asyncio.sleep(0.05)
        seen = len(setting.log())
        time.sleep(2)  # this process is the client: it stops reading
        during = [entry for entry in setting.log()[seen:] if entry["sent_ns"]]
        gaps = _gaps(during)
        return max(gaps) - sorted(gaps)[len(gaps) // 2]


async def _run(connection: Any) -> None:
    agent = (await connection.request("agent/spawn", {"prompt": "loop"}))["agent"]
    ended = (await connection.request("agent/wait", {"agentId": agent["id"]}))["agent"]
    assert ended["status"] == "completed", ended


def _gaps(log: list[Any]) -> list[float]:
    pairs = pairwise(log)
    return [(after["arrived_ns"] - before["sent_ns"]) / 1e9 for before, after in pairs if before["sent_ns"]]


def _body(entry: Any) -> Any:
    return json.loads(entry["body"])

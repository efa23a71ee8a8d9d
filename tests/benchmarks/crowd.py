"""Measures of agents that launch agents, one function each; times in seconds, memory and files in bytes.

Memory is what Linux says of the server's process from outside: VmHWM for a peak; for what is kept, VmRSS after batches
of agents, once nothing runs. Only growth between the first batch and the last counts, so that neither the interpreter
nor arenas that the first batch filled and later ones use again are taken for something that is kept.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
from attrs import frozen

from lsp_server.demo.connection import Connection
from tests.benchmarks.setting import Setting

ROUNDS = 20
CROWD, TURNS = 50, 3
BATCH, BATCHES = 40, 6
LARGE = "large.txt"


@frozen
class Crowd:
    """`drained`: from the parent's answer with all its calls to the parent's next request; `peak` is the server's;
    `transcripts` are the sizes of the children's.
    """

    wall: float
    drained: float
    cpu: float
    peak: int
    transcripts: list[int]


def _read(path: str) -> dict[str, Any]:
    return {"type": "tool_use", "name": "Read", "input": {"file_path": path}}


def _launch(number: int) -> dict[str, Any]:
    return {"type": "tool_use", "name": "Agent", "input": {"description": "a part of it", "prompt": f"part {number}"}}


def _script(parent: list[Any], child: list[Any]) -> dict[str, Any]:
    """A child is known by its prompt; whoever is none of them is the parent."""
    return {
        "conversations": [
            {"name": "child", "match": {"first_user": "part "}, "turns": [{"content": each} for each in child]},
            {"name": "parent", "turns": [{"content": each} for each in parent]},
        ]
    }


async def fan_out(setting: Setting) -> tuple[float, float]:
    """Medians over calls of one child after the other: the parent's answer with the call sent -> the child's first
    request; the child's answer sent -> the parent's next request."""
    setting.set_script(_script([*([_launch(number)] for number in range(ROUNDS)), ["done"]], [["found"]]))
    async with setting.server() as (connection, _):
        await _run(connection)
        log = setting.log()
    assert [entry["conversation"] for entry in log] == [*(["parent", "child"] * ROUNDS), "parent"]
    gaps = [(after["arrived_ns"] - before["sent_ns"]) / 1e9 for before, after in itertools.pairwise(log)]
    return statistics.median(gaps[::2]), statistics.median(gaps[1::2])


async def crowd(setting: Setting, limit: int | None) -> Crowd:
    """`CROWD` agents in one message with `TURNS` tool turns each; `limit` None is the default of the product.

    The server has answered an agent before, so that the SDK is loaded.
    """
    children = [*([_read("a.txt")] for _ in range(TURNS)), ["found"]]
    settings = {} if limit is None else {"maxConcurrentAgents": limit}
    async with setting.server(settings=settings) as (connection, _):
        setting.set_script(_script([["ready"]], []))
        await _run(connection)
        setting.set_script(_script([[_launch(number) for number in range(CROWD)], ["done"]], children))
        server = psutil.Process(connection.pid)
        before, begun = server.cpu_times(), time.perf_counter()
        parent = await _run(connection)
        wall, after = time.perf_counter() - begun, server.cpu_times()
        peak = _status(server, "VmHWM")
        listed = (await connection.request("agent/list", {}))["agents"]
    log = setting.log()
    assert len(log) == CROWD * len(children) + 2, len(log)
    first, last = (entry for entry in log if entry["conversation"] == "parent")
    request = next(entry for entry in log if entry["conversation"] == "child")
    (setting.folder / "child.json").write_text(request["body"], "utf-8")
    files = [Path(agent["outputFile"]).with_suffix(".jsonl") for agent in listed if agent.get("parentId") == parent]
    assert len(files) == CROWD
    return Crowd(
        wall=wall,
        drained=(last["arrived_ns"] - first["sent_ns"]) / 1e9,
        cpu=after.user + after.system - before.user - before.system,
        peak=peak,
        transcripts=[path.stat().st_size for path in files],
    )


def crowd_floor(setting: Setting) -> tuple[float, float]:
    """Seconds and CPU seconds of as many loops by the floor, with the tools and the system prompt of the last crowd."""
    turns = [*([_read("a.txt")] for _ in range(TURNS)), ["found"]]
    setting.set_script({"conversations": [{"turns": [{"content": each} for each in turns]}]})
    arguments = [str(setting.folder / "child.json"), str(setting.repository / "a.txt"), str(TURNS), str(CROWD)]
    command = [sys.executable, "-m", "tests.benchmarks.floor_crowd", *arguments]
    env = dict(setting.env(PYTHONPATH=str(Path.cwd())))
    found = json.loads(subprocess.run(command, env=env, check=True, capture_output=True).stdout)
    return found["wall"], found["cpu"]


async def kept(setting: Setting) -> float:
    """Memory that one ended agent leaves in the server; each has read a file of 100 kB."""
    (setting.repository / LARGE).write_text("".join(f"{number:06} {'x' * 72}\n" for number in range(1200)))
    setting.set_script(_script([[_launch(number) for number in range(BATCH)], ["done"]], [[_read(LARGE)], ["found"]]))
    resident: list[int] = []
    async with setting.server() as (connection, _):
        for _ in range(BATCHES):
            await _run(connection)
            await asyncio.sleep(0.5)
            resident.append(_status(psutil.Process(connection.pid), "VmRSS"))
    return (resident[-1] - resident[0]) / (BATCH * (BATCHES - 1))


async def _run(connection: Connection) -> str:
    agent = (await connection.request("agent/spawn", {"prompt": "the whole"}))["agent"]
    ended = (await connection.request("agent/wait", {"agentId": agent["id"]}))["agent"]
    assert ended["status"] == "completed", ended
    return str(ended["id"])


def _status(process: psutil.Process, name: str) -> int:
    lines = Path(f"/proc/{process.pid}/status").read_text("utf-8").splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1]) * 1024

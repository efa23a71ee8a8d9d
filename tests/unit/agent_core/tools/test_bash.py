from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import anyio
import psutil
import pytest
from attrs import evolve

from agent_core.errors import ToolError
from agent_core.permissions.types import PermissionFacts
from agent_core.tool import Place, ToolContext, ToolResult
from agent_core.tools.bash import Bash

LeftBehind = Callable[[], list[psutil.Process]]

pytestmark = pytest.mark.anyio


async def bash(ctx: ToolContext, command: str, **more: object) -> ToolResult:
    return await Bash().run({"command": command, **more}, ctx)


async def test_output_and_exit_codes(ctx: ToolContext) -> None:
    assert [
        await bash(ctx, command) for command in ("echo a; echo b >&2", "true", "echo no; exit 3", "false", "kill -9 $$")
    ] == [
        ToolResult.ok("a\nb\n"),
        ToolResult.ok("(no output)"),
        ToolResult.error("Exit code 3\nno"),
        ToolResult.error("Exit code 1"),
        ToolResult.error("Ended by signal 9 (SIGKILL)"),
    ]


@pytest.mark.spec("WT-2")
async def test_every_call_starts_in_the_working_directory(ctx: ToolContext, tmp_path: Path) -> None:
    await bash(ctx, "mkdir sub; cd sub; X=1")
    assert (await bash(ctx, "pwd; echo $X")).text == f"{tmp_path}\n\n"


async def test_time_out(ctx: ToolContext) -> None:
    assert await bash(ctx, "echo before; sleep 60", timeout=300) == ToolResult.error(
        "Timed out after 0.3 s; the command and all its processes were ended. Output until then:\nbefore\n"
    )


async def test_time_outs_from_the_environment(ctx: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASH_DEFAULT_TIMEOUT_MS", "200")
    assert "Timed out after 0.2 s" in (await bash(ctx, "sleep 60")).text
    monkeypatch.setenv("BASH_MAX_TIMEOUT_MS", "100")
    assert "Timed out after 0.1 s" in (await bash(ctx, "sleep 60", timeout=50_000)).text
    monkeypatch.setenv("BASH_MAX_TIMEOUT_MS", "-5")
    assert (await bash(ctx, "sleep 0.3; echo ok", timeout=50_000)).text == "ok\n"


async def test_long_output_is_shortened(ctx: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (await bash(ctx, "head -c 40000 /dev/zero | tr '\\0' x")).text
    assert text == "x" * 15_000 + "\n\n[... 10000 characters left out here ...]\n\n" + "x" * 15_000
    monkeypatch.setenv("BASH_MAX_OUTPUT_LENGTH", "10")
    assert (await bash(ctx, "echo 0123456789ABC")).text == "01234\n\n[... 4 characters left out here ...]\n\n9ABC\n"


async def test_output_is_reported_live_and_bounded(ctx: ToolContext) -> None:
    seen: list[str] = []
    await bash(evolve(ctx, report=seen.append), "echo a; head -c 1500000 /dev/zero | tr '\\0' x")
    text = "".join(seen)
    assert text.startswith("a\nxx")
    assert text.endswith("x\n[further output is not shown live]\n")
    assert 1_000_000 <= len(text) < 1_000_100


async def test_e4_cancelling_leaves_no_process(ctx: ToolContext, tmp_path: Path, left_behind: LeftBehind) -> None:
    with anyio.move_on_after(0.5) as scope:
        await bash(ctx, "echo $$ >pid; sleep 60 | sleep 60")
    assert scope.cancelled_caught
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))
    assert left_behind() == []


async def test_background_processes_end_with_the_command(ctx: ToolContext, tmp_path: Path) -> None:
    started = time.monotonic()
    assert (await bash(ctx, "sleep 60 & echo $! >pid; echo started")).text == "started\n"
    assert time.monotonic() - started < 1.5
    pid = int((tmp_path / "pid").read_text())
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


async def test_bad_commands(ctx: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ToolError, match="NUL"):
        await bash(ctx, "echo \0")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolError, match="bash could not be started"):
        await bash(ctx, "true")


async def test_facts_and_title(ctx: ToolContext) -> None:
    ctx = evolve(ctx, place=Place(Path("/project")))
    assert await Bash().facts({"command": "ls\n-l"}, ctx) == PermissionFacts(command="ls\n-l", cwd=Path("/project"))
    assert Bash().title({"command": "ls\n-l"}) == "Bash ls -l"

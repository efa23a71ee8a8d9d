"""`agent-ls demo`: a scripted model, a real language server, a real repository; or `--live` with your own model.

    --yes          answers everything itself: allow once, apply one file alone, then the rest
    --live PROMPT  an agent with your credentials in a worktree of the repository you are in
    --keep         leaves the demo's folder in place

Exit code 0 only when the repository ended as it should; else one line says what was wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

import lsp_server
from lsp_server.demo.checks import Checks, DemoFailed
from lsp_server.demo.connection import Connection, RequestFailed, ServerEnded
from lsp_server.demo.lines import Lines
from lsp_server.demo.model_server import ModelServer
from lsp_server.demo.project import DESCRIPTION, PROMPT, demo_script, make_project
from lsp_server.demo.screen import NoAnswer, Screen
from lsp_server.demo.terminal import Demo, Task

SERVE = (sys.executable, "-m", "lsp_server", "serve")
SCRIPTED_SECONDS = 120  # with --yes nobody has to think
PACKAGE = Path(lsp_server.__file__ or "").resolve().parents[1]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="agent-ls demo", description="An agent mends a small project before your eyes."
    )
    parser.add_argument("--yes", action="store_true", help="answer every question of the scripted demo with yes")
    parser.add_argument("--live", metavar="PROMPT", help="use your own credentials and the current repository")
    parser.add_argument("--keep", action="store_true", help="keep the demo's folder")
    options = parser.parse_args(argv)
    if options.live is not None and options.yes:
        parser.error("--yes is for the scripted model only: what a real one asks for, a person must answer")
    console = Console(highlight=False)
    screen = Screen(console, Lines())
    job = live(options.live, screen) if options.live is not None else scripted(screen, options.yes, options.keep)
    try:
        asyncio.run(job)
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130
    except TimeoutError:
        return _fail(console, f"the agent did not end within {SCRIPTED_SECONDS} s")
    except (DemoFailed, NoAnswer, RequestFailed, ServerEnded, OSError) as error:
        return _fail(console, str(error))
    except subprocess.CalledProcessError as error:
        return _fail(console, f"{' '.join(error.cmd)}: {error.stderr.strip()}")
    return 0


def _fail(console: Console, line: str) -> int:
    console.print(Text(f"✗ {' '.join(line.split())}", style="bold red"), soft_wrap=True)
    return 1


async def scripted(screen: Screen, yes: bool, keep: bool) -> None:
    base = Path(tempfile.mkdtemp(prefix="agent-ls-demo-"))
    folder = base / "shop"
    try:
        make_project(folder)
        screen.say(f"A small project with a failing test: {folder}", "dim")
        limit, pace = (SCRIPTED_SECONDS, 0) if yes else (None, 12)
        async with asyncio.timeout(limit), ModelServer(demo_script(pace)) as model:
            env = _closed_environment(base, model.url)
            async with await Connection.start(SERVE, env, folder) as connection:
                demo = Demo(connection, screen, folder, yes, Checks(folder))
                await demo.run(Task(PROMPT, DESCRIPTION, {"permissionMode": "acceptEdits"}))
            if model.problems:
                raise DemoFailed(f"the scripted model met a request it does not know: {model.problems[0]}")
    finally:
        if keep:
            screen.say(f"Kept: {base}", "dim")
        else:
            shutil.rmtree(base, ignore_errors=True)
    screen.say("✓ the agent's work is in the checkout, and only what was applied", "bold green")


async def live(prompt: str, screen: Screen) -> None:
    async with await Connection.start(SERVE, _with_package(os.environ), Path.cwd()) as connection:
        await Demo(connection, screen, Path.cwd(), False).run(Task(prompt, prompt[:60]))


def _closed_environment(base: Path, url: str) -> dict[str, str]:
    """Nothing of the person's settings, keys and proxies: the demo must go the same way everywhere."""
    kept = ("PATH", "LANG", "LC_ALL", "TERM", "TMPDIR", "SYSTEMROOT")
    home = base / "home"
    home.mkdir()
    own = {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_STATE_HOME": str(home / "state"),
        "AGENT_LS_STATE_DIR": str(base / "state"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "demo",
    }
    return _with_package({**{name: os.environ[name] for name in kept if name in os.environ}, **own})


def _with_package(env: Mapping[str, str]) -> dict[str, str]:
    """The server starts in another folder: a package that is not installed must be found from there."""
    if "site-packages" in PACKAGE.parts:
        return dict(env)
    paths = [str(PACKAGE), *filter(None, [env.get("PYTHONPATH")])]
    return {**env, "PYTHONPATH": os.pathsep.join(paths)}


if __name__ == "__main__":
    sys.exit(main())

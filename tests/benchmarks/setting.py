"""What every benchmark works in: a repository, the model service in a process of its own, the installed command."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from attrs import define

from lsp_server.demo.connection import Connection

COMMAND = [str(Path(sys.executable).parent / "agent-ls"), "serve"]
CAPABLE = {"experimental": {"agent": {"version": 1, "progress": True, "textDeltas": True, "permission": True}}}


@define
class Setting:
    folder: Path
    url: str

    @property
    def repository(self) -> Path:
        return self.folder / "repository"

    def env(self, **more: str) -> Mapping[str, str]:
        """A person's environment: bytecode and class caches are kept between starts, as they are in life."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        own = {
            "HOME": str(self.folder / "home"),
            "AGENT_LS_STATE_DIR": str(self.folder / "state"),
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "bench",
        }
        return {**kept, **own, **more}

    def with_files(self, count: int) -> Setting:
        """Another repository, whose one commit has so many files; made once."""
        made = Setting(self.folder / f"files-{count}", self.url)
        if not made.repository.exists():
            made.repository.mkdir(parents=True)
            files = "".join(f"M 100644 inline d{n // 100}/f{n}.txt\ndata 12\nline {n:06}\n\n" for n in range(count))
            commit = f"commit refs/heads/main\ncommitter b <b@localhost> 0 +0000\ndata 1\nx\n{files}"
            git = ["git", "-C", str(made.repository)]
            subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
            subprocess.run([*git, "fast-import", "--quiet"], input=commit.encode(), check=True)
            subprocess.run([*git, "reset", "-q", "--hard"], check=True)
        return made

    def log(self, after: int = 0) -> list[Any]:
        with urllib.request.urlopen(f"{self.url}/_log?after={after}") as answer:
            return list(json.load(answer)["requests"])

    def set_script(self, script: Any) -> None:
        data = json.dumps(script).encode()
        request = urllib.request.Request(f"{self.url}/_script?reset=1", data, method="POST")
        urllib.request.urlopen(request).close()

    @asynccontextmanager
    async def server(self, settings: Mapping[str, Any] | None = None) -> AsyncIterator[tuple[Connection, float]]:
        """An initialized connection, and the seconds from the start of the process to the answer of `initialize`."""
        begun = time.perf_counter()
        async with await Connection.start(COMMAND, self.env(), self.repository) as connection:
            params = {
                "processId": os.getpid(),
                "rootUri": self.repository.as_uri(),
                "capabilities": CAPABLE,
                "initializationOptions": {"settings": settings or {}},
            }
            await connection.request("initialize", params)
            seconds = time.perf_counter() - begun
            connection.notify("initialized", {})
            yield connection, seconds


@asynccontextmanager
async def setting(folder: Path) -> AsyncIterator[Setting]:
    repository = folder / "repository"
    repository.mkdir()
    (repository / "a.txt").write_text("".join(f"line {number}\n" for number in range(40)))
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "start"]):
        subprocess.run([*git, *arguments], cwd=repository, check=True)
    script = folder / "script.json"
    script.write_text(json.dumps({"conversations": [{"turns": [{"content": ["ok"]}]}]}))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "lsp_server.demo.model_server", "--script", str(script), stdin=-1, stdout=-1
    )
    assert process.stdout and process.stdin
    try:
        yield Setting(folder, json.loads(await process.stdout.readline())["url"])
    finally:
        process.stdin.close()
        await process.wait()

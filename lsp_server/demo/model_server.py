"""A scripted Messages API over real HTTP on 127.0.0.1, for tests and for `agent-ls demo`.

POST /v1/messages (stream or not), POST /v1/messages/count_tokens, GET /v1/models[/ID]. It refuses what the service
refuses (`validation`), simulates the prompt cache (`cache`), answers by a script (`script`) and keeps a log.

For tests over HTTP, without credentials:
GET /_log[?after=N]            {"requests": [...], "problems": [...]}
GET /_wait?n=K[&timeout_ms=T]  answers when the K-th POST has arrived; 408 after T (default 10 s, at most 60 s)
POST /_script[?reset=1]        replaces the script; `reset` also forgets log, cache and attempts
POST /_release?gate=NAME       lets answers pass that wait at this gate
POST /_advance?seconds=N       moves the cache's clock

A fault of the script itself (no turn for this request, a tool that was not offered, a changed prefix) is answered with
500, is not to be retried, and stands in `problems`: a test should end with that list empty.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from lsp_server.demo.loading import load_script
from lsp_server.demo.serving import ModelServer

__all__ = ["ModelServer", "main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Prints {"url", "port", "pid"} on one line; ends when stdin closes or after --max-seconds."""
    parser = argparse.ArgumentParser(prog="python -m lsp_server.demo.model_server", description="Scripted Messages API")
    parser.add_argument("--script", type=Path, required=True, help="the script, a JSON file")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--max-seconds", type=float, default=3600)
    options = parser.parse_args(argv)
    try:
        script = load_script(json.loads(options.script.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        print(f"{options.script}: {error}", file=sys.stderr)
        return 2
    return asyncio.run(_serve(ModelServer(script, options.port), options.max_seconds))


async def _serve(server: ModelServer, seconds: float) -> int:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    threading.Thread(target=_watch_stdin, args=(loop, ended), daemon=True).start()
    async with server:
        print(json.dumps({"url": server.url, "port": server.port, "pid": os.getpid()}), flush=True)
        try:
            await asyncio.wait_for(ended.wait(), seconds)
        except TimeoutError:
            return 1
    return 0


def _watch_stdin(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    """os.read rather than sys.stdin: a reader blocked in the latter holds a lock that the interpreter needs to end."""
    while os.read(0, 65536):
        pass
    if not loop.is_closed():
        loop.call_soon_threadsafe(ended.set)


if __name__ == "__main__":
    sys.exit(main())

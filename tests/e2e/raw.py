"""A conversation in bytes with a server: what a client library would never send, and what it would hide."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.e2e.wire import frame


def message(method: str, params: Any = None, number: Any = None) -> bytes:
    """A framed request (with a number) or notification."""
    body = {"jsonrpc": "2.0", "method": method}
    body |= {"id": number} if number is not None else {}
    body |= {"params": params} if params is not None else {}
    return frame(json.dumps(body).encode())


def converse(
    command: list[str],
    data: bytes,
    env: Mapping[str, str],
    cwd: Path,
    *,
    answers: int = 0,
    end: bytes = b"",
    pause: float = 0,
) -> tuple[list[Any], int, str]:
    """Everything that the server says: messages, exit code, stderr. It gets `data`, after so many `answers` the `end`,
    and then the end of its input. `pause`: seconds between any two bytes of `data`."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=env, cwd=cwd, bufsize=0) as process:
        assert process.stdin
        assert process.stdout
        timer = threading.Timer(30, process.kill)
        timer.start()
        for piece in [bytes([byte]) for byte in data] if pause else [data]:
            process.stdin.write(piece)
            time.sleep(pause)
        output = b""
        while len(split(output)[0]) < answers and (chunk := process.stdout.read(65536)):
            output += chunk
        rest, errors = process.communicate(end)
        timer.cancel()
    found, left = split(output + rest)
    assert left == b"", left
    return found, process.returncode, errors.decode()


def split(data: bytes) -> tuple[list[Any], bytes]:
    """The whole messages at the start of `data`, and what follows. Nothing but frames may be in it."""
    found = []
    while b"\r\n\r\n" in data:
        head, _, body = data.partition(b"\r\n\r\n")
        names = {line.partition(b":")[0].lower() for line in head.split(b"\r\n")}
        assert b"content-length" in names <= {b"content-length", b"content-type"}, head
        size = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(body) < size:
            break
        found.append(json.loads(body[:size]))
        data = body[size:]
    return found, data

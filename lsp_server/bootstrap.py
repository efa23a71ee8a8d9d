"""Answers `initialize` before anything heavy is imported, and keeps the real stdout private.

Importing pygls takes 400 ms and the SDKs seconds; an editor waits for this answer before it does anything. Standard
library only.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from types import ModuleType

from lsp_server.capabilities import initialize_result
from lsp_server.framing import BadFrame, first_frame, frame

_CHUNK = 1 << 16


def serve() -> int:
    """Serve one client over stdin and stdout; returns the exit code."""
    output = private_stdout()
    received, answered = _first_message(0, output)
    return int(load_server().serve_stdio(received, output, answered))


def load_server() -> ModuleType:
    """The heavy part. Collecting garbage while thousands of classes are made would find none."""
    from lsp_server.class_cache import cached_classes

    gc.disable()
    try:
        with cached_classes():
            import lsp_server.server
    finally:
        gc.enable()
    return lsp_server.server


def private_stdout() -> int:
    """A copy of stdout for the protocol alone; whatever else prints, here or in a child, reaches stderr (K1)."""
    sys.stdout.flush()
    output = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return output


def _first_message(source: int, output: int) -> tuple[bytes, object]:
    """All bytes read so far, and the id of the `initialize` that was answered, or None when it was something else."""
    data = b""
    while True:
        try:
            found = first_frame(data)
        except BadFrame:
            return data, None
        if found is not None:
            return data, _answer(found[0], output)
        chunk = os.read(source, _CHUNK)
        if not chunk:
            return data, None
        data += chunk


def _answer(body: bytes, output: int) -> object:
    try:
        message = json.loads(body)
        if message["method"] != "initialize" or message.get("id") is None:
            return None
        reply = frame({"jsonrpc": "2.0", "id": message["id"], "result": initialize_result(message["params"])})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    while reply:
        reply = reply[os.write(output, reply) :]
    return message["id"]

"""An editor to be killed: starts a server, launches one agent and writes down all that it receives, until it dies.

    python -m tests.e2e.editor_process CONFIG    (JSON: command, env, cwd, stdin, held, requests, journal, stderr)

`journal` gets one JSON line per message, first {"pid": the server's}. `stdin`, if given, is (read end, write end) of a
pipe that somebody else holds open too; `held` a further descriptor to keep.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, BinaryIO


def main(config: dict[str, Any]) -> None:
    reader, writer = config["stdin"] or os.pipe()
    with open(config["stderr"], "wb") as errors:
        server = subprocess.Popen(
            config["command"],
            env=config["env"],
            cwd=config["cwd"],
            stdin=reader,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    os.close(reader)
    with open(config["journal"], "a", encoding="utf-8") as journal:
        note(journal, {"pid": server.pid})
        for request in config["requests"]:
            if request["method"] == "initialize":
                request["params"]["processId"] = os.getpid()
            data = json.dumps({"jsonrpc": "2.0", **request}).encode()
            os.write(writer, b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
        assert server.stdout
        while (message := read(server.stdout)) is not None:
            note(journal, message)


def note(journal: Any, value: Any) -> None:
    journal.write(json.dumps(value) + "\n")
    journal.flush()


def read(stream: BinaryIO) -> Any:
    length = 0
    while (line := stream.readline()) not in (b"\r\n", b""):
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    return json.loads(stream.read(length)) if line else None


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

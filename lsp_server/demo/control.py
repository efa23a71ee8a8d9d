"""The `/_...` side of the model server, for tests in another process. `model_server` lists the paths."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lsp_server.demo.http_wire import Connection, Request
from lsp_server.demo.loading import ScriptError, load_script

if TYPE_CHECKING:
    from lsp_server.demo.serving import ModelServer


def handle_control(server: ModelServer, request: Request, connection: Connection) -> None:
    query = request.query
    try:
        match request.method, request.path:
            case "GET", "/_log":
                entries = server.log[int(query.get("after", 0)) :]
                connection.json(200, {"requests": [e.wire() for e in entries], "problems": server.problems})
            case "GET", "/_wait":
                timeout = min(int(query.get("timeout_ms", 10_000)), 60_000) / 1000
                connection.work(_wait(server, int(query["n"]), timeout, query.get("conversation"), connection))
            case "POST", "/_script":
                server.set_script(load_script(json.loads(request.body)), reset="reset" in query)
                connection.json(200, {})
            case "POST", "/_release":
                server.gate(query["gate"]).set()
                connection.json(200, {})
            case "POST", "/_advance":
                server.advance(float(query["seconds"]))
                connection.json(200, {})
            case _:
                connection.json(404, {"error": f"no such control: {request.method} {request.path}"})
    except KeyError as error:
        connection.json(400, {"error": f"missing parameter {error}"})
    except (ScriptError, ValueError) as error:
        connection.json(400, {"error": str(error)})


async def _wait(server: ModelServer, count: int, timeout: float, name: str | None, connection: Connection) -> None:
    try:
        entry = await server.wait_for(count, timeout, name)
    except TimeoutError:
        connection.json(408, {"error": f"{len(server.requests(name))} of {count} requests arrived in {timeout:g} s"})
    else:
        connection.json(200, entry.wire())

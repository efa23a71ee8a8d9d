"""Requests as Google's Vertex takes them: the model is a part of the path, the version of the body. Pure."""

from __future__ import annotations

import json
import re

from attrs import evolve

from lsp_server.demo.http_wire import Request

_PATH = re.compile(r"/projects/[^/]+/locations/[^/]+/publishers/anthropic/models/(?P<model>[^/:]+):streamRawPredict")


def plain(request: Request) -> Request:
    """The same request as the service itself takes it; every other one as it is."""
    found = _PATH.fullmatch(request.path)
    if found is None:
        return request
    body = json.loads(request.body)
    version = body.pop("anthropic_version")
    own = {"model": found["model"], **body}
    headers = {**request.headers, "anthropic-version": version}
    return evolve(request, path="/v1/messages", headers=headers, body=json.dumps(own, ensure_ascii=False).encode())

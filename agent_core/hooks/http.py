"""`http` hooks: the JSON is posted, and the answer's body is what a command would have printed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import anyio

from agent_core.hooks.answers import of_text
from agent_core.hooks.values import MAX_TEXT, Answer, Http, failed

_MAX_BODY = 8 * MAX_TEXT
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


async def post(handler: Http, payload: Mapping[str, Any], *, env: Mapping[str, str], timeout: float) -> Answer:
    """Redirects are not followed: they would carry the headers elsewhere. Errors name the host, never a header."""
    try:
        with anyio.fail_after(timeout):
            status, body = await _post(handler, payload, env)
    except TimeoutError:
        return Answer("timeout", f"{_place(handler)} did not answer within {timeout:g} s, so it decides nothing")
    except (OSError, ValueError) as error:
        return failed(f"{_place(handler)} could not be asked: {type(error).__name__}")
    if not 200 <= status < 300:
        return failed(f"{_place(handler)} answered with status {status}")
    if len(body) > _MAX_BODY:
        return failed(f"{_place(handler)} answered with more than {_MAX_BODY} bytes")
    return of_text(str(payload["hook_event_name"]), body.decode("utf-8", "replace"))


async def _post(handler: Http, payload: Mapping[str, Any], env: Mapping[str, str]) -> tuple[int, bytes]:
    import aiohttp

    data = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
    headers = {name: _filled(value, handler, env) for name, value in handler.headers.items()}
    headers.setdefault("Content-Type", "application/json")
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session,
            session.post(handler.url, data=data, headers=headers, allow_redirects=False) as response,
        ):
            return response.status, await _read(response)
    except aiohttp.ClientError as error:
        raise OSError(type(error).__name__) from error


async def _read(response: Any) -> bytes:
    """One byte more than is allowed at most."""
    body = b""
    async for chunk in response.content.iter_chunked(16 * 1024):
        body += chunk
        if len(body) > _MAX_BODY:
            break
    return body


def _filled(value: str, handler: Http, env: Mapping[str, str]) -> str:
    """Only variables that the hook names in `allowedEnvVars` are put in; others are empty."""

    def of(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        return env.get(name, "") if name in handler.allowed_env else ""

    return _VARIABLE.sub(of, value)


def _place(handler: Http) -> str:
    """Without user, password and query, which may be secret."""
    try:
        parts = urlsplit(handler.url)
        return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
    except ValueError:
        return "the url of the hook"

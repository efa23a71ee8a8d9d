"""What the model server saw, in the order of arrival."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from attrs import asdict, define, field

SECRET_HEADERS = frozenset({"authorization", "x-api-key", "cookie", "proxy-authorization"})


@define
class Entry:
    """Times: `*_ns` from time.monotonic_ns, `wall` in seconds since the epoch. `sent_ns` is set when the answer's last
    byte was handed to the socket, `closed_early_ns` when the client went before that. `body` is exactly what came;
    `headers` are without credentials. `outcome` says how it was answered: `ok`, an error type, or a fault's kind."""

    number: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    arrived_ns: int
    wall: float
    begun_ns: int | None = None
    sent_ns: int | None = None
    closed_early_ns: int | None = None
    conversation: str | None = None
    turn: int | None = None
    attempt: int | None = None
    status: int | None = None
    outcome: str | None = None
    usage: Mapping[str, Any] | None = None

    @property
    def json(self) -> Any:
        """The parsed body."""
        return json.loads(self.body)

    def wire(self) -> dict[str, Any]:
        """As JSON: `body` as text, or `body_base64` when it is not UTF-8."""
        data = asdict(self)
        try:
            data["body"] = self.body.decode()
        except UnicodeDecodeError:
            data["body_base64"] = base64.b64encode(data.pop("body")).decode()
        return data


def without_secrets(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in SECRET_HEADERS}

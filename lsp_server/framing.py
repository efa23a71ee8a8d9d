"""LSP frames: `Content-Length` headers in any case, then a body. Standard library only: the bootstrap uses it."""

from __future__ import annotations

import json

MAX_BODY = 1 << 28
"""256 MiB; a larger length is taken for damage."""


class BadFrame(ValueError):
    """The stream cannot be read any further: nobody knows where the next frame starts."""


def frame(message: object) -> bytes:
    body = json.dumps(message, separators=(",", ":")).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def content_length(headers: list[bytes]) -> int:
    """BadFrame when the header is missing, no number, or too large."""
    for line in headers:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            text = value.strip()
            if text.isdigit() and int(text) <= MAX_BODY:
                return int(text)
            raise BadFrame(f"Content-Length {text[:40]!r} is no length of at most {MAX_BODY} bytes")
    raise BadFrame("a message came without a Content-Length header")


def first_frame(data: bytes) -> tuple[bytes, int] | None:
    """(body, bytes used) of a complete frame at the start of `data`, None while it is incomplete."""
    head, separator, _ = data.partition(b"\r\n\r\n")
    if not separator:
        return None
    start = len(head) + len(separator)
    end = start + content_length(head.split(b"\r\n"))
    return (data[start:end], end) if len(data) >= end else None

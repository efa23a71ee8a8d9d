"""How the service refuses a request, and the smallest checks."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any


class Invalid(Exception):
    """The request is refused; `str()` is the message of the error body."""

    def __init__(self, message: str, *, status: int = 400, type: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.status = status
        self.type = type


def expect(holds: bool, message: str) -> None:
    if not holds:
        raise Invalid(message)


def words(*lines: str) -> frozenset[str]:
    """The words of all lines."""
    return frozenset(word for line in lines for word in line.split())


def check_keys(value: Mapping[str, Any], known: Set[str], where: str) -> None:
    for key in value:
        expect(key in known, f"{where}.{key}: Extra inputs are not permitted".lstrip("."))


def need_text(block: Mapping[str, Any], where: str, section: str) -> None:
    """A text block must hold a text that is not empty."""
    text = block.get("text")
    expect(isinstance(text, str), f"{where}.text: Field required")
    if not text:
        cached = f"{where}.cache_control: cache_control cannot be set for empty text blocks"
        expect("cache_control" not in block, cached)
        raise Invalid(f"{section}: text content blocks must be non-empty ({where})")
    expect(bool(str(text).strip()), f"{section}: text content blocks must contain non-whitespace text ({where})")

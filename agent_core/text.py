"""Texts made shorter for a model or a person. Pure."""

from __future__ import annotations


def shortened_in_the_middle(text: str, limit: int) -> tuple[str, bool]:
    """(at most about `limit` characters, whether something was left out); the head and the tail stay."""
    if len(text) <= limit:
        return text, False
    half = limit // 2
    return f"{text[:half]}\n\n... {len(text) - 2 * half} characters left out ...\n\n{text[-half:]}", True

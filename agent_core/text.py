"""Texts made shorter, or fit to be sent, for a model or a person. Pure."""

from __future__ import annotations

import re
from typing import Any

_HOST_TAGS = "system-reminder|task-notification|fork-boilerplate|environment|usage|task-id|tool-use-id|output-file"
_IMITATION = re.compile(
    rf"<(?=/?(?:{_HOST_TAGS})\b)|^(?=(?:Human|Assistant|User|System):)", re.IGNORECASE | re.MULTILINE
)

_SURROGATE = re.compile("[\ud800-\udfff]")


def encodable(value: Any) -> Any:
    """JSON whose texts can be sent as UTF-8: halves of surrogate pairs are joined, lone ones become U+FFFD."""
    if isinstance(value, str):
        if value.isascii() or not _SURROGATE.search(value):
            return value
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {encodable(key): encodable(each) for key, each in value.items()}
    return [encodable(each) for each in value] if isinstance(value, list | tuple) else value


def harmless(text: str) -> str:
    """What an agent said, with a backslash before everything that its parent could take for words of the host or for a
    turn of the conversation, and a line that says so. Nothing is removed."""
    escaped, count = _IMITATION.subn(lambda match: f"\\{match.group()}", text)
    return (
        f"(The agent's text imitates marks of the host; they are escaped with a backslash.)\n{escaped}"
        if count
        else text
    )


def shortened_in_the_middle(text: str, limit: int) -> tuple[str, bool]:
    """(at most about `limit` characters, whether something was left out); the head and the tail stay."""
    if len(text) <= limit:
        return text, False
    half = limit // 2
    return f"{text[:half]}\n\n... {len(text) - 2 * half} characters left out ...\n\n{text[-half:]}", True


_LONGEST = 80


def shortened(prompt: str, words: int = 6) -> str:
    """A description made of the first words of the task, in one line however long they are."""
    parts = prompt.split()
    text = " ".join(parts[:words])
    if len(text) > _LONGEST:
        return f"{text[: _LONGEST - 1].rstrip()}…"
    return text + ("…" if len(parts) > words else "")

"""Text in which nothing hides: what a person approves is what they can see (A16). Pure."""

from __future__ import annotations

import re
import unicodedata

_BLANKS = re.compile(r"[ \t]{8,}")
"""So many blanks can push what follows out of a window."""
_SHOWN = frozenset("\n")


def visible(text: str) -> str:
    """Hidden, control and direction characters are written as `\\u{202e}`; long runs of blanks are counted."""
    shown = "".join(character if _plain(character) else f"\\u{{{ord(character):x}}}" for character in text)
    return _BLANKS.sub(lambda found: f" \\u{{20}}×{len(found[0])} ", shown)


def hides(text: str) -> bool:
    return visible(text) != text


def _plain(character: str) -> bool:
    if character in _SHOWN or character == " ":
        return True
    category = unicodedata.category(character)
    return not (category[0] == "C" or category in ("Zs", "Zl", "Zp") or _invisible(character))


def _invisible(character: str) -> bool:
    code = ord(character)
    return code in (0x115F, 0x1160, 0x3164, 0xFFA0, 0x2800, 0x034F) or 0xFE00 <= code <= 0xFE0F or code >= 0xE0000

"""Signatures of thinking blocks: derived from the text, so that an edited block is noticed, also after a restart."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256


def sign(thinking: str) -> str:
    return b64encode(sha256(b"thinking\0" + thinking.encode()).digest()).decode()


def is_signature_of(signature: object, thinking: object) -> bool:
    """Signatures that a script wrote itself start with "sig" and always hold."""
    if not isinstance(signature, str) or not isinstance(thinking, str):
        return False
    return signature == sign(thinking) or signature.startswith("sig")

"""A Messages API request body as a sequence of blocks, in the order in which the service renders it.

Render order is tools, system, messages. A text given as a plain string counts as one text block. Two blocks are the
same to the service when their bytes without `cache_control` are the same, key order included.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

from attrs import field, frozen

TOOLS, SYSTEM, MESSAGES = 0, 1, 2
Block = Mapping[str, Any]
compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode  # json.dumps makes an encoder per call


@frozen
class Position:
    """`where` is the place in the body as error messages name it; `digest` covers everything up to and including
    this block; `size` is the number of bytes so far; `ttl` is set where the request asks for a cache breakpoint."""

    section: int
    where: str
    digest: bytes
    size: int
    ttl: str | None


@frozen
class Rendered:
    """`marks[n]` is the digest after the first n messages; `tools` and `system` are digests of one section each."""

    positions: tuple[Position, ...]
    marks: tuple[bytes, ...] = field(repr=False)
    tools: bytes = field(repr=False)
    system: bytes = field(repr=False)

    @property
    def size(self) -> int:
        return self.positions[-1].size if self.positions else 0


def blocks_of(content: object) -> list[Any]:
    """The blocks of a `system` or `content` value; a plain string is one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def walk(body: Mapping[str, Any]) -> Iterator[tuple[int, str, str, Block]]:
    """(section, where, role, block) of every block, in render order. Expects a body that was checked for its shape."""
    for index, tool in enumerate(body.get("tools") or ()):
        yield TOOLS, f"tools.{index}", "", tool
    for index, block in enumerate(blocks_of(body.get("system"))):
        yield SYSTEM, f"system.{index}", "", block
    for number, message in enumerate(body.get("messages") or ()):
        for index, block in enumerate(blocks_of(message["content"])):
            yield MESSAGES, f"messages.{number}.content.{index}", message["role"], block


def literal(block: Block) -> bytes:
    """The bytes of a block without `cache_control`. UnicodeEncodeError when it holds half a surrogate pair."""
    bare = {key: value for key, value in block.items() if key != "cache_control"}
    if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
        bare["content"] = [_without(part) for part in block["content"]]
    return compact(bare).encode()


def render(body: Mapping[str, Any]) -> Rendered:
    digest, size = b"", 0
    positions: list[Position] = []
    sections = {TOOLS: b"", SYSTEM: b""}
    marks: list[bytes] = []
    automatic = _automatic_place(body)
    for section, where, role, block in walk(body):
        data = literal(block)
        if section == MESSAGES and where.endswith(".content.0"):
            marks.append(digest)
        digest = blake2b(b"\0".join((digest, role.encode(), data)), digest_size=16).digest()
        size += len(data)
        positions.append(Position(section, where, digest, size, _ttl(block) or (automatic or {}).get(where)))
        if section != MESSAGES:
            sections[section] = blake2b(sections[section] + b"\0" + data, digest_size=16).digest()
    return Rendered(tuple(positions), (*marks, digest), sections[TOOLS], sections[SYSTEM])


def _automatic_place(body: Mapping[str, Any]) -> dict[str, str] | None:
    """Where a top-level `cache_control` puts its breakpoint: the last block that can carry one."""
    control = body.get("cache_control")
    if not isinstance(control, Mapping):
        return None
    places = [where for _, where, _, block in walk(body) if "thinking" not in str(block.get("type"))]
    return {places[-1]: control.get("ttl", "5m")} if places else None


def _ttl(block: Block) -> str | None:
    for part in (block, *nested(block)):
        if isinstance(part.get("cache_control"), Mapping):
            return str(part["cache_control"].get("ttl", "5m"))
    return None


def nested(block: Block) -> list[Block]:
    """The blocks inside a tool result."""
    content = block.get("content") if block.get("type") == "tool_result" else None
    return [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []


def _without(part: object) -> object:
    if isinstance(part, Mapping):
        return {key: value for key, value in part.items() if key != "cache_control"}
    return part

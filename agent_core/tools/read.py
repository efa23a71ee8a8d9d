"""Read: a text file with line numbers, or an image."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_core.errors import ToolError
from agent_core.messages import ImageBlock
from agent_core.permissions.types import PermissionFacts, ToolKind
from agent_core.ports import FileState
from agent_core.text_file import TextFile, decode
from agent_core.tool import ToolContext, ToolResult
from agent_core.tools.files import digest, human_size, load, off_loop
from agent_core.tools.paths import check_place, one_line, resolve

_LINES = 2000
_LINE_LENGTH = 2000
_MAX_CHARACTERS = 100_000  # of one result, about 25,000 tokens
_MAX_IMAGE = 5 * 1024 * 1024  # the service's limit; it counts the base64 text

_KINDS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x7fELF", "an ELF program or library"),
    (b"SQLite format 3\0", "an SQLite database"),
)

_SCHEMA = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "description": "Absolute, or relative to the working directory."},
        "offset": {"type": "integer", "minimum": 1, "description": "First line to show, counted from 1."},
        "limit": {"type": "integer", "minimum": 1, "description": "How many lines to show (default 2000)."},
    },
    "required": ["file_path"],
    "additionalProperties": False,
}


class Read:
    name = "Read"
    description = (
        "Read one file. Text comes back with line numbers (number, tab, line); the numbers are not part of the file. "
        "Shows up to 2000 lines from the start; use offset and limit for other parts of a long file. Very long lines "
        "are cut. Unsaved changes in the user's editor are included. PNG, JPEG, GIF and WebP files are shown as "
        "images. Read a file before you change it with Edit or Write."
    )
    input_schema: Mapping[str, Any] = _SCHEMA
    kind = ToolKind.READ
    read_only = True
    concurrent = True

    def title(self, input: Mapping[str, Any]) -> str:
        return one_line(f"Read {input['file_path']}")

    async def facts(self, input: Mapping[str, Any], ctx: ToolContext) -> PermissionFacts:
        return PermissionFacts(reads=(resolve(input["file_path"], ctx.place),))

    async def run(self, input: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        check_place(ctx.place)
        path = resolve(input["file_path"], ctx.place)
        state = await load(path, ctx)
        kind = _kind(state.data)
        if kind.startswith("image/"):
            return await off_loop(len(state.data), lambda: _image(path, kind, state.data))
        first, count = int(input.get("offset", 1)), int(input.get("limit", _LINES))
        text = await off_loop(len(state.data), lambda: _page(path, kind, state, first, count))
        ctx.read_files.remember(path, digest(state.data))
        return ToolResult.ok(text)


def _kind(data: bytes) -> str:
    """A media type for images, words for other formats that start with a known mark, else an empty string."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for mark, kind in _KINDS if data.startswith(mark)), "")


def _image(path: Path, kind: str, data: bytes) -> ToolResult:
    encoded = base64.b64encode(data).decode("ascii")
    if len(encoded) > _MAX_IMAGE:
        raise ToolError(
            f"{path} is an image of {human_size(len(data))}; images can be shown up to "
            f"{human_size(_MAX_IMAGE * 3 // 4)}. Make a smaller copy first."
        )
    return ToolResult((ImageBlock(kind, encoded),))


def _page(path: Path, kind: str, state: FileState, first: int, count: int) -> str:
    file = decode(state.data)
    if kind or file.binary:
        size = human_size(len(state.data))
        raise ToolError(f"{path} is {kind or 'binary data'} ({size}), not text. Use Bash to look inside.")
    lines = file.text.removesuffix("\n").split("\n") if file.text else []
    if first > max(len(lines), 1):
        raise ToolError(f"{path} has {len(lines)} lines; offset {first} is past its end.")
    body, shown = _numbered(lines[first - 1 : first - 1 + count], first)
    notes = _notes(state, file, first, shown, len(lines))
    return "\n".join([*body, *(f"[{note}]" for note in notes)])


def _numbered(lines: list[str], first: int) -> tuple[list[str], int]:
    """As `cat -n` prints them; stops before the result gets too long, but shows at least one line."""
    out: list[str] = []
    room = _MAX_CHARACTERS
    for number, line in enumerate(lines, first):
        out.append(f"{number:6d}\t{_cut(line)}")
        room -= len(out[-1]) + 1
        if room < 0 and len(out) > 1:
            out.pop()
            break
    return out, len(out)


def _cut(line: str) -> str:
    if len(line) <= _LINE_LENGTH:
        return line
    return f"{line[:_LINE_LENGTH]}[... {len(line) - _LINE_LENGTH} more characters in this line]"


def _notes(state: FileState, file: TextFile, first: int, shown: int, total: int) -> list[str]:
    notes = []
    if not file.text:
        notes.append("the file exists and is empty")
    elif first > 1 or shown < total:
        last = first + shown - 1
        more = f"; read on with offset {last + 1}" if last < total else ""
        notes.append(f"lines {first}-{last} of {total}{more}")
    if state.unsaved:
        notes.append("this is the unsaved text in the user's editor; the file on disk differs")
    if file.encoding == "latin-1":
        notes.append("the file is not UTF-8; each byte is shown as its latin-1 character")
    elif file.encoding != "utf-8":
        notes.append(f"the file's encoding is {file.encoding}")
    return notes

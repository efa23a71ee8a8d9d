"""Edit: exact replacement of text in one file; every byte outside stays as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from agent_core.errors import ToolError
from agent_core.permissions.types import PermissionFacts, ToolKind
from agent_core.text_file import Span, TextFile, decode, encode_new
from agent_core.tool import ToolContext, ToolResult
from agent_core.tools.changes import Change, apply, facts_of, name_of
from agent_core.tools.files import digest, human_size, load, load_existing, off_loop
from agent_core.tools.paths import check_place, check_write, one_line, resolve

_LINES_LISTED = 20
_LINES_COMPARED = 5000

_SCHEMA = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "description": "Absolute, or relative to the working directory."},
        "old_string": {"type": "string", "description": "The exact text to replace, indentation included."},
        "new_string": {"type": "string", "description": "The text to put there."},
        "replace_all": {"type": "boolean", "description": "Replace every occurrence (default false)."},
    },
    "required": ["file_path", "old_string", "new_string"],
    "additionalProperties": False,
}


class Edit:
    name = "Edit"
    description = (
        "Replace text in a file. Read the file first. old_string must match exactly, white space included and without "
        "Read's line numbers, and must occur once: add surrounding lines to make it unique, or set replace_all. Write "
        "line ends as plain newlines; the file's own are kept. An empty old_string creates a file that does not exist."
    )
    input_schema: Mapping[str, Any] = _SCHEMA
    kind = ToolKind.EDIT
    read_only = False
    concurrent = False

    def title(self, input: Mapping[str, Any]) -> str:
        return one_line(f"Edit {input['file_path']}")

    async def facts(self, input: Mapping[str, Any], ctx: ToolContext) -> PermissionFacts:
        return await facts_of(await _plan(input, ctx))

    async def run(self, input: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        change = await _plan(input, ctx)
        if change.before is None:
            return await apply(change, f"Created {change.path}.", ctx)
        what = "1 place" if change.places == 1 else f"{change.places} places"
        return await apply(change, f"Edited {change.path} ({what}).", ctx)


async def _plan(input: Mapping[str, Any], ctx: ToolContext) -> Change:
    check_place(ctx.place)
    path = resolve(input["file_path"], ctx.place)
    check_write(path, ctx.place)
    old, new = input["old_string"], input["new_string"]
    if old.replace("\r\n", "\n") == new.replace("\r\n", "\n"):
        raise ToolError("old_string and new_string are the same, so there is nothing to edit.")
    if not old:
        return await _plan_new(path, new, ctx)
    state = await load(path, ctx)
    seen = ctx.read_files.digest(path)
    if seen is None:
        raise ToolError(f"You have not read {path}. Read it first, then edit it.")
    everywhere = bool(input.get("replace_all", False))
    stale = seen != digest(state.data)
    return await off_loop(
        len(state.data), lambda: _replace(path, name_of(path, ctx), state.data, old, new, everywhere, stale)
    )


async def _plan_new(path: Path, new: str, ctx: ToolContext) -> Change:
    state = await load_existing(path, ctx)
    if state is None:
        return Change(path, name_of(path, ctx), None, encode_new(new))
    file = decode(state.data)
    if file.text:
        raise ToolError(f"{path} exists and is not empty. Give the text to replace in old_string.")
    return Change(path, name_of(path, ctx), state.data, file.replace_all(new))


def _replace(path: Path, name: str, data: bytes, old: str, new: str, everywhere: bool, stale: bool) -> Change:
    file = decode(data)
    if file.binary:
        raise ToolError(f"{path} is binary data ({human_size(len(data))}), not text; Edit cannot change it.")
    old = file.comparable(old.removeprefix("\ufeff") if file.bom else old)
    spans = _occurrences(file.text, old, overlapping=not everywhere)
    if not spans:
        raise ToolError(f"old_string does not occur in {path}.{_hint(file.text, old)}")
    if len(spans) > 1 and not everywhere:
        raise ToolError(
            f"old_string occurs {len(spans)} times in {path}, on lines {_listed(file, spans)}. "
            "Add surrounding lines to make it unique, or set replace_all."
        )
    if stale and len(spans) > 1:
        raise ToolError(f"{path} has changed since you read it. Read it again before you replace several places.")
    return Change(path, name, data, file.replace(spans, new), len(spans))


def _occurrences(text: str, old: str, *, overlapping: bool) -> list[Span]:
    """Overlapping ones count when one place is meant: `aa` in `aaa` is ambiguous."""
    spans: list[Span] = []
    step = 1 if overlapping else len(old)
    at = text.find(old)
    while at >= 0 and old:
        spans.append((at, at + len(old)))
        at = text.find(old, at + step)
    return spans


def _listed(file: TextFile, spans: list[Span]) -> str:
    lines = [file.text.count("\n", 0, start) + 1 for start, _ in spans[:_LINES_LISTED]]
    return ", ".join(map(str, lines)) + (" and more" if len(spans) > _LINES_LISTED else "")


def _hint(text: str, old: str) -> str:
    if re.match(r"\s*\d+\t", old):
        return " It seems to start with a line number of Read: leave those out."
    wanted = next((line.strip() for line in old.split("\n") if line.strip()), "")
    lines = text.split("\n")[:_LINES_COMPARED]
    near = get_close_matches(wanted, [line.strip() for line in lines], n=1) if wanted else []
    if not near:
        return " Nothing in the file is like it: read the file again."
    number = next(number for number, line in enumerate(lines, 1) if line.strip() == near[0])
    return f" The nearest line is {number}: {lines[number - 1][:300]!r}"

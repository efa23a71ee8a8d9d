"""Grep: files by content. Looks at the disk, so unsaved changes in an editor are not searched (Read shows them)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import anyio.to_thread

from agent_core.errors import ToolError
from agent_core.permissions.types import PermissionFacts, ToolKind
from agent_core.tool import ToolContext, ToolResult
from agent_core.tools.file_types import FILE_TYPES
from agent_core.tools.globs import compile_glob, name_globs
from agent_core.tools.grep_output import Page, show_counts, show_files, show_lines
from agent_core.tools.paths import check_place, one_line, resolve
from agent_core.tools.search import Found, Query, search

_HEAD_LIMIT = 250
_MODES: Mapping[str, Literal["list", "lines", "count"]] = {
    "files_with_matches": "list",
    "content": "lines",
    "count": "count",
}
_SHOW = {"list": show_files, "lines": show_lines, "count": show_counts}

_SCHEMA = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "minLength": 1, "description": "Regular expression."},
        "path": {"type": "string", "description": "File or folder to search (default: the working directory)."},
        "glob": {
            "type": "string",
            "minLength": 1,
            "description": "Only files that fit, such as *.{ts,tsx} or !*.min.js.",
        },
        "type": {
            "type": "string",
            "description": "Only files of this type: py, js, ts, rust, go, java, c, cpp, md, ...",
        },
        "output_mode": {
            "enum": list(_MODES),
            "description": "files_with_matches (default): paths, newest first. content: the lines. count: per file.",
        },
        "-i": {"type": "boolean", "description": "Ignore case."},
        "-n": {"type": "boolean", "description": "Line numbers in content mode (default true)."},
        "-A": {"type": "integer", "minimum": 0, "description": "Lines after each match (content mode)."},
        "-B": {"type": "integer", "minimum": 0, "description": "Lines before each match (content mode)."},
        "-C": {"type": "integer", "minimum": 0, "description": "Lines before and after (content mode)."},
        "head_limit": {
            "type": "integer",
            "minimum": 0,
            "description": "At most so many results (default 250, 0: all).",
        },
        "multiline": {"type": "boolean", "description": "Let a match span lines; . matches newlines too."},
    },
    "required": ["pattern"],
    "additionalProperties": False,
}


class Grep:
    name = "Grep"
    description = (
        "Search the content of files with a regular expression (escape literal braces and parentheses). Files "
        "ignored by git and binary files are left out. Prefer this to grep or rg in Bash. It searches files on disk, "
        "not unsaved editor buffers."
    )
    input_schema: Mapping[str, Any] = _SCHEMA
    kind = ToolKind.SEARCH
    read_only = True
    concurrent = True

    def title(self, input: Mapping[str, Any]) -> str:
        where = f" in {input['path']}" if "path" in input else ""
        return one_line(f"Grep {input['pattern']}{where}")

    async def facts(self, input: Mapping[str, Any], ctx: ToolContext) -> PermissionFacts:
        return PermissionFacts(reads=(resolve(input.get("path", "."), ctx.place),))

    async def run(self, input: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        check_place(ctx.place)
        root = resolve(input.get("path", "."), ctx.place)
        query = _query(input)
        found = await search(query, root, ctx)
        page = _page(input, root, ctx)
        return ToolResult.ok(await anyio.to_thread.run_sync(_show, query, found, page, abandon_on_cancel=True))


def _query(input: Mapping[str, Any]) -> Query:
    mode = _MODES[input.get("output_mode", "files_with_matches")]
    around = int(input.get("-C", 0))
    return Query(
        mode,
        _names(input),
        input["pattern"],
        ignore_case=bool(input.get("-i", False)),
        multiline=bool(input.get("multiline", False)),
        before=int(input.get("-B", around)) if mode == "lines" else 0,
        after=int(input.get("-A", around)) if mode == "lines" else 0,
    )


def _names(input: Mapping[str, Any]) -> tuple[str, ...]:
    """A type decides exactly; a glob only as far as the last name, the rest is done by `_page`."""
    if "type" in input:
        try:
            return FILE_TYPES[input["type"]]
        except KeyError:
            known = ", ".join(FILE_TYPES)
            raise ToolError(f"type {input['type']!r} is unknown. Use glob, or one of: {known}.") from None
    glob = input.get("glob", "!")
    return () if glob.startswith("!") else name_globs([glob])


def _page(input: Mapping[str, Any], root: Path, ctx: ToolContext) -> Page:
    return Page(
        root=root,
        cwd=ctx.place.cwd,
        glob=compile_glob(input["glob"]) if "glob" in input else None,
        limit=int(input.get("head_limit", _HEAD_LIMIT)) or None,
        numbers=bool(input.get("-n", True)),
        context=any(int(input.get(key, 0)) for key in ("-A", "-B", "-C")),
        denied=ctx.denied,
    )


def _show(query: Query, found: Found, page: Page) -> str:
    assert query.mode != "files"
    text = _SHOW[query.mode](found, page)
    return f"{text}\n[there are too many results: the search was stopped early]" if found.cut else text

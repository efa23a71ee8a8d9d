"""Glob: files by name pattern, the newest first. It looks at the disk; a buffer that was never saved is not found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio.to_thread

from agent_core.errors import ToolError
from agent_core.permissions.types import PermissionFacts, ToolKind
from agent_core.tool import Place, ToolContext, ToolResult
from agent_core.tools.globs import GlobPattern, compile_glob, literal_folder, name_globs
from agent_core.tools.paths import check_place, one_line, resolve
from agent_core.tools.search import Found, Query, modified, search

_LIMIT = 100

_SCHEMA = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "minLength": 1, "description": "Such as **/*.py or src/**/*.{ts,tsx}."},
        "path": {"type": "string", "description": "Folder to look in (default: the working directory)."},
    },
    "required": ["pattern"],
    "additionalProperties": False,
}


class Glob:
    name = "Glob"
    description = (
        "Find files by name. Knows *, ?, ** (any folders), {a,b} and [abc]; a pattern without a slash matches at any "
        "depth. Returns up to 100 paths, most recently changed first. Files ignored by git are left out unless you "
        "name their folder. To search inside files use Grep."
    )
    input_schema: Mapping[str, Any] = _SCHEMA
    kind = ToolKind.SEARCH
    read_only = True
    concurrent = True

    def title(self, input: Mapping[str, Any]) -> str:
        where = f" in {input['path']}" if "path" in input else ""
        return one_line(f"Glob {input['pattern']}{where}")

    async def facts(self, input: Mapping[str, Any], ctx: ToolContext) -> PermissionFacts:
        return PermissionFacts(reads=(_root(input, ctx.place)[0],))

    async def run(self, input: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        check_place(ctx.place)
        root, rest, anchored = _root(input, ctx.place)
        if not root.is_dir():
            raise ToolError(f"There is no folder {root}. Give another path, or a pattern that starts elsewhere.")
        pattern = compile_glob(rest, anchored=anchored)
        found = await search(Query("files", name_globs([rest])), root, ctx)
        text = await anyio.to_thread.run_sync(_listing, found, pattern, root, ctx, abandon_on_cancel=True)
        return ToolResult.ok(text)


def _root(input: Mapping[str, Any], place: Place) -> tuple[Path, str, bool]:
    """The folder to walk, the pattern below it, and whether that one starts there: folders that the pattern spells out
    are walked into directly."""
    base = resolve(input.get("path", "."), place)
    folder, rest = literal_folder(input["pattern"])
    if not folder:
        return base, rest, False
    return resolve(str(base / Path(folder).expanduser()), place), rest or "**", True


def _listing(found: Found, pattern: GlobPattern, root: Path, ctx: ToolContext) -> str:
    paths = [(name, ctx.place.cwd / name) for name in found.names()]
    matching = [(name, path) for name, path in paths if pattern.matches(path.relative_to(root).as_posix())]
    fits = [(name, path) for name, path in matching if not ctx.denied(path)]
    if not fits:
        return "No files found."
    newest = sorted(fits, key=lambda pair: (-modified(pair[1]), pair[0]))
    lines = [name for name, _ in newest[:_LIMIT]]
    if len(fits) > _LIMIT:
        lines.append(f"[the {_LIMIT} newest of {len(fits)} files; use a narrower pattern or path to see others]")
    if found.cut:
        lines.append("[the tree is too big: not all of it was looked at]")
    return "\n".join(lines)

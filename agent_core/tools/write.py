"""Write: the whole content of one file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_core.errors import ToolError
from agent_core.permissions.types import PermissionFacts, ToolKind
from agent_core.text_file import decode, encode_new
from agent_core.tool import ToolContext, ToolResult
from agent_core.tools.changes import Change, apply, facts_of, name_of
from agent_core.tools.files import digest, load_existing, off_loop
from agent_core.tools.paths import check_place, check_write, one_line, resolve

_SCHEMA = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "description": "Absolute, or relative to the working directory."},
        "content": {"type": "string", "description": "The whole new content."},
    },
    "required": ["file_path", "content"],
    "additionalProperties": False,
}


class Write:
    name = "Write"
    description = (
        "Create a file or replace its whole content. Missing folders are made. An existing file must have been read "
        "with Read first and not have changed since; its encoding and line ends are kept. To change a part of a "
        "file use Edit. Don't create files that the task does not need."
    )
    input_schema: Mapping[str, Any] = _SCHEMA
    kind = ToolKind.EDIT
    read_only = False
    concurrent = False

    def title(self, input: Mapping[str, Any]) -> str:
        return one_line(f"Write {input['file_path']}")

    async def facts(self, input: Mapping[str, Any], ctx: ToolContext) -> PermissionFacts:
        return await facts_of(await _plan(input, ctx))

    async def run(self, input: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        change = await _plan(input, ctx)
        if change.after == change.before:
            return ToolResult.ok(f"{change.path} already has this content; nothing was written.")
        done = "Created" if change.before is None else "Updated"
        lines = len(input["content"].splitlines())
        return await apply(change, f"{done} {change.path} ({lines} line{'' if lines == 1 else 's'}).", ctx)


async def _plan(input: Mapping[str, Any], ctx: ToolContext) -> Change:
    check_place(ctx.place)
    path = resolve(input["file_path"], ctx.place)
    check_write(path, ctx.place)
    content: str = input["content"]
    state = await load_existing(path, ctx)
    name = name_of(path, ctx)
    if state is None:
        return Change(path, name, None, encode_new(content))
    seen, present = ctx.read_files.digest(path), state.data
    if seen is None:
        raise ToolError(f"{path} exists and you have not read it. Read it first, so that nothing is lost unseen.")
    if seen != digest(present):
        raise ToolError(f"{path} has changed since you read it. Read it again before you replace it.")
    after = await off_loop(len(present) + len(content), lambda: decode(present).replace_all(content))
    return Change(path, name, present, after)

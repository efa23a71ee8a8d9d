"""A planned change of one file: made by Edit and Write, shown to people first, then applied exactly as shown."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from attrs import define

from agent_core.permissions.types import PermissionFacts
from agent_core.text_file import TextFile, decode
from agent_core.tool import ToolContext, ToolResult
from agent_core.tools.files import digest, explain, off_loop
from agent_core.tools.paths import shown
from agent_core.tools.unified import unified


@define(slots=False, frozen=True)
class Change:
    """`before` None: the file is new. `name` is the path as shown in diffs. `places` counts replaced places."""

    path: Path
    name: str
    before: bytes | None
    after: bytes
    places: int = 1

    @cached_property
    def old(self) -> TextFile | None:
        return None if self.before is None else decode(self.before)

    @cached_property
    def new(self) -> TextFile:
        return decode(self.after)

    @cached_property
    def diff(self) -> str:
        return unified(None if self.old is None else self.old.text, self.new.text, self.name)

    @property
    def size(self) -> int:
        return len(self.after) + len(self.before or b"")


async def facts_of(change: Change) -> PermissionFacts:
    """The texts have the file's own line ends and no BOM, as an editor holds them."""
    diff = await off_loop(change.size, lambda: change.diff)
    before = None if change.old is None else change.old.raw
    return PermissionFacts(writes=(change.path,), diff=diff, edit=(change.path, before, change.new.raw))


async def apply(change: Change, done: str, ctx: ToolContext) -> ToolResult:
    """Write it and remember what the agent now knows. `done` is what to tell the model, as a sentence."""
    diff = await off_loop(change.size, lambda: change.diff)
    try:
        on_disk = await ctx.files.write(change.path, change.after, expected=change.before)
    except OSError as error:
        raise explain(error, change.path) from error
    ctx.read_files.remember(change.path, digest(change.after))
    changed = ((change.path, "added" if change.before is None else "modified"),)
    return ToolResult.ok(done if on_disk else f"{done} {_UNSAVED}", diff=diff, changed=changed)


def name_of(path: Path, ctx: ToolContext) -> str:
    return shown(path, ctx.place)


_UNSAVED = (
    "The file is open in an editor with unsaved changes, so the text went into that buffer and is not on disk yet: "
    "commands still see the old content until the user saves."
)

"""Open buffers: what the editor has told us of them, and the FileSystem and ReviewTarget ports on top of the disk.

Agents read unsaved text. A file with an unsaved buffer is changed in the editor, by a versioned edit, and never saved
by us; a reviewed change goes to the buffer whenever there is one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import anyio
from attrs import define, field

from agent_core.disk import Disk
from agent_core.disk_target import DiskTarget
from agent_core.errors import ReviewConflict, ToolError
from agent_core.ports import FileState
from agent_core.text_file import decode
from lsp_server.positions import offset_at

_SETTLE_SECONDS = 3.0
"""How long an editor may take to tell us the text after it has applied an edit."""

SendEdit = Callable[["OpenDocument", str], Awaitable[str | None]]
"""Ask the editor to make a document's text the given one; None when it says it did, else why not."""


async def _nobody(document: OpenDocument, text: str) -> str | None:
    return "no editor is connected"


@define(eq=False)
class OpenDocument:
    """`edit` asks the editor that holds it."""

    uri: str
    path: Path | None
    language: str
    version: int
    text: str
    send_edit: SendEdit = _nobody
    changed: anyio.Event = field(factory=anyio.Event)

    async def edit(self, text: str) -> str | None:
        """None when the editor says that it made the text this one, else why not."""
        return await self.send_edit(self, text)

    def update(self, text: str, version: int) -> None:
        self.text, self.version = text, version
        self.changed.set()
        self.changed = anyio.Event()

    async def becomes(self, text: str) -> bool:
        """True once the editor has told us exactly `text`."""
        with anyio.move_on_after(_SETTLE_SECONDS):
            while self.text != text:
                await self.changed.wait()
        return self.text == text


@define(eq=False)
class OpenDocuments:
    """Of one editor. `encoding` is the negotiated position encoding."""

    encoding: str = "utf-16"
    send_edit: SendEdit = _nobody
    _by_uri: dict[str, OpenDocument] = field(factory=dict)

    def opened(self, params: Any) -> None:
        item = params["textDocument"]
        path = uri_to_path(item["uri"])
        language, version, text = item.get("languageId", ""), item["version"], item["text"]
        document = OpenDocument(item["uri"], path, language, version, text, self.send_edit)
        self._by_uri[item["uri"]] = document

    def changed(self, params: Any) -> None:
        document = self._by_uri.get(params["textDocument"]["uri"])
        if document is None:
            return
        text = document.text
        for change in params["contentChanges"]:
            text = self._apply(text, change)
        document.update(text, params["textDocument"].get("version") or document.version)

    def closed(self, params: Any) -> None:
        self._by_uri.pop(params["textDocument"]["uri"], None)

    def find(self, path: Path) -> OpenDocument | None:
        """By the path as opened, or by what a link points to."""
        wanted = {path, path.resolve()}
        for document in self._by_uri.values():
            if document.path is not None and (document.path in wanted or document.path.resolve() in wanted):
                return document
        return None

    def below(self, folder: Path) -> list[tuple[Path, OpenDocument]]:
        named = [(each.path.resolve(), each) for each in self._by_uri.values() if each.path is not None]
        return [(path, document) for path, document in named if path.is_relative_to(folder.resolve())]

    def by_uri(self, uri: str) -> OpenDocument | None:
        return self._by_uri.get(uri)

    def _apply(self, text: str, change: Any) -> str:
        if "range" not in change:
            return str(change["text"])
        start, end = (
            offset_at(text, change["range"][side]["line"], change["range"][side]["character"], self.encoding)
            for side in ("start", "end")
        )
        return text[:start] + str(change["text"]) + text[end:]


@define(eq=False)
class Buffers:
    """The open documents of all connected editors; the one that connected first counts."""

    sources: list[OpenDocuments] = field(factory=list)

    def find(self, path: Path) -> OpenDocument | None:
        return next((found for each in self.sources if (found := each.find(path)) is not None), None)

    def below(self, folder: Path) -> list[tuple[Path, OpenDocument]]:
        """With their real paths."""
        return [found for each in self.sources for found in each.below(folder)]


@define(eq=False)
class EditorFiles:
    """FileSystem: what agents read and write."""

    documents: Buffers
    disk: Disk = field(factory=Disk)

    async def read(self, path: Path) -> FileState:
        document = self.documents.find(path)
        if document is None:
            return await self.disk.read(path)
        if await self._saved(path, document):
            return await self.disk.read(path)
        return FileState(document.text.encode("utf-8", "surrogatepass"), unsaved=True)

    async def write(self, path: Path, data: bytes, *, expected: bytes | None) -> bool:
        document = self.documents.find(path)
        if document is None or await self._saved(path, document):
            return await self.disk.write(path, data, expected=expected)
        if expected != document.text.encode("utf-8", "surrogatepass"):
            raise ToolError(f"{path} was changed in the editor meanwhile; read it again")
        text = data.decode("utf-8", "surrogatepass")
        if reason := await document.edit(text):
            raise ToolError(f"{path} has unsaved changes in the editor, and the editor refused the edit: {reason}")
        if not await document.becomes(text):
            raise ToolError(f"{path}: the editor's text is not what was written; read it again")
        return False

    async def unsaved(self, folder: Path) -> Mapping[Path, bytes]:
        found: dict[Path, bytes] = {}
        for path, document in self.documents.below(folder):
            if not await self._saved(path, document):
                found.setdefault(path, await self._as_saved(path, document))
        return found

    async def _as_saved(self, path: Path, document: OpenDocument) -> bytes:
        """In the encoding and with the line ends of the file, where it has one that can hold the text."""
        try:
            return decode((await self.disk.read(path)).data).replace_all(document.text)
        except (OSError, ToolError):
            return document.text.encode("utf-8", "surrogatepass")

    async def _saved(self, path: Path, document: OpenDocument) -> bool:
        try:
            on_disk = decode((await self.disk.read(path)).data).text
        except (OSError, ToolError):
            return False
        return _lf(document.text).removeprefix("\ufeff") == _lf(on_disk).removeprefix("\ufeff")


@define(eq=False)
class EditorTarget:
    """ReviewTarget: where reviewed changes go."""

    documents: Buffers
    disk: DiskTarget = field(factory=DiskTarget)

    async def read_all(self, paths: Sequence[Path]) -> list[bytes | str | OSError | None]:
        found = {path: document.text for path in paths if (document := self.documents.find(path)) is not None}
        closed = [path for path in paths if path not in found]
        contents = dict(zip(closed, await self.disk.read_all(closed), strict=True)) if closed else {}
        return [found[path] if path in found else contents[path] for path in paths]

    def keeps(self, path: Path) -> str | None:
        if self.documents.find(path) is None:
            return None
        return f"{path} is open in the editor and would be deleted; close it first"

    async def write(
        self, path: Path, before: bytes | str | None, after: bytes | str | None, executable: bool | None = None
    ) -> None:
        document = self.documents.find(path)
        if document is None:
            if isinstance(before, str):
                raise ReviewConflict(f"{path} was closed in the editor meanwhile; review it again")
            await self.disk.write(path, before, after, executable)
        elif document.text != before:
            raise ReviewConflict(f"{path} was changed in the editor meanwhile; review it again")
        elif not isinstance(after, str):
            raise ReviewConflict(self.keeps(path) or "")
        elif reason := await document.edit(after):
            raise ReviewConflict(f"the editor refused the edit of {path}: {reason}")
        elif not await document.becomes(after):
            raise ReviewConflict(f"{path}: the editor's text is not what was reviewed; nothing is taken for applied")


def uri_to_path(uri: str) -> Path | None:
    """None for anything that is no local file."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path:
        return None
    return Path(unquote(parts.path))


def path_to_uri(path: Path) -> str:
    return path.as_uri()


def _lf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")

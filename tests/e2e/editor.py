"""Text documents as an editor keeps them, and workspace edits applied as faithfully as an editor applies them.

    editor = Editor(client, encoding)            # the position encoding that the server chose
    client.on("workspace/applyEdit", editor.apply)
    doc = editor.open(path); editor.change(path, "new text"); doc.text, doc.version

An edit that a good editor could not apply as meant (a position beyond the text or inside a character, edits that
overlap, an unknown annotation) is a problem of the client and fails the test; a version mismatch is refused, as editors
do.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from attrs import define, field

from tests.e2e.lsp_client import LspClient

UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}  # codec, bytes per unit


class Refused(Exception):
    """The edit is not applied; nothing changed. The text is the failureReason."""


@define
class Document:
    uri: str
    text: str
    version: int = 1
    language: str = "plaintext"


@define
class Editor:
    """`confirm(annotation)` decides on edits that need confirmation. `auto_open`: a file that is not open is opened and
    changed in the editor, unsaved; else it is written to the disk."""

    client: LspClient
    encoding: str = "utf-16"
    auto_open: bool = True
    confirm: Callable[[Mapping[str, Any]], bool] = lambda _: True
    documents: dict[str, Document] = field(factory=dict)
    applied: list[Mapping[str, Any]] = field(factory=list)

    def open(self, path: Path, text: str | None = None, language: str = "plaintext") -> Document:
        """Sends didOpen with the file's text, or with `text` (a buffer that was never saved)."""
        text = path.read_bytes().decode() if text is None else text
        doc = self.documents[path.as_uri()] = Document(path.as_uri(), text, 1, language)
        item = {"uri": doc.uri, "languageId": language, "version": 1, "text": text}
        self.client.notify("textDocument/didOpen", {"textDocument": item})
        return doc

    def change(self, path: Path, text: str) -> Document:
        """The person typed: the whole text is new."""
        return self._set(self.documents[path.as_uri()], text)

    def change_range(self, path: Path, edit: Mapping[str, Any]) -> Document:
        """The person typed: one TextEdit, sent as an incremental change."""
        doc = self.documents[path.as_uri()]
        doc.text, doc.version = apply_text_edits(doc.text, [edit], self.encoding), doc.version + 1
        self._did_change(doc, [{"range": edit["range"], "text": edit["newText"]}])
        return doc

    def save(self, path: Path) -> None:
        doc = self.documents[path.as_uri()]
        path.write_bytes(doc.text.encode())
        self.client.notify("textDocument/didSave", {"textDocument": {"uri": doc.uri}})

    def close(self, path: Path) -> None:
        doc = self.documents.pop(path.as_uri())
        self.client.notify("textDocument/didClose", {"textDocument": {"uri": doc.uri}})

    def apply(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Handler of workspace/applyEdit: the ApplyWorkspaceEditResult."""
        try:
            self.apply_edit(params["edit"])
        except Refused as error:
            return {"applied": False, "failureReason": str(error)}
        self.applied.append(params["edit"])
        return {"applied": True}

    def apply_edit(self, edit: Mapping[str, Any]) -> None:
        """Refused for an edit that does not suit the present state, before any text is changed; ValueError for one that
        is wrong in itself."""
        annotations = edit.get("changeAnnotations", {})
        unversioned = [
            {"textDocument": {"uri": uri, "version": None}, "edits": edits}
            for uri, edits in edit.get("changes", {}).items()
        ]
        changes = edit.get("documentChanges", unversioned)
        self._confirm(changes, annotations)
        self._check_versions([change["textDocument"] for change in changes if "kind" not in change])
        texts = {c["textDocument"]["uri"]: self._edited(c) for c in changes if "kind" not in c and self._exists(c)}
        for change in changes:
            if "kind" in change:
                self._resource(change)
            else:
                uri = change["textDocument"]["uri"]
                self._write(uri, texts[uri] if uri in texts else self._edited(change))

    def _exists(self, change: Mapping[str, Any]) -> bool:
        uri = change["textDocument"]["uri"]
        return uri in self.documents or path_of(uri).exists()

    def _confirm(self, changes: Sequence[Mapping[str, Any]], annotations: Mapping[str, Any]) -> None:
        parts = [part for change in changes for part in (change, *change.get("edits", ()))]
        for name in dict.fromkeys(part["annotationId"] for part in parts if "annotationId" in part):
            if name not in annotations:
                raise ValueError(f"the edit names the annotation {name!r}, which it does not have")
            if annotations[name].get("needsConfirmation") and not self.confirm(annotations[name]):
                raise Refused(f"not confirmed: {annotations[name]['label']}")

    def _check_versions(self, identifiers: Sequence[Mapping[str, Any]]) -> None:
        uris = [identifier["uri"] for identifier in identifiers]
        if len(set(uris)) < len(uris):
            raise ValueError(f"two edits of one document: {uris}")
        for identifier in identifiers:
            uri, wanted = identifier["uri"], identifier["version"]
            present = self.documents[uri].version if uri in self.documents else None
            if wanted is not None and wanted != present:
                raise Refused(f"{uri} has version {present}, the edit is for version {wanted}")

    def _edited(self, change: Mapping[str, Any]) -> str:
        """The text after the edits of one TextDocumentEdit."""
        uri = change["textDocument"]["uri"]
        doc = self.documents.get(uri)
        text = doc.text if doc else path_of(uri).read_bytes().decode()
        return apply_text_edits(text, change["edits"], self.encoding)

    def _write(self, uri: str, text: str) -> None:
        if uri not in self.documents and not self.auto_open:
            path_of(uri).write_bytes(text.encode())
            return
        doc = self.documents[uri] if uri in self.documents else self.open(path_of(uri))
        self._set(doc, text)

    def _set(self, doc: Document, text: str) -> Document:
        doc.text, doc.version = text, doc.version + 1
        self._did_change(doc, [{"text": text}])
        return doc

    def _did_change(self, doc: Document, changes: list[dict[str, Any]]) -> None:
        identifier = {"uri": doc.uri, "version": doc.version}
        self.client.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": changes})

    def _resource(self, change: Mapping[str, Any]) -> None:
        options = change.get("options", {})
        match change["kind"]:
            case "create":
                self._create(path_of(change["uri"]), options)
            case "rename":
                self._rename(change["oldUri"], change["newUri"], options)
            case "delete":
                self._delete(change["uri"], options)
            case kind:
                raise ValueError(f"unknown resource operation {kind!r}")

    def _create(self, path: Path, options: Mapping[str, Any]) -> None:
        if path.exists() and not options.get("overwrite"):
            if options.get("ignoreIfExists"):
                return
            raise Refused(f"{path} exists")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")

    def _rename(self, old: str, new: str, options: Mapping[str, Any]) -> None:
        target = path_of(new)
        if target.exists() and not options.get("overwrite"):
            if options.get("ignoreIfExists"):
                return
            raise Refused(f"{target} exists")
        target.parent.mkdir(parents=True, exist_ok=True)
        path_of(old).replace(target)
        if doc := self.documents.get(old):
            self.close(path_of(old))
            self.open(target, doc.text, doc.language)

    def _delete(self, uri: str, options: Mapping[str, Any]) -> None:
        path = path_of(uri)
        if not path.exists():
            if options.get("ignoreIfNotExists"):
                return
            raise Refused(f"{path} does not exist")
        if path.is_dir():
            if any(path.iterdir()) and not options.get("recursive"):
                raise Refused(f"{path} is not empty")
            shutil.rmtree(path)
            return
        path.unlink()
        if uri in self.documents:
            self.close(path)


def path_of(uri: str) -> Path:
    parts = urlsplit(uri)
    if parts.scheme != "file":
        raise ValueError(f"not a file URI: {uri}")
    return Path(unquote(parts.path))


def apply_text_edits(text: str, edits: Sequence[Mapping[str, Any]], encoding: str) -> str:
    """All edits refer to the text before any of them. Several inserts at one place keep their order."""
    starts = line_starts(text)
    spans = []
    for edit in edits:
        begin = offset_at(text, starts, edit["range"]["start"], encoding)
        end = offset_at(text, starts, edit["range"]["end"], encoding)
        if end < begin:
            raise ValueError(f"a range that ends before it begins: {edit}")
        spans.append((begin, end, edit["newText"]))
    spans.sort(key=lambda span: (span[0], span[1]))
    done, pieces = 0, []
    for begin, end, new in spans:
        if begin < done:
            raise ValueError(f"overlapping edits: {edits}")
        pieces += [text[done:begin], new]
        done = end
    return "".join([*pieces, text[done:]])


def line_starts(text: str) -> list[int]:
    r"""Lines end at \n, \r\n and \r only."""
    starts, index = [0], 0
    while index < len(text):
        if text[index] == "\r" and text[index + 1 : index + 2] == "\n":
            index += 1
        if text[index] in "\r\n":
            starts.append(index + 1)
        index += 1
    return starts


def offset_at(text: str, starts: Sequence[int], position: Mapping[str, int], encoding: str) -> int:
    """Index into `text`. ValueError for a place that is not in the text or inside a character."""
    line, column = position["line"], position["character"]
    if line >= len(starts):
        raise ValueError(f"line {line} of {len(starts)}")
    end = starts[line + 1] if line + 1 < len(starts) else len(text)
    content = text[starts[line] : end].rstrip("\r\n")
    codec, width = UNITS[encoding]
    data = content.encode(codec)
    if column * width > len(data):
        raise ValueError(f"column {column} of line {line}, which has {len(data) // width} units")
    try:
        return starts[line] + len(data[: column * width].decode(codec))
    except UnicodeDecodeError:
        raise ValueError(f"column {column} of line {line} is inside a character") from None

"""Keeps the code that attrs compiles for classes, as `__pycache__` does for modules. Standard library only.

attrs writes the methods of each class as source and compiles it at import; for lsprotocol's 550 classes and ours that
is a third of the time to the first answered request. Compiled once, they are read back from the user's cache folder.

This wraps the name `compile` in attrs' private module, so it does nothing when that module does not look as expected
(checked with attrs 26.1). A missing, damaged or foreign file costs the time that it would have saved, nothing else.
"""

from __future__ import annotations

import builtins
import marshal
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType

_LARGEST = 1 << 25
_WORTH_WRITING = 100
"""So many classes that the file does not know, because it is new or a library has changed."""


@contextmanager
def cached_classes() -> Iterator[None]:
    """Around the imports. The file is written after an import that found little in it."""
    from attr import _make

    if "compile" in vars(_make) or not hasattr(_make, "_linecache_and_compile"):
        yield
        return
    path = _folder() / f"attrs-{_version(Path(_make.__file__))}-{sys.implementation.cache_tag}.bin"
    known = _read(path)
    found: dict[str, CodeType] = dict(known)

    def compile(source: str, filename: str, mode: str) -> CodeType:
        code = found.get(source)
        if code is None:
            code = found[source] = builtins.compile(source, filename, mode)
        return code

    _make.compile = compile  # type: ignore[attr-defined]
    try:
        yield
    finally:
        del _make.compile  # type: ignore[attr-defined]
    if len(found) - len(known) > _WORTH_WRITING:
        _write(path, found)


def _folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "agent-ls"


def _version(module: Path) -> str:
    """Another attrs has another file here; asking for its version would import 40 ms of `importlib.metadata`."""
    found = module.stat()
    return f"{found.st_size:x}-{found.st_mtime_ns:x}"


def _read(path: Path) -> dict[str, CodeType]:
    """Only a file that nobody else can have written: what is in it will be run."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            if found.st_uid != os.geteuid() or found.st_mode & 0o022 or found.st_size > _LARGEST:
                return {}
            cache = marshal.loads(file.read())
    except (OSError, ValueError, EOFError, TypeError):
        return {}
    return cache if isinstance(cache, dict) else {}


def _write(path: Path, found: dict[str, CodeType]) -> None:
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with temporary.open("xb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(marshal.dumps(found))
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)

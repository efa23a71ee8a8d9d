"""Sockets for `serve --listen` and `serve --connect`: private, and never left behind as dead files."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
import sys
import threading
from pathlib import Path


class CannotListen(Exception):
    """Says why, and what to do."""


class SocketWriter:
    """pygls' Writer over a stream that buffers without blocking; what a client does not read counts as pending."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    @property
    def pending_bytes(self) -> int:
        return self._writer.transport.get_write_buffer_size()

    def is_answered(self, message_id: object) -> bool:
        return False

    def write(self, data: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(data)

    def close(self) -> None:
        self._writer.close()


def private_socket(path: Path) -> socket.socket:
    """A listening Unix socket of mode 0600. CannotListen when the path is in use, or is something else."""
    _remove_dead(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listening.bind(str(path))
    except OSError as error:
        listening.close()
        raise CannotListen(f"cannot listen on {path}: {error.strerror or error}") from error
    finally:
        os.umask(before)
    listening.listen()
    listening.setblocking(False)
    return listening


def _remove_dead(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise CannotListen(f"cannot listen on {path}: {error.strerror}") from error
    if not stat.S_ISSOCK(found.st_mode):
        raise CannotListen(f"{path} exists and is no socket; choose another path")
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except OSError as error:
            raise CannotListen(f"cannot listen on {path}: {error.strerror}") from error
    raise CannotListen(f"another agent-ls already listens on {path}; use serve --connect {path}")


def join_stdio(path: Path, output: int) -> int:
    """Bytes from stdin to the socket and from the socket to `output`, until either ends; the exit code."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.connect(str(path))
    except OSError as error:
        sys.stderr.write(
            f"agent-ls: nobody listens on {path} ({error.strerror}); start agent-ls serve --listen {path}\n"
        )
        return 1
    threading.Thread(target=_send, args=(link,), daemon=True).start()
    with contextlib.suppress(OSError):
        while data := link.recv(1 << 16):
            while data:
                data = data[os.write(output, data) :]
    return 0


def _send(link: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := os.read(0, 1 << 16):
            link.sendall(data)
        link.shutdown(socket.SHUT_WR)

"""`agent-ls`. Standard library only up to the point where the client has its first answer."""

from __future__ import annotations

import sys


def main() -> int:
    """The exit code; 130 when a person interrupts what has no handler of its own."""
    try:
        return _run(sys.argv[1:])
    except KeyboardInterrupt:
        return 130


def _run(arguments: list[str]) -> int:
    """Without a sub-command, a pipe on stdin means an editor that starts a language server."""
    if arguments == ["serve"] or arguments == ["serve", "--stdio"] or (not arguments and not sys.stdin.isatty()):
        from lsp_server.bootstrap import serve

        return serve()
    from lsp_server.cli import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())

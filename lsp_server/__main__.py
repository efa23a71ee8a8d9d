"""`agent-ls`. Standard library only up to the point where the client has its first answer."""

from __future__ import annotations

import sys


def main() -> int:
    """Without a sub-command, a pipe on stdin means an editor that starts a language server."""
    arguments = sys.argv[1:]
    if arguments == ["serve"] or arguments == ["serve", "--stdio"] or (not arguments and not sys.stdin.isatty()):
        from lsp_server.bootstrap import serve

        return serve()
    from lsp_server.cli import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())

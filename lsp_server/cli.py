"""`agent-ls run | demo | agents | permissions | doctor`: what is not on the path of an editor's first answer."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

from lsp_server.capabilities import VERSION
from lsp_server.headless import add_arguments
from lsp_server.headless import main as run_headless
from lsp_server.permissions import add_arguments as add_permission_arguments
from lsp_server.permissions import main as explain_permissions


def run(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="agent-ls", description="Sub-agents in the editor: a language server for coding agents."
    )
    parser.add_argument("--version", action="version", version=f"agent-ls {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    serve = commands.add_parser("serve", help="speak LSP over stdin and stdout (what an editor starts)")
    serve.add_argument("--stdio", action="store_true", help="the default, accepted because many clients pass it")
    serve.add_argument("--listen", metavar="PATH", type=Path, help="serve several clients on a private Unix socket")
    serve.add_argument("--connect", metavar="PATH", type=Path, help="join stdin and stdout to such a server")
    commands.add_parser("demo", help="the main job on an embedded example, in this terminal", add_help=False)
    add_arguments(commands.add_parser("run", help="one task without an editor; asks are denied"))
    commands.add_parser("doctor", help="check credentials, endpoint, git and configuration")
    commands.add_parser("agents", help="the agents that can be launched here, and faults of their files")
    rules = commands.add_parser("permissions", help="what the permission rules here say, and why")
    add_permission_arguments(rules)
    options, rest = parser.parse_known_args(arguments)
    if options.command == "demo":
        from lsp_server.demo.__main__ import main

        return main(rest)
    if rest:
        parser.error(f"unknown argument {rest[0]!r}")
    if options.command == "serve":
        return _serve(options)
    if options.command == "run":
        return run_headless(options)
    if options.command == "permissions":
        return explain_permissions(options)
    if options.command == "doctor":
        from lsp_server.doctor import main as examine

        return examine()
    if options.command == "agents":
        return asyncio.run(_agents())
    parser.print_help(sys.stderr)
    return 2


def _serve(options: argparse.Namespace) -> int:
    from lsp_server.bootstrap import load_server, private_stdout, serve

    if options.connect is not None:
        from lsp_server.connections import join_stdio

        return join_stdio(options.connect, private_stdout())
    return load_server().serve_socket(options.listen) if options.listen is not None else serve()


async def _agents() -> int:
    from agent_core.runtime import Runtime

    definitions, problems = await Runtime(env=dict(os.environ), folders=(Path.cwd(),)).definitions()
    for found in definitions.active:
        sys.stdout.write(f"{found.name}  ({found.source}, {found.model or 'inherit'})\n    {found.description}\n")
    for problem in problems:
        sys.stderr.write(f"{problem.path}:{problem.line + 1}: {problem.message}\n")
    return 1 if any(problem.severity == 1 for problem in problems) else 0

"""The language server: one consumer of `agent_core`, over LSP.

    bootstrap.py, capabilities.py, framing.py   answer `initialize` at once (standard library only)
    server.py                                   owns main: signals, parent watch, shutdown in order
    transport.py, rpc.py, wire.py               bytes, the hardened protocol class, JSON to wire types
    protocol.py                                 wire types and method names: the only place that writes them
    convert.py                                  core values to wire values and back
    session.py                                  one connected editor: the package's only mutable state
    methods/                                    one inbound method each
    outbound.py, prompts.py, progress.py,
    plain_progress.py                           what we say, ask and report to the editor
    faults.py                                   faults of agent and settings files as diagnostics
    documents.py, positions.py, edits.py        open buffers, and edits to them
    demo/                                       the scripted model service and the terminal client of `agent-ls demo`

Deliberately absent: anything that decides (permissions, review, prompts live in the core), and any code action or
command for clients that bring their own. To add a method: its types and a row in `protocol.py`, its name in
`capabilities.py`, a file in `methods/` and a row in its table, a section in `protocol.md`.
"""

"""A scripted Messages API server, and the terminal client of `agent-ls demo` that uses it.

`model_server`  the server: from `http_wire` (HTTP) by `serving` (routes, log) and `validation` (what is refused) to
                `answering` (turn, fault, cache share) and `streaming` (bytes, delays). A script is data: `script`.
`__main__`      the demo: a small project with a failing test (`project`), the real language server as a child
                (`connection`), the steps (`terminal`), what a person sees and types (`screen`, `lines`), and what must
                hold (`checks`).

Deliberately absent: the language server imports nothing from here (`agent-ls demo` does), and only its framing is
imported here: the demo meets the server as an editor does, as a process.
To add a fault: `script.Fault`, then `streaming`. To add a rule of the service: `validation` or `messages_check`.
"""

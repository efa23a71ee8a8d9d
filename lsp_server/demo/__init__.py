"""A scripted Messages API server, and the terminal client of `agent-ls demo` that uses it.

`model_server`  the server: from `http_wire` (HTTP) by `serving` (routes, log) and `validation` (what is refused) to
                `answering` (turn, fault, cache share) and `streaming` (bytes, delays). A script is data: `script`.
`__main__`      the demo: a small project with a failing test (`project`), the real language server and the model
                server as children (`connection`), what a person sees and is asked (`terminal`).

Deliberately absent: nothing here is imported by the language server, and nothing here imports it.
To add a fault: `script.Fault`, then `streaming`. To add a rule of the service: `validation` or `messages_check`.
"""

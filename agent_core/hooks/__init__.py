"""Hooks: programs, services and questions of people that are called at fixed moments of an agent's work (HK).

    values.py     what a settings entry says, and what one hook answered
    parsing.py    settings and front matter to `Hook`s; every fault is a Problem
    matching.py   which hooks a moment concerns, and how their answers become one `Verdict`
    answers.py    exit code, output and JSON to an `Answer`
    command.py http.py model.py   one kind of hook each; runner.py chooses among them and reports every failure
    dispatch.py   `dispatch(agent, engine, moment)`: the one way in, for the engine
    moments.py    what each event tells its hooks
    occasions.py  the calls at the beginning and the end of sessions and agents, and after a tool

Deliberately absent: hooks of plugins and skills, `asyncRewake`, `defer` as more than an ask,
PowerShell, and MCP servers (`HookRunner.mcp_tool` is where they come in). To add an event, touch `values.EVENTS`,
`moments.py` and its caller.
"""

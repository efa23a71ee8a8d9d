"""The built-in tools, one module each.

    bash.py    a shell command            edit.py    exact replacement in a file    glob.py   files by name
    grep.py    files by content           read.py    a file with line numbers       write.py  a whole file

`builtin.py` lists them in their fixed order. Shared:

    paths.py      paths from a model made absolute; what an isolated agent must not touch (WT-2)
    files.py      reading through the FileSystem port, errors in plain words
    changes.py    a planned change: its diff, its facts, applying it; `unified.py` draws the diff
    search.py     ripgrep or, without it, the program `walk.py`; `globs.py` patterns, `file_types.py`, `grep_output.py`

Deliberately absent: permissions (a tool states facts, the policy decides), validation of input against the schema (done
before), the Agent tool and MCP tools (other packages), notebooks, web access, shells that stay open, state.

To add a tool: a module here with one class that satisfies `agent_core.tool.Tool`, a line in `builtin.py`, a line above,
a test in `tests/unit/agent_core/tools/`. Its `facts` must say what its `run` does, from the same code.
"""

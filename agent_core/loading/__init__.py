"""Reads the configuration that people already have, and reports every fault with its file and line.

    layers.py           one source of settings each: a file, the editor's, the command line's
    permission_settings.py  rules, mode, folders and managed policy of all layers
    settings_files.py   all layers to one `Settings`
    agent_files.py      `.claude/agents/**/*.md` and the built-ins to `Definitions`
    trust.py            which folders the person has trusted, and what waits in others
    hook_settings.py    the hooks of all layers
    configuration.py    both together, for one project: the entry point

Deliberately absent: MCP servers, skills and CLAUDE.md (later parts), and anything that runs what it reads.
A fault never hides the rest of a file, and never makes a rule wider. To add a source, touch `configuration.py`.
"""

"""Reads the configuration that people already have, and reports every fault with its file and line.

    settings_files.py   settings of the client, managed, local, project and user files to `Settings` and rules
    agent_files.py      `.claude/agents/**/*.md` and the built-ins to `Definitions`
    hook_settings.py    the hooks of those files
    configuration.py    both together, for one project: the entry point

Deliberately absent: MCP servers, skills and CLAUDE.md (later parts), and anything that runs what it reads.
A fault never hides the rest of a file, and never makes a rule wider. To add a source, touch `configuration.py`.
"""

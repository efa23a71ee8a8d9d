"""Texts that models read, one small file each, and the tables that say which are used when.

    builtin_agents.py   the built-in agents and the main thread; their system prompts are the .md files here
    agent_tool.py       the description of the Agent tool: which of `fragments/` are there when
    environment.py      what changes from run to run, told after the shared prefix

To add a built-in agent, write its .md file and a row in `builtin_agents.py`; a fragment likewise.
"""

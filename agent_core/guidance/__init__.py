"""Texts that models read, one small file each, and the tables that say which are used when.

    builtin_agents.py   the built-in agents and the main thread; their system prompts are the .md files here
    environment.py      what changes from run to run, told after the shared prefix

Deliberately absent: the description of the Agent tool (it comes with the tool). To add a built-in agent, write its
.md file and a row in `builtin_agents.py`.
"""

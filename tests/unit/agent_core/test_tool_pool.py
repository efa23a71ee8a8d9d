"""Which tools an agent gets, as a table, and the bytes in which the model is told of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_core.definitions import AgentDefinition
from agent_core.errors import NotAllowed
from agent_core.guidance.builtin_agents import builtin_definitions
from agent_core.permissions.rules import parse_rule
from agent_core.permissions.types import Behavior, PermissionRule
from agent_core.tool_pool import assemble, render_tools
from agent_core.tools.builtin import builtin_tools

ROOT = Path(__file__).parents[3]
ALL = ["Bash", "Edit", "Glob", "Grep", "Read", "Write"]
TASK_TOOLS = ["TaskCreate", "TaskGet", "TaskList", "TaskUpdate"]


def definition(tools: tuple[str, ...] | None = None, disallowed: tuple[str, ...] = ()) -> AgentDefinition:
    return AgentDefinition("mine", "d", "p", "project", tools=tools, disallowed_tools=disallowed)


def rule(text: str, behavior: Behavior = "deny") -> PermissionRule:
    made = parse_rule(text, behavior, "settings.json")
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("tools", "disallowed", "rules", "pool"),
    [
        (None, (), (), ALL),
        (("*",), (), (), ALL),
        (("Read", "Bash"), (), (), ["Bash", "Read"]),
        (("Read", "Bash(git *)", "Nothing"), (), (), ["Bash", "Read"]),
        (("*", "Read"), (), (), ALL),
        ((), (), (), []),
        (None, ("Write", "Edit"), (), ["Bash", "Glob", "Grep", "Read"]),
        (None, ("Bash(rm *)",), (), ["Edit", "Glob", "Grep", "Read", "Write"]),
        (("Read", "Write"), ("Write",), (), ["Read"]),
        (None, (), (rule("Bash"),), ["Edit", "Glob", "Grep", "Read", "Write"]),
        (None, (), (rule("Bash(*)"),), ["Edit", "Glob", "Grep", "Read", "Write"]),
        (None, (), (rule("Bash(rm x)"), rule("Bash", "ask"), rule("Edit", "allow")), ALL),
        (("Bash",), (), (rule("Bash"),), []),
    ],
)
def test_the_pool(
    tools: tuple[str, ...] | None,
    disallowed: tuple[str, ...],
    rules: tuple[PermissionRule, ...],
    pool: list[str],
) -> None:
    assert list(assemble(definition(tools, disallowed), builtin_tools(), rules)) == pool


def test_an_allow_list_that_names_nothing_there_is_an_error_and_never_everything() -> None:
    with pytest.raises(NotAllowed, match="'mine' gets no tool: its list names Raed, write; there are Bash, Edit, "):
        assemble(definition(("Raed", "write")), builtin_tools())


@pytest.mark.spec("TL-5")
def test_the_order_is_that_of_names_whatever_comes_in() -> None:
    tools = builtin_tools()
    assert list(assemble(definition(), reversed(tools))) == ALL
    assert list(assemble(definition(("Write", "Bash", "Read")), tools)) == ["Bash", "Read", "Write"]


@pytest.mark.spec("TL-6")
def test_the_read_only_agents_have_nothing_that_could_write() -> None:
    pools = {each.name: assemble(each, builtin_tools()) for each in builtin_definitions() if each.read_only}
    assert sorted(pools) == ["Explore", "Plan", "claude-code-guide"]
    assert {name: [tool.name for tool in pool.values() if not tool.read_only] for name, pool in pools.items()} == {
        name: [] for name in pools
    }


def test_rendering() -> None:
    [read] = render_tools(assemble(definition(("Read",)), builtin_tools()))
    tool = next(tool for tool in builtin_tools() if tool.name == "Read")
    assert read == {"name": "Read", "description": tool.description, "input_schema": tool.input_schema}


PROGRAM = """
import asyncio, json, sys
from pathlib import Path
from agent_core.disk import Disk
from agent_core.disk_target import DiskTarget
from agent_core.processes import LocalProcesses
from agent_core.repository import GitCommand
from agent_core.runtime import Runtime, SpawnRequest, open_runtime

async def main():
    folder = Path(sys.argv[1])
    env = {"HOME": sys.argv[1], "AGENT_LS_STATE_DIR": sys.argv[1] + "/state", "ANTHROPIC_API_KEY": "k",
           "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    runtime = Runtime(env, (folder,))
    ports = dict(files=Disk(), target=DiskTarget(), processes=LocalProcesses(), git=GitCommand())
    async with open_runtime(runtime, **ports):
        prompts = []
        for name in ("general-purpose", "Explore", "zebra", "ant"):
            info = await runtime.spawn(SpawnRequest("go", folder, agent_type=name))
            prompt = runtime._agents[info.id].prompt
            prompts.append([prompt.tools, prompt.system])
        print(json.dumps(prompts))

asyncio.run(main())
"""


@pytest.mark.spec("TL-5")
def test_the_whole_head_of_the_prompt_is_the_same_in_every_process(tmp_path: Path) -> None:
    """Tools with the list of agents and the system prompt, whatever the order of hashes and of files on disk."""
    agents = tmp_path / ".claude" / "agents"
    agents.mkdir(parents=True)
    for name in ("zebra", "ant", "mole"):
        (agents / f"{name}.md").write_text(
            f"---\nname: {name}\ndescription: the {name}\ntools: Write, Read, Agent\n---\nx\n"
        )
    seen = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        seen.append(done.stdout)
    assert seen[0] == seen[1]
    names = [[tool["name"] for tool in tools] for tools, _ in json.loads(seen[0])]
    whole = sorted(["Agent", *ALL, "ListAgents", "SendMessage", "TaskOutput", "TaskStop", *TASK_TOOLS])
    assert names == [whole, ["Glob", "Grep", "Read"], ["Agent", "Read", "Write"], ["Agent", "Read", "Write"]]

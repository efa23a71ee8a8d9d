from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from agent_core.tool import Tool
from agent_core.tools.builtin import builtin_tools

ROOT = Path(__file__).parents[4]
PRINT = (
    "import hashlib, json; from agent_core.tools.builtin import builtin_tools\n"
    "wire = [{'name': t.name, 'description': t.description, 'input_schema': t.input_schema} for t in builtin_tools()]\n"
    "print(hashlib.sha256(json.dumps(wire).encode()).hexdigest())\n"
)


def wire(tool: Tool) -> dict[str, object]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}


@pytest.mark.spec("TL-5")
def test_tl5_order_and_bytes_are_the_same_in_every_process() -> None:
    ours = hashlib.sha256(json.dumps([wire(tool) for tool in builtin_tools()]).encode()).hexdigest()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "BASH_MAX_TIMEOUT_MS": seed, "LANG": "C"}
        done = subprocess.run(
            [sys.executable, "-c", PRINT], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == ours


@pytest.mark.spec("TL-5")
def test_tl5_names_and_order() -> None:
    assert [tool.name for tool in builtin_tools()] == ["Bash", "Edit", "Glob", "Grep", "Read", "Write"]


@pytest.mark.spec("TL-6")
def test_read_only_tools_are_named() -> None:
    assert [tool.name for tool in builtin_tools() if tool.read_only] == ["Glob", "Grep", "Read"]


def test_the_prompt_stays_small() -> None:
    assert sum(len(json.dumps(wire(tool))) for tool in builtin_tools()) / 4 < 2500


@pytest.mark.parametrize("tool", builtin_tools(), ids=lambda tool: tool.name)
def test_schemas_are_valid_and_closed(tool: Tool) -> None:
    jsonschema.Draft202012Validator.check_schema(dict(tool.input_schema))
    assert tool.input_schema["additionalProperties"] is False
    assert set(tool.input_schema["required"]) <= set(tool.input_schema["properties"])


def test_imports_stay_cheap() -> None:
    program = (
        "import sys, agent_core.tools.builtin\n"
        "print({'anthropic', 'mcp', 'git', 'jsonschema', 'pydantic', 'pygls'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"

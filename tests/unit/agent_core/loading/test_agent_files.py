"""Agent files: what people have works, and every fault is reported with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_core.definitions import AgentDefinition, Problem
from agent_core.guidance.builtin_agents import builtin_definitions
from agent_core.loading.agent_files import merge, read_folder
from agent_core.permissions.types import PermissionMode

FULL = """---
name: reviewer
description: Reviews changes
tools: Read, Grep, Agent(a, b)
disallowedTools: [Bash, "mcp__x"]
model: opus
permissionMode: plan
maxTurns: 4
background: true
isolation: worktree
color: cyan
---

You review.
"""


def load(tmp_path: Path, *texts: str | bytes) -> tuple[list[AgentDefinition], list[Problem]]:
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.md").write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_folder(tmp_path, "project")


def expected(path: Path) -> AgentDefinition:
    return AgentDefinition(
        name="reviewer",
        description="Reviews changes",
        prompt="You review.",
        source="project",
        path=path,
        tools=("Read", "Grep", "Agent(a, b)"),
        disallowed_tools=("Bash", "mcp__x"),
        model="opus",
        permission_mode=PermissionMode.PLAN,
        max_turns=4,
        background=True,
        isolation="worktree",
        color="cyan",
    )


@pytest.mark.parametrize(
    "data",
    [FULL.encode(), b"\xef\xbb\xbf" + FULL.encode(), FULL.replace("\n", "\r\n").encode()],
    ids=["plain", "m1_bom", "crlf"],
)
def test_m1_a_file_with_every_field(tmp_path: Path, data: bytes) -> None:
    assert load(tmp_path, data) == ([expected(tmp_path / "0.md")], [])


@pytest.mark.parametrize("text", ["# Just notes\n", "---\ntitle: x\n---\n", "", "---\nname: x\n"])
def test_documentation_is_no_fault(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text) == ([], [])


@pytest.mark.parametrize(
    ("front", "line", "severity", "message"),
    [
        ("name: -x\ndescription: d", 1, 1, "name must be a text without ':' that does not start with '-'"),
        ("name: a:b\ndescription: d", 1, 1, "name must be a text without ':' that does not start with '-'"),
        ("name: x", 0, 1, "description is missing: say in a sentence when to use this agent"),
        (
            "name: x\ndescription: [a\nb: c",
            3,
            1,
            "the front matter is not valid YAML: expected ',' or ']', but got ':'",
        ),
        ("name: x\ndescription: d\nmodle: opus", 3, 2, "modle is no field of an agent file and is ignored"),
        ("name: x\ndescription: d\nmaxTurns: many", 3, 2, "maxTurns must be a whole number above 0, not 'many'"),
        ("name: X Y\ndescription: d", 1, 2, "name should hold lowercase letters, digits and hyphens only"),
        ("name: x\ndescription: d\ntools: {a: b}", 3, 2, "tools must be a list of tool names; no tool is given"),
    ],
)
def test_faults_are_told_with_their_line(tmp_path: Path, front: str, line: int, severity: int, message: str) -> None:
    definitions, problems = load(tmp_path, f"---\n{front}\n---\nprompt\n")
    assert problems == [Problem(tmp_path / "0.md", line, severity, message)]  # type: ignore[arg-type]
    assert len(definitions) == (severity == 2)


def test_an_allow_list_that_cannot_be_read_gives_no_tool(tmp_path: Path) -> None:
    definitions, _ = load(tmp_path, "---\nname: x\ndescription: d\ntools: {a: b}\n---\n")
    assert definitions[0].tools == ()


@pytest.mark.parametrize(("text", "tools"), [("'*'", None), ("[]", ()), ("''", ()), ("[Read]", ("Read",))])
def test_what_an_allow_list_means(tmp_path: Path, text: str, tools: tuple[str, ...] | None) -> None:
    definitions, _ = load(tmp_path, f"---\nname: x\ndescription: d\ntools: {text}\n---\n")
    assert definitions[0].tools == tools


def test_an_unknown_mode_is_the_careful_one(tmp_path: Path) -> None:
    definitions, problems = load(tmp_path, "---\nname: x\ndescription: d\npermissionMode: yolo\n---\n")
    assert definitions[0].permission_mode is PermissionMode.DEFAULT
    assert len(problems) == 1


def test_a_file_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    definitions, problems = load(tmp_path, b"---\nname: \xff\n---\n", FULL)
    assert [each.name for each in definitions] == ["reviewer"]
    assert [each.path.name for each in problems] == ["0.md"]


def test_a_second_one_of_the_same_name_is_told(tmp_path: Path) -> None:
    definitions, problems = load(tmp_path, FULL, FULL)
    assert [each.path for each in definitions] == [tmp_path / "0.md"]
    assert [each.message for each in problems] == [f"the agent 'reviewer' is already defined in {tmp_path / '0.md'}"]


@pytest.mark.spec("SEL-7")
def test_a_higher_level_replaces_a_lower_one() -> None:
    def named(name: str, source: str) -> AgentDefinition:
        return AgentDefinition(name, "d", "p", source)  # type: ignore[arg-type]

    groups = [[named("a", "builtin"), named("b", "builtin")], [named("a", "user")], [named("a", "project")]]
    found = merge((group, []) for group in groups)
    assert [(each.name, each.source) for each in found.active] == [("a", "project"), ("b", "builtin")]
    assert [(each.name, each.source) for each in found.overridden] == [("a", "user"), ("a", "builtin")]


@pytest.mark.spec("SEL-8")
def test_the_built_in_agents() -> None:
    table = [(each.name, each.model, each.tools) for each in builtin_definitions()]
    search = ("Glob", "Grep", "Read")
    assert table == [
        ("Explore", "haiku", search),
        ("Plan", None, search),
        ("claude-code-guide", None, search),
        ("general-purpose", None, None),
        ("statusline-setup", None, ("Edit", "Read")),
        ("verification", None, ("Bash", *search)),
    ]
    assert all(each.prompt and each.description for each in builtin_definitions())


@pytest.mark.spec("TL-6")
def test_a_read_only_agent_has_no_tool_that_writes() -> None:
    from agent_core.tool_pool import assemble
    from agent_core.tools.builtin import builtin_tools

    for definition in builtin_definitions():
        if definition.read_only:
            assert all(tool.read_only for tool in assemble(definition, builtin_tools()).values()), definition.name

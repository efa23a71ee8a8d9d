"""`agent-ls permissions`: what a person reads who wonders why they are asked."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import SERVER, environment

Run = Callable[..., tuple[int, str, str]]
RULES = """{"permissions": {
  "allow": ["Edit(src/**)", "mcp__git"],
  "ask": ["WebFetch(domain:*.example.com)"],
  "deny": ["Read(.env)", "constructor"]
}}"""


@pytest.fixture
def server_env(tmp_path: Path, cache: Path) -> dict[str, str]:
    """No model is asked."""
    return environment(tmp_path, cache, "http://127.0.0.1:9")


@pytest.fixture
def run(server_env: dict[str, str], workspace: Path) -> Run:
    def start(*arguments: str) -> tuple[int, str, str]:
        command = [*SERVER, "permissions", *arguments]
        done = subprocess.run(command, env=server_env, cwd=workspace, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    return start


@pytest.fixture
def user(server_env: dict[str, str]) -> Path:
    path = Path(server_env["HOME"]) / ".claude" / "settings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(RULES)
    return path


@pytest.mark.spec("PM-2")
@pytest.mark.parametrize(
    ("call", "options", "decision", "part"),
    [
        ("Edit(src/a.py)", (), "allow", "allowed by the rule Edit(src/**) in {user}:2"),
        ("Edit(docs/a.md)", (), "ask", "no rule allows Edit here"),
        ("Edit(docs/a.md)", ("--mode", "acceptEdits"), "allow", "the mode acceptEdits allows edits"),
        ("Edit(src/a.py)", ("--mode", "plan"), "deny", "the mode plan allows no edits"),
        ("Read(deep/.env)", ("--mode", "bypassPermissions"), "deny", "denied by the rule Read(.env) in {user}:4"),
        ("mcp__git__log", (), "allow", "allowed by the rule mcp__git in {user}:2"),
        ("WebFetch(https://a.example.com/x)", (), "ask", "the rule WebFetch(domain:*.example.com) in {user}:3 asks"),
        ("Agent(Explore)", (), "allow", "launching an agent needs no permission"),
    ],
)
def test_a_decision_is_explained(
    run: Run, user: Path, call: str, options: tuple[str, ...], decision: str, part: str
) -> None:
    code, output, errors = run("explain", call, "--json", *options)
    found = json.loads(output)
    assert (code, errors, found["decision"]) == (0, "", decision)
    assert found["reason"].startswith(part.format(user=user))


def test_the_nearest_miss_is_told_and_what_waits_for_trust(run: Run, user: Path, workspace: Path) -> None:
    own = workspace / ".claude" / "settings.json"
    own.parent.mkdir()
    own.write_text('{"permissions": {"allow": ["Edit"]}}')
    code, output, _ = run("explain", "Edit(docs/a.md)")
    path = workspace / "docs" / "a.md"
    there = f"there, by its path and by what a link leads to: {path}"
    assert (code, output.splitlines()) == (
        0,
        [
            "ask: no rule allows Edit here",
            "mode: default",
            f"  deny   Read(.env)   {user}:4   does not match: nothing of it lies {there}",
            f"  allow  Edit(src/**)   {user}:2   does not match: not all of it lies {there}",
            f"  allow  Edit   {own}:1   not in force: waits until the folder is trusted",
        ],
    )


def test_b12_rules_are_listed_with_place_and_fault(run: Run, user: Path) -> None:
    code, output, errors = run("list")
    assert (code, output.splitlines()) == (
        1,
        [
            f"deny   Read(.env)   {user}:4",
            f"deny   constructor   {user}:4",
            f"ask    WebFetch(domain:*.example.com)   {user}:3",
            f"allow  Edit(src/**)   {user}:2",
            f"allow  mcp__git   {user}:2",
        ],
    )
    assert errors == f"{user}:4: permissions.deny: constructor: there is no tool 'constructor'\n"
    code, output, _ = run("list", "--json")
    found = json.loads(output)
    assert [(rule["rule"], rule["line"]) for rule in found["rules"]][-1] == ("mcp__git", 2)
    assert (code, found["trusted"], found["problems"][0]["line"]) == (1, False, 4)


def test_what_is_no_call_and_no_folder_is_said(run: Run) -> None:
    assert run("explain", "Foo(") == (
        2,
        "",
        "agent-ls: CALL: 'Foo(' describes no call; write Tool or Tool(what it is given)\n",
    )
    assert run("list", "--cwd", "/nowhere") == (2, "", "agent-ls: --cwd: '/nowhere' is no folder\n")
    assert run("list") == (0, "no rules\n", "")

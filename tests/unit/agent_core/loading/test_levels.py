"""Levels of settings: what each may say, what policy forbids, and what holds while a file is broken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_core.loading import configuration
from agent_core.loading.configuration import Configuration, Project, load
from agent_core.loading.layers import Layer
from agent_core.loading.permission_settings import NOT_MANAGED, WAITS
from agent_core.permissions.policy import Call, PolicyContext, decide
from agent_core.permissions.rules import MatchContext
from agent_core.permissions.types import Ask, Deny, PermissionFacts, PermissionMode, ToolKind
from agent_core.settings import Policy

DENY = {"permissions": {"deny": ["Bash(x)"]}}


class Machine:
    """A home, a repository and a managed file."""

    def __init__(self, place: Path) -> None:
        self.place, self.repo, self.earlier = place, place / "repo", None
        self.files = {
            "managed": place / "etc" / "managed-settings.json",
            "local": self.repo / ".claude" / "settings.local.json",
            "project": self.repo / ".claude" / "settings.json",
            "user": place / "home" / ".claude" / "settings.json",
        }
        for path in self.files.values():
            path.parent.mkdir(parents=True, exist_ok=True)

    def says(self, level: str, content: Any) -> None:
        self.files[level].write_text(content if isinstance(content, str) else json.dumps(content, indent=1))

    def load(self, *, trusted: bool = True, cli: Any = None, client: Any = None, again: bool = False) -> Configuration:
        layer = Layer("--settings", cli, self.place / "cli", "command line") if cli else None
        found = load(
            Project(self.repo, self.repo),
            env={"HOME": str(self.place / "home")},
            client=client or {},
            trusted=trusted,
            cli_settings=layer,
            earlier=self.earlier if again else None,
        )
        self.earlier = found
        return found


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    monkeypatch.setattr(configuration, "MANAGED", made.files["managed"])
    return made


def texts(found: Configuration) -> list[str]:
    return [rule.text for rule in found.settings.rules]


def test_the_higher_level_wins_and_rules_of_all_add_up(machine: Machine) -> None:
    levels = ["managed", "local", "project", "user"]
    for level in levels:
        machine.says(level, {"model": level, "permissions": {"allow": [f"Bash({level})"]}})
    given = {"cli": {"model": "cli"}, "client": {"model": "client"}}
    found = machine.load(**given)
    assert (found.settings.model, texts(found)) == ("managed", [f"Bash({level})" for level in levels])
    assert [layer.level for layer in found.layers] == ["managed", "command line", "client", "local", "project", "user"]
    machine.files["managed"].unlink()
    assert machine.load(**given).settings.model == "cli"
    assert machine.load(client=given["client"]).settings.model == "client"
    for level, below in (("local", "project"), ("project", "user"), ("user", "sonnet")):
        machine.files[level].unlink()
        assert machine.load().settings.model == below


def test_a_rule_and_a_fault_tell_their_line(machine: Machine) -> None:
    machine.says("project", '{\n"permissions": {\n"deny": [\n"Bash(x)",\n"constructor",\n7]},\n"maxDepth": -1}')
    found = machine.load()
    path = machine.files["project"]
    assert [rule.place for rule in found.settings.rules] == [f"{path}:4", f"{path}:5"]
    assert sorted((problem.line + 1, problem.message.split(",")[0]) for problem in found.problems) == [
        (5, "permissions.deny: constructor: there is no tool 'constructor'"),
        (6, "permissions.deny holds 7"),
        (7, "the setting maxDepth must be a whole number of at least 0"),
    ]


def test_b12_a_strange_rule_is_a_fault_of_its_own_and_of_nothing_else(machine: Machine) -> None:
    rules = ["__proto__(x)", "constructor", "Read(secrets-*/config.json)", "Read(~/Desktop/**)"]
    machine.says("user", {"permissions": {"deny": rules}, "model": "opus"})
    found = machine.load()
    assert (texts(found), found.settings.model) == (rules, "opus")
    assert [problem.severity for problem in found.problems] == [2, 2]


BROKEN = [
    "{",
    "[]",
    '{"a": 1,}',
    b"\xff\xfe",
    "[" * 100_000,
    '{"permissions": 1}',
    '{"permissions": {"deny": {"Bash": 1}}}',
]


@pytest.mark.parametrize("broken", BROKEN, ids=range(len(BROKEN)))
@pytest.mark.parametrize("level", ["managed", "local", "project", "user"])
def test_b12_what_a_file_said_goes_on_while_it_is_broken(machine: Machine, level: str, broken: str | bytes) -> None:
    machine.says(level, DENY)
    assert texts(machine.load()) == ["Bash(x)"]
    machine.files[level].write_bytes(broken if isinstance(broken, bytes) else broken.encode())
    for _ in range(2):
        found = machine.load(again=True)
        assert texts(found) == ["Bash(x)"]
        [problem] = found.problems
        assert (problem.path, problem.severity) == (machine.files[level], 1)
        assert problem.message.endswith("What the file said before stays in force until it is mended")
    machine.says(level, {})
    mended = machine.load(again=True)
    assert (texts(mended), mended.problems) == ([], ())


def test_a_file_that_was_never_good_makes_every_call_ask(machine: Machine) -> None:
    machine.says("project", "{")
    for _ in range(2):
        found = machine.load(again=True)
        [rule] = found.settings.rules
        assert (rule.text, rule.behavior) == ("*", "ask")
        assert rule.source.startswith(f"{machine.files['project']} (which cannot be read, so that what it denies")
        [problem] = found.problems
        assert problem.message.endswith("What it denies is not known, so every call asks until it is mended")
    assert found.settings.policy == Policy()


def test_a_file_without_the_right_to_be_read_is_broken_and_one_that_is_gone_is_empty(machine: Machine) -> None:
    machine.says("user", DENY)
    machine.load()
    machine.files["user"].unlink()
    machine.files["user"].mkdir()
    assert texts(machine.load(again=True)) == ["Bash(x)"]
    machine.files["user"].rmdir()
    assert texts(machine.load(again=True)) == []


@pytest.mark.parametrize(
    ("level", "values", "policy"),
    [
        ("managed", {"permissions": {"disableBypassPermissionsMode": "disable"}}, Policy(bypass_disabled=True)),
        ("user", {"permissions": {"disableBypassPermissionsMode": "disable"}}, Policy(bypass_disabled=True)),
        ("managed", {"permissions": {"disableBypassPermissionsMode": "yes"}}, Policy(bypass_disabled=True)),
        ("managed", {"allowManagedPermissionRulesOnly": True}, Policy(managed_rules_only=True)),
        ("managed", {"allowManagedPermissionRulesOnly": "no"}, Policy(managed_rules_only=True)),
        ("managed", {"allowManagedPermissionRulesOnly": False}, Policy()),
        ("user", {"allowManagedPermissionRulesOnly": True}, Policy()),
        ("managed", {"disableAllHooks": True}, Policy(hooks_disabled=True)),
        ("user", {"disableAllHooks": True}, Policy(managed_hooks_only=True)),
        ("managed", {"allowManagedHooksOnly": True}, Policy(managed_hooks_only=True)),
        ("project", {"allowManagedHooksOnly": True}, Policy()),
        ("managed", "{", Policy(True, True, True, True)),
    ],
)
def test_m4_policy_comes_from_managed_settings_and_a_doubt_restricts(
    machine: Machine, level: str, values: Any, policy: Policy
) -> None:
    machine.says(level, values)
    assert machine.load().settings.policy == policy


def test_m4_where_only_managed_rules_count_others_may_still_restrict(machine: Machine) -> None:
    own = {"permissions": {"allow": ["Bash(a)"], "ask": ["Bash(b)"], "deny": ["Bash(c)"]}}
    machine.says("user", own)
    machine.says("managed", {"allowManagedPermissionRulesOnly": True, "permissions": {"allow": ["Bash(m)"]}})
    found = machine.load()
    assert texts(found) == ["Bash(m)", "Bash(c)", "Bash(b)"]
    assert [(rule.text, why) for rule, why in found.idle] == [("Bash(a)", NOT_MANAGED)]


def test_m4_a_start_in_bypass_is_skipped_where_policy_forbids_it(machine: Machine) -> None:
    machine.says("local", {"permissions": {"defaultMode": "bypassPermissions"}})
    machine.says("user", {"permissions": {"defaultMode": "acceptEdits"}})
    assert machine.load().settings.default_mode is PermissionMode.BYPASS
    machine.says("managed", {"permissions": {"disableBypassPermissionsMode": "disable"}})
    assert machine.load().settings.default_mode is PermissionMode.ACCEPT_EDITS


def test_folders_beside_the_workspace_wait_for_trust_as_allow_rules_do(machine: Machine) -> None:
    machine.says("project", {"permissions": {"additionalDirectories": ["../beside", 5], "allow": ["Bash(a)"]}})
    machine.says("user", {"permissions": {"additionalDirectories": ["~/notes", "/abs"]}})
    own = (machine.place / "home" / "notes", Path("/abs"))
    found = machine.load()
    assert found.settings.additional_directories == (machine.repo / "../beside", *own)
    assert [problem.message.split(",")[0] for problem in found.problems] == [
        "permissions.additionalDirectories holds 5"
    ]
    waiting = machine.load(trusted=False)
    assert waiting.settings.additional_directories == own
    assert [(rule.text, why) for rule, why in waiting.idle] == [("Bash(a)", WAITS)]


def test_a_path_of_a_rule_starts_where_its_level_does(machine: Machine) -> None:
    for level in machine.files:
        machine.says(level, {"permissions": {"deny": ["Read(/a)"]}})
    found = machine.load(cli={"permissions": {"deny": ["Read(/a)"]}}, client={"permissions": {"deny": ["Read(/a)"]}})
    home = machine.place / "home" / ".claude"
    repo = machine.repo
    assert [rule.anchor for rule in found.settings.rules] == [Path("/"), machine.place / "cli", repo, repo, repo, home]


@pytest.mark.parametrize("mode", PermissionMode)
def test_b10_no_level_and_no_mode_frees_what_another_restricts(machine: Machine, mode: PermissionMode) -> None:
    machine.says("managed", {"permissions": {"ask": ["Bash(a)"], "deny": ["Bash(b)"]}})
    machine.says("user", {"permissions": {"allow": ["Bash(a)", "Bash(b)", "Bash"]}})
    rules = machine.load(cli={"permissions": {"allow": ["Bash"]}}).settings.rules
    context = PolicyContext(mode, rules, (machine.repo,), None, MatchContext((machine.repo,), machine.place))

    def decided(command: str) -> type:
        facts = PermissionFacts(command=command, cwd=machine.repo)
        return type(decide(Call("Bash", ToolKind.EXECUTE, False, facts), context))

    assert decided("a") is (Deny if mode is PermissionMode.DONT_ASK else Ask)
    assert decided("b") is Deny


def test_a_restriction_that_cannot_be_read_asks_for_its_tool(machine: Machine) -> None:
    entries = ["Bash(rm *", "two words", "(", 7]
    machine.says("user", {"permissions": {"deny": entries, "allow": ["Bash(ls"]}})
    found = machine.load()
    path = machine.files["user"]
    assert [(rule.text, rule.behavior, rule.source) for rule in found.settings.rules] == [
        ("Bash", "ask", f"{path} (meant by 'Bash(rm *', which is no rule)"),
        ("two", "ask", f"{path} (meant by 'two words', which is no rule)"),
    ]
    assert len(found.problems) == 5

"""Settings files: layers, trust, and faults that hide nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_core.loading.configuration import Configuration, Project, load, state_dir
from agent_core.permissions.types import PermissionMode


def project(tmp_path: Path, **files: Any) -> Path:
    """Keyword names: user, project, local; values are JSON values or texts."""
    places = {
        "user": tmp_path / "home" / ".claude" / "settings.json",
        "project": tmp_path / "repo" / ".claude" / "settings.json",
        "local": tmp_path / "repo" / ".claude" / "settings.local.json",
    }
    (tmp_path / "repo").mkdir(parents=True)
    for name, content in files.items():
        places[name].parent.mkdir(parents=True, exist_ok=True)
        places[name].write_text(content if isinstance(content, str) else json.dumps(content))
    return tmp_path / "repo"


def loaded(repo: Path, client: Any = None, trusted: bool | None = True, **env: str) -> Configuration:
    home = repo.parent / "home"
    return load(Project(repo, repo), env={"HOME": str(home), **env}, client=client or {}, trusted=trusted)


def test_the_client_is_above_the_files_and_local_above_project_above_user(tmp_path: Path) -> None:
    repo = project(
        tmp_path,
        user={"model": "opus", "maxConcurrentAgents": 1, "exploreModel": "a"},
        project={"model": "haiku", "maxConcurrentAgents": 2},
        local={"model": "fable"},
    )
    assert loaded(repo).settings.model == "fable"
    settings = loaded(repo, {"model": "mine"}).settings
    assert (settings.model, settings.max_concurrent_agents, settings.explore_model) == ("mine", 2, "a")


def test_where_requests_go_is_never_up_to_the_project(tmp_path: Path) -> None:
    evil = {"baseUrl": "http://evil.example", "apiKeyHelper": "steal"}
    repo = project(tmp_path, project=evil, local=evil, user={"baseUrl": "http://mine.example"})
    assert loaded(repo).settings.base_url == "http://mine.example"
    assert loaded(repo, {"baseUrl": "http://editor.example"}).settings.base_url == "http://editor.example"


def test_an_untrusted_folder_may_only_restrict(tmp_path: Path) -> None:
    rules = {"allow": ["Bash(a)"], "ask": ["Bash(b)"], "deny": ["Bash(c)"], "defaultMode": "acceptEdits"}
    repo = project(tmp_path, project={"permissions": rules}, local={"permissions": {"allow": ["Bash(d)"]}})
    for trusted, texts, mode in [
        (True, ["Bash(d)", "Bash(c)", "Bash(b)", "Bash(a)"], PermissionMode.ACCEPT_EDITS),
        (False, ["Bash(c)", "Bash(b)"], None),
        (None, ["Bash(c)", "Bash(b)"], None),
    ]:
        found = loaded(repo, trusted=trusted)
        assert [rule.text for rule in found.settings.rules] == texts
        assert (found.settings.default_mode, found.trusted) == (mode, trusted is True)


def test_a_users_own_rules_need_no_trust(tmp_path: Path) -> None:
    repo = project(tmp_path, user={"permissions": {"allow": ["Bash(a)"]}})
    assert [rule.text for rule in loaded(repo, trusted=False).settings.rules] == ["Bash(a)"]


@pytest.mark.parametrize("known", [True, False])
def test_what_the_person_decided_before_counts_when_the_client_says_nothing(tmp_path: Path, known: bool) -> None:
    repo = project(tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".claude.json").write_text(
        json.dumps({"projects": {str(repo): {"hasTrustDialogAccepted": known}}})
    )
    assert loaded(repo, trusted=None).trusted is known


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"maxConcurrentAgents": 0}, "the setting maxConcurrentAgents must be a whole number of at least 1, not 0"),
        ({"model": 5}, "the setting model must be a text, not 5"),
        ({"permissions": {"allow": ["Bash("]}}, "permissions.allow holds 'Bash(', which is no rule"),
        ({"permissions": {"allow": [5]}}, "permissions.allow holds 5, which is no rule"),
        ({"permissions": {"defaultMode": "yolo"}}, "permissions.defaultMode 'yolo' is no permission mode"),
        ({"worktree": {"base": "tail"}}, "the setting base must be one of head, snapshot, fresh, not 'tail'"),
    ],
)
def test_a_fault_is_reported_and_hides_nothing_else(tmp_path: Path, content: Any, message: str) -> None:
    repo = project(tmp_path, project=content, user={"model": "opus", "permissions": {"deny": ["Bash(x)"]}})
    found = loaded(repo)
    assert [problem.message.startswith(message) for problem in found.problems] == [True]
    assert found.problems[0].path == repo / ".claude" / "settings.json"
    assert found.settings.model == "opus"
    assert [rule.text for rule in found.settings.rules] == ["Bash(x)"]


def test_one_bad_entry_leaves_the_others_of_its_file(tmp_path: Path) -> None:
    repo = project(
        tmp_path, project={"model": "haiku", "maxConcurrentAgents": "many", "permissions": {"deny": ["(", "Bash(x)"]}}
    )
    found = loaded(repo)
    assert (found.settings.model, found.settings.max_concurrent_agents) == ("haiku", 20)
    assert [rule.text for rule in found.settings.rules] == ["Bash(x)"]
    assert len(found.problems) == 2


def test_agents_are_found_upwards_to_the_repository_root(tmp_path: Path) -> None:
    repo = project(tmp_path)
    inner = repo / "packages" / "one"
    for folder, text in ((repo, "root"), (inner, "inner"), (tmp_path, "outside")):
        (folder / ".claude" / "agents").mkdir(parents=True)
        (folder / ".claude" / "agents" / f"{text}.md").write_text(f"---\nname: {text}\ndescription: d\n---\n")
        (folder / ".claude" / "agents" / "same.md").write_text(f"---\nname: same\ndescription: {text}\n---\n")
    found = load(Project(inner, repo), env={"HOME": str(tmp_path / "home")}, client={}, trusted=True).definitions
    assert (found.get("root"), found.get("outside")) != (None, None) and found.get("outside") is None
    same = found.get("same")
    assert same is not None and same.description == "inner"


@pytest.mark.parametrize(
    ("env", "folder"),
    [
        ({"AGENT_LS_STATE_DIR": "/s", "XDG_STATE_HOME": "/x"}, "/s"),
        ({"XDG_STATE_HOME": "/x", "HOME": "/h"}, "/x/agent-ls"),
        ({"HOME": "/h"}, "/h/.local/state/agent-ls"),
    ],
)
def test_state_is_outside_the_repository(env: dict[str, str], folder: str) -> None:
    assert state_dir(env) == Path(folder)

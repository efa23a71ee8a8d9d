"""One workspace folder: where its things are, and when its files are read again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_core.ids import AgentId
from agent_core.loading.configuration import Configuration
from agent_core.loading.trust import remember
from agent_core.project import ProjectState, find_project
from tests.git_helpers import Repo, clean_git, repo

__all__ = ["clean_git", "repo"]  # fixtures

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path) -> ProjectState:
    root = tmp_path / "repo" / "sub"
    root.mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    return ProjectState(find_project(root), tmp_path / "state", {"HOME": str(tmp_path / "home")})


def test_the_top_is_the_nearest_folder_with_git_or_the_folder_itself(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert (find_project(deep).root, find_project(deep).top) == (deep, deep)
    (tmp_path / "a" / ".git").write_text("gitdir: elsewhere")
    assert find_project(deep).top == tmp_path / "a"
    (deep / ".git").mkdir()
    assert find_project(deep).top == deep


async def test_a_linked_worktree_has_the_local_settings_and_the_trust_of_its_main_checkout(
    repo: Repo, tmp_path: Path
) -> None:
    linked = tmp_path / "linked"
    repo.git("worktree", "add", "-q", str(linked))
    repo.write({".claude/settings.local.json": '{"permissions": {"deny": ["Bash(make)"]}}'})
    state = tmp_path / "state"
    remember(repo.path, state, True)
    env = {"HOME": str(tmp_path / "home"), "AGENT_LS_STATE_DIR": str(state)}
    project = ProjectState(find_project(linked), state, env)
    found = await project.refresh()
    assert ([rule.text for rule in found.settings.rules], found.trusted) == (["Bash(make)"], True)
    assert project.settings_file("localSettings") == repo.path / ".claude" / "settings.local.json"
    assert project.settings_file("projectSettings") == linked / ".claude" / "settings.json"


@pytest.mark.parametrize("claim", ["gitdir: {main}/.git/worktrees/linked", "gitdir: {main}/.git", "nothing", ""])
async def test_a_folder_that_only_claims_to_be_a_worktree_gets_nothing_of_it(
    repo: Repo, tmp_path: Path, claim: str
) -> None:
    repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    liar = tmp_path / "liar"
    liar.mkdir()
    (liar / ".git").write_text(claim.format(main=repo.path))
    assert find_project(liar).main == liar
    assert find_project(tmp_path / "linked").main == repo.path.resolve()


@pytest.mark.spec("TR-1")
async def test_places(project: ProjectState, tmp_path: Path) -> None:
    await project.refresh()
    slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(project.project.root))
    sessions = tmp_path / "state" / "projects" / slug
    assert (project.sessions, project.worktrees) == (sessions, tmp_path / "state" / "worktrees" / slug)
    files = project.files_of(AgentId("a1"))
    assert files.transcript == sessions / project.conversation / "subagents" / "agent-a1.jsonl"
    assert files.output == sessions / project.conversation / "subagents" / "agent-a1.md"
    assert project.settings_file("localSettings") == tmp_path / "repo" / ".claude" / "settings.local.json"
    assert project.settings_file("userSettings") == tmp_path / "home" / ".claude" / "settings.json"
    assert project.settings_file("session") is None
    assert not (tmp_path / "state").exists()


async def test_worktrees_go_where_the_setting_says(project: ProjectState, tmp_path: Path) -> None:
    project.client = {"worktree": {"location": str(tmp_path / "elsewhere")}}
    await project.refresh()
    assert project.worktrees.parent == tmp_path / "elsewhere"


def test_two_projects_have_different_places_and_conversations(tmp_path: Path) -> None:
    made = [ProjectState(find_project(tmp_path / name), tmp_path, {"HOME": "/h"}) for name in ("a", "b")]
    for value in ("sessions", "conversation"):
        assert len({getattr(each, value) for each in made}) == 2


FILES = [
    "repo/.claude/settings.json",
    "repo/.claude/settings.local.json",
    "home/.claude/settings.json",
]
AGENTS = ["repo/.claude/agents/x.md", "repo/sub/.claude/agents/deep/x.md", "home/.claude/agents/x.md"]


async def again(project: ProjectState, before: Configuration) -> Configuration:
    now = await project.refresh()
    assert now is not before
    assert await project.refresh() is now
    return now


@pytest.mark.parametrize("name", FILES)
async def test_settings_are_read_again_when_a_file_changed_and_only_then(
    project: ProjectState, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    first = await project.refresh()
    assert await project.refresh() is first
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"permissions": {"deny": ["Bash"]}}))
    second = await again(project, first)
    assert [rule.text for rule in second.settings.rules] == ["Bash"]
    path.write_text("{}")
    assert (await again(project, second)).settings.rules == ()
    path.unlink()
    assert (await project.refresh()).settings.rules == ()


@pytest.mark.parametrize("name", AGENTS)
async def test_agents_are_found_again_when_a_file_came_or_went(
    project: ProjectState, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    first = await project.refresh()
    assert first.definitions.get("x") is None
    path.parent.mkdir(parents=True)
    path.write_text("---\nname: x\ndescription: the x\n---\nYou are x.\n")
    second = await again(project, first)
    assert second.definitions.get("x") is not None
    path.unlink()
    assert (await again(project, second)).definitions.get("x") is None


async def test_what_the_editor_says_counts_at_once(project: ProjectState, tmp_path: Path) -> None:
    (tmp_path / "repo" / ".claude").mkdir()
    (tmp_path / "repo" / ".claude" / "settings.json").write_text(json.dumps({"permissions": {"allow": ["Bash(ls)"]}}))
    first = await project.refresh()
    assert (first.trusted, first.settings.rules) == (False, ())
    project.trusted = True
    second = await again(project, first)
    assert (second.trusted, [rule.text for rule in second.settings.rules]) == (True, ["Bash(ls)"])
    project.client = {"model": "opus"}
    assert (await again(project, second)).settings.model == "opus"


async def test_a_broken_file_is_named_and_the_rest_counts(project: ProjectState, tmp_path: Path) -> None:
    for name, text in (("settings.json", "{"), ("settings.local.json", '{"model": "haiku"}')):
        path = tmp_path / "repo" / ".claude" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert (await project.refresh()).settings.model == "sonnet", "what nobody has trusted chooses no model"
    project.trusted = True
    configuration = await project.refresh()
    assert configuration.settings.model == "haiku"
    assert [(problem.path.name, problem.severity) for problem in configuration.problems] == [("settings.json", 1)]


async def test_the_word_of_the_person_on_a_folder_is_found(project: ProjectState, tmp_path: Path) -> None:
    known = {"projects": {str(tmp_path / "repo"): {"hasTrustDialogAccepted": True}}}
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".claude.json").write_text(json.dumps(known))
    assert (await project.refresh()).trusted

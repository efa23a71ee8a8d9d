"""From a request to a registered agent: what is chosen, what is refused, and that a refusal leaves nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_core.errors import AgentDenied, NotAllowed, UnknownAgentType, UserError, WorktreeFailed
from agent_core.events import AgentInfo, Started
from agent_core.messages import Usage
from agent_core.permissions.types import PermissionMode
from agent_core.spawning import shortened
from agent_core.task import TaskStatus
from lsp_server.demo.script import say, use
from tests.git_helpers import Repo, clean_git, init, repo
from tests.unit.agent_core.workshop import Shop, open_shop

__all__ = ["clean_git", "repo"]  # fixtures

pytestmark = pytest.mark.anyio


def agent_file(shop: Shop, name: str, *lines: str) -> None:
    path = shop.folder / ".claude" / "agents" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "\n".join(["---", f"name: {name}", f"description: the {name}", *lines, "---", f"You are {name}.\n"])
    )


async def refused(shop: Shop, error: type[UserError], **fields: Any) -> str:
    with pytest.raises(error) as caught:
        await shop.spawn(**fields)
    assert (await shop.runtime.list(), shop.logs, shop.model.requests()) == ([], {}, [])
    assert list(shop.state.rglob("*.jsonl")) == []
    return str(caught.value)


async def test_what_is_registered(shop: Shop) -> None:
    shop.says(say("ok"))
    started = await shop.spawn("Find out why the test of the parser fails", name="finder", background=True)
    project = await shop.runtime.project(shop.folder)
    assert started == AgentInfo(
        id=started.id,
        root_id=started.id,
        parent_id=None,
        depth=0,
        name="finder",
        agent_type="general-purpose",
        description="Find out why the test of…",
        status=TaskStatus.PENDING,
        stop_reason=None,
        background=True,
        fork=False,
        isolation="none",
        worktree=None,
        model="claude-sonnet-5-5",
        permission_mode=PermissionMode.BUBBLE,
        cwd=shop.folder,
        started_at=started.started_at,
        ended_at=None,
        usage=Usage(),
        output_file=project.files_of(started.id).output,
        pending_permissions=0,
        last_tool=None,
        result=None,
        error=None,
        conversation_id=project.conversation,
    )
    (first, *_) = shop.bodies(started)
    assert isinstance(first, Started)
    assert first == Started(started, first.head, None, first.task)
    await shop.ended(started)


async def test_context_comes_before_the_task(shop: Shop) -> None:
    shop.says(say("ok"))
    await shop.run("repair it", context="The user looks at a.py.")
    assert shop.told(0)[1] == "The user looks at a.py.\n\nrepair it"


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("", ""),
        ("a  b\nc", "a b c"),
        ("1 2 3 4 5 6 7", "1 2 3 4 5 6…"),
        ("x" * 80, "x" * 80),
        ("x" * 5000, "x" * 79 + "…"),
        (" ".join(["y" * 30] * 9), f"{'y' * 30} {'y' * 30} {'y' * 17}…"),
    ],
)
def test_a_description_is_made_of_the_first_words(prompt: str, text: str) -> None:
    assert shortened(prompt) == text


# Which agent


@pytest.mark.spec("SEL-3")
async def test_an_unknown_type_names_the_nearest_and_all(shop: Shop) -> None:
    known = "Explore, Plan, claude-code-guide, general-purpose, statusline-setup, verification"
    assert await refused(shop, UnknownAgentType, agent_type="Exploer") == (
        f"there is no agent type 'Exploer'; did you mean 'Explore'? Known are: {known}"
    )
    assert (
        await refused(shop, UnknownAgentType, agent_type="zzz") == f"there is no agent type 'zzz'. Known are: {known}"
    )


@pytest.mark.spec("SEL-5")
@pytest.mark.parametrize(
    ("deny", "agent_type"),
    [
        ("Agent(Explore)", "Explore"),
        ("Task(Explore)", "Explore"),
        ("Agent(general-purpose)", None),
        ("Agent", "Explore"),
        ("Agent(*)", None),
        ("Agent(nobody)", "nobody"),
        ("Ag*", "Explore"),
        ("*", None),
    ],
)
@pytest.mark.parametrize("name", [None, "scout"])
async def test_b11_a_denied_agent_is_refused_with_the_rule(
    tmp_path: Path, deny: str, agent_type: str | None, name: str | None
) -> None:
    async with open_shop(tmp_path, settings={"permissions": {"deny": [deny]}}) as shop:
        words = await refused(shop, AgentDenied, agent_type=agent_type, name=name)
    rule = deny.replace("Task", "Agent").replace("(*)", "")
    assert (
        words == f"the agent {agent_type or 'general-purpose'!r} is denied by the rule {rule} in the editor's settings"
    )


async def test_a_rule_about_another_agent_or_that_only_asks_denies_nothing(tmp_path: Path) -> None:
    rules = {"deny": ["Agent(Plan)"], "ask": ["Agent(Explore)"], "allow": ["Agent(verification)"]}
    async with open_shop(tmp_path, settings={"permissions": rules}) as shop:
        shop.says(say("ok"))
        assert (await shop.run(agent_type="Explore")).status is TaskStatus.COMPLETED


async def test_a_definition_decides_what_the_call_leaves_open(tmp_path: Path, repo: Repo) -> None:
    async with open_shop(tmp_path, folder=repo.path) as shop:
        lines = ("model: haiku", "tools: Read", "permissionMode: plan", "maxTurns: 3", "isolation: worktree")
        agent_file(shop, "careful", *lines)
        shop.says(say("ok"))
        plain = await shop.run(agent_type="careful")
        assert (plain.model, plain.permission_mode, plain.isolation) == (
            "claude-haiku-5-5",
            PermissionMode.PLAN,
            "worktree",
        )
        assert shop.runtime._agents[plain.id].max_turns == 3
        assert ([tool["name"] for tool in shop.asked(0)["tools"]], shop.asked(0)["system"][0]["text"]) == (
            ["Read"],
            "You are careful.",
        )
        call = {"model": "opus", "permission_mode": PermissionMode.DEFAULT, "isolation": "none", "max_turns": 1}
        other = await shop.run(agent_type="careful", **call)
        assert (other.model, other.permission_mode, other.isolation) == (
            "claude-opus-5-5",
            PermissionMode.DEFAULT,
            "none",
        )
        assert shop.runtime._agents[other.id].max_turns == 1


async def test_an_agent_file_that_changed_counts_at_the_next_launch(shop: Shop) -> None:
    shop.says(say("ok"))
    agent_file(shop, "mine", "model: haiku")
    first = await shop.run(agent_type="mine")
    agent_file(shop, "mine", "model: opus[1m]")
    second = await shop.run(agent_type="mine")
    assert (first.model, second.model) == ("claude-haiku-5-5", "claude-opus-5-5[1m]")


# Which model


@pytest.mark.spec("MD-1", "MD-2", "MD-3", "MD-4", "MD-6")
@pytest.mark.parametrize(
    ("env", "call", "definition", "main", "model"),
    [
        ("opus", "haiku", "haiku", "sonnet", "claude-opus-5-5"),
        ("claude-opus-5-5-20260101", None, None, "sonnet", "claude-opus-5-5-20260101"),
        ("inherit", "haiku", "opus", "sonnet", "claude-haiku-5-5"),
        (None, "haiku", "opus", "sonnet", "claude-haiku-5-5"),
        (None, None, "opus", "sonnet", "claude-opus-5-5"),
        (None, "inherit", "opus", "haiku", "claude-haiku-5-5"),
        (None, None, "inherit", "haiku", "claude-haiku-5-5"),
        (None, None, None, "opus", "claude-opus-5-5"),
        (None, "sonnet", None, "us.claude-sonnet-5-5", "us.claude-sonnet-5-5"),
        (None, None, "sonnet", "claude-sonnet-5-5-20260101", "claude-sonnet-5-5-20260101"),
        (None, "haiku", None, "claude-sonnet-5-5-20260101", "claude-haiku-5-5"),
    ],
)
async def test_which_model_runs(
    tmp_path: Path, env: str | None, call: str | None, definition: str | None, main: str, model: str
) -> None:
    variables = {"CLAUDE_CODE_SUBAGENT_MODEL": env} if env else {}
    async with open_shop(tmp_path, env=variables, settings={"model": main}) as shop:
        agent_file(shop, "mine", *([f"model: {definition}"] if definition else []))
        shop.says(say("ok"))
        started = await shop.spawn(agent_type="mine", model=call)
        await shop.model.wait_for(1)
        assert (started.model, shop.asked(0)["model"]) == (model, model)


async def test_a_pinned_alias_is_what_an_alias_means(tmp_path: Path) -> None:
    env = {"ANTHROPIC_DEFAULT_HAIKU_MODEL": "claude-haiku-4-5-20251001"}
    async with open_shop(tmp_path, env=env) as shop:
        shop.says(say("ok"))
        assert (await shop.run(model="haiku")).model == "claude-haiku-4-5-20251001"


# Which mode


async def test_bypass_is_for_sandboxes_where_the_user_is_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    async with open_shop(tmp_path, env={"IS_SANDBOX": "0"}) as shop:
        words = await refused(shop, NotAllowed, permission_mode=PermissionMode.BYPASS)
        assert words.startswith("permissionMode: bypassPermissions is refused for the root user; set IS_SANDBOX=1")
        monkeypatch.setattr("os.geteuid", lambda: 1000)
        shop.says(say("ok"))
        assert (await shop.run(permission_mode=PermissionMode.BYPASS)).status is TaskStatus.COMPLETED


# Which isolation


async def test_a_worktree_needs_a_commit_to_start_from(tmp_path: Path, clean_git: None) -> None:
    async with open_shop(tmp_path) as shop:
        words = await refused(shop, WorktreeFailed, isolation="worktree")
        assert words.endswith("is in no git repository; run `git init` and commit, or use isolation `none`")
    empty = init(tmp_path / "empty")
    async with open_shop(tmp_path, folder=empty.path) as shop:
        words = await refused(shop, WorktreeFailed, isolation="worktree")
        assert words.endswith(
            "has no commit yet; commit something, set worktree.base to `snapshot`, or use isolation `none`"
        )


async def test_c24_a_detached_head_is_a_base_like_any_other(tmp_path: Path, repo: Repo) -> None:
    repo.git("checkout", "-q", "--detach")
    async with open_shop(tmp_path, folder=repo.path) as shop:
        shop.says(say("ok"))
        started = await shop.spawn(isolation="worktree")
        info = await shop.ended(started)
        [told] = [text for text in shop.told(0) if "Git branch" in text]
        assert (info.status, f"Git branch: agent-{info.id[:8]}" in told) == (TaskStatus.COMPLETED, True)


async def test_a_list_of_tools_that_names_none_that_exist_is_refused(shop: Shop) -> None:
    agent_file(shop, "mine", "tools: Raed")
    assert (await refused(shop, NotAllowed, agent_type="mine")).startswith("the agent 'mine' gets no tool")


async def test_a_denied_tool_is_not_offered(tmp_path: Path) -> None:
    async with open_shop(tmp_path, settings={"permissions": {"deny": ["Bash", "Edit(secret.txt)"]}}) as shop:
        shop.says(say("ok"))
        await shop.run()
        names = [tool["name"] for tool in shop.asked(0)["tools"]]
        assert ("Bash" in names, "Edit" in names) == (False, True)


@pytest.mark.parametrize(
    ("trusted", "said", "mode"),
    [
        (True, "acceptEdits", PermissionMode.ACCEPT_EDITS),
        (False, "acceptEdits", PermissionMode.DEFAULT),
        (None, "acceptEdits", PermissionMode.DEFAULT),
        (False, "bypassPermissions", PermissionMode.DEFAULT),
        (False, "plan", PermissionMode.PLAN),
        (False, "dontAsk", PermissionMode.DONT_ASK),
    ],
)
async def test_m4_a_folder_that_is_not_trusted_makes_no_agent_freer(
    shop: Shop, trusted: bool | None, said: str, mode: PermissionMode
) -> None:
    agent_file(shop, "free", f"permissionMode: {said}")
    shop.runtime.trusted = trusted
    shop.says(say("ok"))
    assert (await shop.spawn("go", agent_type="free")).permission_mode is mode


STRICT = {"permissions": {"disableBypassPermissionsMode": "disable"}}


async def test_m4_an_agent_file_gets_no_bypass_where_policy_forbids_it(tmp_path: Path) -> None:
    async with open_shop(tmp_path, settings=STRICT, trusted=True) as shop:
        words = await refused(shop, NotAllowed, permission_mode=PermissionMode.BYPASS)
        assert words.startswith("permissionMode: bypassPermissions is forbidden by the setting permissions.disable")
        agent_file(shop, "free", "permissionMode: bypassPermissions")
        shop.says(say(use("Bash", command="touch made")), say("done"))
        info = await shop.run("go", agent_type="free")
        assert (info.permission_mode, (shop.folder / "made").exists()) == (PermissionMode.BUBBLE, False)


async def test_m4_a_policy_that_comes_while_an_agent_runs_holds_at_its_next_call(tmp_path: Path) -> None:
    async with open_shop(tmp_path, trusted=True) as shop:
        settings = shop.folder / ".claude" / "settings.json"
        settings.parent.mkdir()
        write = f"echo '{json.dumps(STRICT)}' > {settings}"
        shop.says(say(use("Bash", command=write)), say(use("Bash", command="touch made")), say("done"))
        await shop.run(permission_mode=PermissionMode.BYPASS)
        assert (settings.exists(), (shop.folder / "made").exists()) == (True, False)
        assert "no rule allows this command" in shop.results(2)[0][2]

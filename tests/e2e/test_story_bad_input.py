"""Wrong calls, wrong places, wrong files: each is refused with its reason, and nothing is left behind."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from lsp_server.demo.script import say, use
from tests.e2e.desk import CLIENTS, Desk
from tests.e2e.wire import ResponseError
from tests.git_helpers import Repo, init

pytestmark = pytest.mark.anyio

INVALID, FAILED = -32602, -32803
NOBODY = "there is no agent 'nobody' in this workspace; agent/list names them"


async def refusal(desk: Desk, method: str, params: Any) -> tuple[int, str, Any]:
    """(code, message, data) of the error that this request is answered with."""
    with pytest.raises(ResponseError) as caught:
        await desk.client.request(method, params)
    return caught.value.code, str(caught.value).partition(": ")[2].rpartition(" (")[0], caught.value.data


TYPES: list[tuple[str, dict[str, Any], str, str]] = [
    ("agent/spawn", {}, "prompt", "is missing"),
    ("agent/spawn", {"prompt": None}, "prompt", "must be a text, not None"),
    ("agent/spawn", {"prompt": 1}, "prompt", "must be a text, not 1"),
    ("agent/spawn", {"prompt": " \n"}, "prompt", "is empty; say what the agent shall do"),
    ("agent/spawn", {"prompt": "x", "description": 1}, "description", "must be a text, not 1"),
    ("agent/spawn", {"prompt": "x", "agentType": []}, "agentType", "must be a text, not []"),
    ("agent/spawn", {"prompt": "x", "model": True}, "model", "must be a text, not True"),
    (
        "agent/spawn",
        {"prompt": "x", "permissionMode": "yolo"},
        "permissionMode",
        "must be one of default, acceptEdits, plan, dontAsk, bypassPermissions, bubble, not 'yolo'",
    ),
    (
        "agent/spawn",
        {"prompt": "x", "isolation": "Worktree"},
        "isolation",
        "must be one of none, worktree, remote, not 'Worktree'",
    ),
    ("agent/spawn", {"prompt": "x", "background": 1}, "background", "must be true or false, not 1"),
    ("agent/spawn", {"prompt": "x", "fork": "yes"}, "fork", "must be true or false, not 'yes'"),
    ("agent/spawn", {"prompt": "x", "name": {}}, "name", "must be a text, not {}"),
    ("agent/spawn", {"prompt": "x", "maxTurns": 0}, "maxTurns", "must be at least 1, not 0"),
    ("agent/spawn", {"prompt": "x", "maxTurns": 1.5}, "maxTurns", "must be a whole number, not 1.5"),
    ("agent/spawn", {"prompt": "x", "maxTurns": True}, "maxTurns", "must be a whole number, not True"),
    ("agent/spawn", {"prompt": "x", "cwd": 5}, "cwd", "must be a text, not 5"),
    ("agent/spawn", {"prompt": "x", "cwd": "docs"}, "cwd", "must be an absolute path, not 'docs'"),
    ("agent/spawn", {"prompt": "x", "cwd": "/no/such"}, "cwd", "'/no/such' is no folder"),
    ("agent/spawn", {"prompt": "x", "context": "file"}, "context", "must be an object, not 'file'"),
    ("agent/spawn", {"prompt": "x", "context": {"uri": 1}}, "context.uri", "must be a text, not 1"),
    (
        "agent/spawn",
        {"prompt": "x", "context": {"range": {"start": {"line": 0, "character": 0}}}},
        "context.range.end",
        "is missing",
    ),
    (
        "agent/spawn",
        {"prompt": "x", "context": {"range": {"start": {"line": "0", "character": 0}}}},
        "context.range.start.line",
        "must be a whole number, not '0'",
    ),
    (
        "agent/spawn",
        {"prompt": "x", "context": {"diagnostics": [1]}},
        "context.diagnostics[0]",
        "must be an object, not 1",
    ),
    ("agent/list", {"conversationId": 1}, "conversationId", "must be a text, not 1"),
    ("agent/send", {}, "to", "is missing"),
    ("agent/send", {"to": 1, "message": "x"}, "to", "must be a text, not 1"),
    ("agent/send", {"to": "main"}, "message", "is missing"),
    ("agent/send", {"to": "main", "message": ""}, "message", "is empty; say what the agent shall do"),
    ("agent/stop", {}, "agentId", "is missing"),
    ("agent/stop", {"agentId": None}, "agentId", "must be a text, not None"),
    ("agent/stop", {"agentId": "x", "scope": "all"}, "scope", "must be one of turn, agent, tree, not 'all'"),
    ("agent/wait", {}, "agentId", "is missing"),
    ("agent/wait", {"agentId": 7}, "agentId", "must be a text, not 7"),
    ("agent/transcript", {}, "agentId", "is missing"),
    ("agent/transcript", {"agentId": "x", "afterSeq": -1}, "afterSeq", "must be 0 or more, not -1"),
    ("agent/transcript", {"agentId": "x", "afterSeq": "1"}, "afterSeq", "must be a whole number, not '1'"),
    ("agent/transcript", {"agentId": "x", "limit": 0}, "limit", "must be at least 1, not 0"),
    ("agent/answer", {"optionId": "allowOnce"}, "requestId", "is missing"),
    ("agent/answer", {"requestId": "x", "optionId": 1}, "optionId", "must be a text, not 1"),
    ("agent/answer", {"requestId": "x", "comment": []}, "comment", "must be a text, not []"),
    ("agent/answer", {"requestId": "x", "updatedInput": "rm"}, "updatedInput", "must be an object, not 'rm'"),
    (
        "agent/answer",
        {"requestId": "x", "destination": "everywhere"},
        "destination",
        "must be one of session, localSettings, projectSettings, userSettings, not 'everywhere'",
    ),
    ("agent/answer", {"requestId": "x", "cancelled": "no"}, "cancelled", "must be true or false, not 'no'"),
    ("agent/review", {}, "agentId", "is missing"),
    ("agent/review", {"agentId": "x", "round": "old"}, "round", "must be one of all, new, not 'old'"),
    ("agent/apply", {}, "agentId", "is missing"),
    ("agent/apply", {"agentId": "x", "files": "all"}, "files", "must be a list, not 'all'"),
    ("agent/apply", {"agentId": "x", "files": ["a.py"]}, "files[0]", "must be an object, not 'a.py'"),
    ("agent/apply", {"agentId": "x", "files": [{"path": "a"}, {}]}, "files[1].path", "is missing"),
    (
        "agent/apply",
        {"agentId": "x", "files": [{"path": "a", "hunks": [1]}]},
        "files[0].hunks[0]",
        "must be a text, not 1",
    ),
    ("agent/apply", {"agentId": "x", "dryRun": 0}, "dryRun", "must be true or false, not 0"),
    ("agent/comment", {"agentId": "x", "comments": []}, "comments", "is empty; say what the agent shall change"),
    (
        "agent/comment",
        {"agentId": "x", "comments": [{"path": "a", "text": "x"}, {"path": " ", "text": "x"}]},
        "comments[1].path",
        "is empty; name the file that the comment is about",
    ),
    (
        "agent/comment",
        {"agentId": "x", "comments": [{"path": "a", "text": "x", "line": -1}]},
        "comments[0].line",
        "must be 0 or more, not -1",
    ),
    ("agent/content", {}, "uri", "is missing"),
    (
        "agent/content",
        {"uri": "file:///etc/passwd"},
        "uri",
        "'file:///etc/passwd' is none of agent-base:/<agentId>/…, agent-worktree:/<agentId>/…, "
        "agent-transcript:/<agentId>/…",
    ),
    (
        "agent/content",
        {"uri": "agent-base:/x"},
        "uri",
        "'agent-base:/x' is none of agent-base:/<agentId>/…, agent-worktree:/<agentId>/…, "
        "agent-transcript:/<agentId>/…",
    ),
]


@pytest.mark.spec("IN-11")
async def test_each_wrong_field_is_named_with_its_path(desk: Desk):
    before = await desk.client.request("agent/list", {})
    found = [await refusal(desk, method, params) for method, params, _, _ in TYPES]
    assert found == [(INVALID, f"{field}: {words}", {"field": field}) for _, _, field, words in TYPES]
    assert await desk.client.request("agent/list", {}) == before


@pytest.mark.parametrize("params", [[], "x", 5, [{"prompt": "x"}]])
async def test_params_that_are_no_object_are_refused(desk: Desk, params: Any):
    code, message, data = await refusal(desk, "agent/spawn", params)
    assert (code, data) == (INVALID, {"field": "params"})
    assert message.startswith("params: must be an object, not ")


async def test_a_method_that_does_not_exist_is_named(desk: Desk):
    for method in ("agent/fly", "agent/Spawn", "textDocument/hover", "workspace/executeCommand"):
        with pytest.raises(ResponseError) as caught:
            await desk.client.request(method, {})
        assert (caught.value.code, str(caught.value)) == (-32601, f"-32601: there is no method {method}")


async def test_an_unknown_agent_is_unknown_to_every_method(desk: Desk):
    calls = [
        ("agent/wait", {"agentId": "nobody"}),
        ("agent/transcript", {"agentId": "nobody"}),
        ("agent/review", {"agentId": "nobody"}),
        ("agent/apply", {"agentId": "nobody"}),
        ("agent/content", {"uri": "agent-base:/nobody/a.py"}),
        ("agent/content", {"uri": "agent-transcript:/nobody.md"}),
    ]
    data = {"code": "unknownAgent"}
    assert [await refusal(desk, *call) for call in calls] == [(FAILED, NOBODY, data)] * len(calls)
    for call in [("agent/stop", {"agentId": "nobody"}), ("agent/send", {"to": "nobody", "message": "x"})]:
        assert await refusal(desk, *call) == (FAILED, NOBODY, data)
    for path in ("../../etc", "a/b", "*", "", "a" * 5000):
        assert (await refusal(desk, "agent/transcript", {"agentId": path}))[0] == FAILED


@pytest.mark.parametrize("name", ["../x", "a/b", "", " x", "a\nb", "a\x00b", "-x", "x" * 65])
async def test_a_name_that_could_be_a_path_or_an_option_is_refused(desk: Desk, name: str):
    code, message, data = await refusal(desk, "agent/spawn", {"prompt": "x", "name": name})
    assert (code, data, message.startswith("name: ")) == (INVALID, {"field": "name"}, True)


@pytest.mark.parametrize("model", ["no pe", "nope\n", "no\x00pe", "-x"])
async def test_what_can_be_no_model_is_refused_before_there_is_an_agent(desk: Desk, model: str):
    before = await desk.client.request("agent/list", {})
    code, message, data = await refusal(desk, "agent/spawn", {"prompt": "x", "model": model})
    assert (code, data, message.startswith("model: ")) == (INVALID, {"field": "model"}, True)
    assert await desk.client.request("agent/list", {}) == before


@pytest.mark.parametrize("path", ["../app.py", "a/../app.py", "a%00.py", "./app.py", "a//b.py", "%2e%2e/app.py"])
async def test_a_uri_that_names_no_file_of_the_repository_is_refused_in_our_words(desk: Desk, path: str):
    desk.says(say(use("Write", file_path="new.txt", content="new\n")), say("done"))
    agent = (await desk.run(isolation="worktree"))["id"]
    for scheme in ("agent-base", "agent-worktree"):
        uri = f"{scheme}:/{agent}/{path}"
        message = f"uri: {uri!r} does not name a file inside the repository"
        assert await refusal(desk, "agent/content", {"uri": uri}) == (INVALID, message, {"field": "uri"})


@pytest.mark.parametrize("answer", [{}, {"optionId": "allowOnce"}, {"cancelled": True}])
async def test_a_request_that_is_not_open_is_not_said_to_stay_so(desk: Desk, answer: dict[str, Any]):
    result = await desk.client.request("agent/answer", {"requestId": "nothing", **answer})
    reason = "this request is not open any more: it was answered, or its agent has ended"
    assert result == {"accepted": False, "reason": reason}


async def test_what_this_version_does_not_have_is_refused_by_name(desk: Desk):
    before = await desk.client.request("agent/list", {})
    for field, value in (("teamName", "t"), ("isolation", "remote")):
        code, message, data = await refusal(desk, "agent/spawn", {"prompt": "x", field: value})
        assert (code, data, message.startswith(f"{field}: ")) == (FAILED, {"code": "notAllowed"}, True)
    assert await desk.client.request("agent/list", {}) == before


@pytest.mark.spec("SEL-3", "SEL-5")
async def test_an_agent_type_is_found_or_its_neighbours_are_named(desk: Desk):
    desk.repo.write({".claude/settings.json": '{"permissions": {"deny": ["Agent(Plan)"]}}'})
    desk.repo.write({".claude/agents/reviewer.md": "---\nname: reviewer\ndescription: Reviews.\n---\nReview.\n"})
    code, message, data = await refusal(desk, "agent/spawn", {"prompt": "x", "agentType": "reviewr"})
    assert (code, data) == (FAILED, {"code": "unknownAgentType"})
    assert message.startswith("there is no agent type 'reviewr'; did you mean 'reviewer'? Known are: Explore, Plan, ")
    source = desk.repo.path / ".claude" / "settings.json"
    denied = (FAILED, f"the agent 'Plan' is denied by the rule Agent(Plan) in {source}", {"code": "agentDenied"})
    assert await refusal(desk, "agent/spawn", {"prompt": "x", "agentType": "Plan"}) == denied
    assert await refusal(desk, "agent/spawn", {"prompt": "x", "agentType": "Plan", "name": "my-plan"}) == denied  # B11


async def test_without_a_worktree_there_is_nothing_to_review_and_an_ended_agent_cannot_be_stopped(desk: Desk):
    desk.says(say("done"))
    agent = (await desk.run())["id"]
    place = f"agent {agent} has no worktree to review: it worked in place, without isolation"
    for method in ("agent/review", "agent/apply"):
        assert await refusal(desk, method, {"agentId": agent}) == (FAILED, place, {"code": "notReviewable"})
    ended = f"agent {agent} does not run: it is completed"
    assert await refusal(desk, "agent/stop", {"agentId": agent}) == (FAILED, ended, {"code": "alreadyTerminal"})
    desk.says(say("done"))
    agent = (await desk.run(isolation="worktree"))["id"]
    unchanged = f"agent {agent} has no worktree to review: it made no changes"
    assert await refusal(desk, "agent/review", {"agentId": agent}) == (FAILED, unchanged, {"code": "notReviewable"})


async def test_without_credentials_nothing_is_started_and_the_variable_is_named(server, workspace: Path, tmp_path):
    client = await server(env={"ANTHROPIC_API_KEY": None})
    await client.initialize(root=workspace, capabilities=CLIENTS["trusted"].capabilities)
    desk = Desk(client, None, Repo(workspace))
    before = desk.repo.state()
    for method, params in (
        ("agent/spawn", {"prompt": "x", "isolation": "worktree"}),
        ("agent/send", {"to": "main", "message": "x"}),
    ):
        code, message, data = await refusal(desk, method, params)
        assert (code, data) == (FAILED, {"code": "missingCredentials"})
        assert message.startswith("no credentials for the model service: set ANTHROPIC_API_KEY")
    assert desk.repo.state() == before
    assert (await client.request("agent/list", {}))["agents"] == []
    assert list((tmp_path / "agent-state").rglob("*.jsonl")) == []


# Places


async def spawn_refused(desk: Desk, repo: Repo, **params: Any) -> str:
    """The text of a refusal to isolate an agent in `repo`, after which nothing is left of it."""
    await desk.move_to(repo)
    before = await desk.client.request("agent/list", {})
    code, message, data = await refusal(desk, "agent/spawn", {"prompt": "x", "isolation": "worktree", **params})
    assert (code, data) == (FAILED, {"code": "worktreeFailed"})
    assert await desk.client.request("agent/list", {}) == before
    assert desk.client.received("agent/progress") == []
    return message


async def test_a_folder_without_git_cannot_isolate(desk: Desk, tmp_path: Path):
    place = tmp_path / "plain"
    place.mkdir()
    message = await spawn_refused(desk, Repo(place))
    assert message == f"{place} is in no git repository; run `git init` and commit, or use isolation `none`"
    assert list(place.iterdir()) == []
    desk.says(say("works all the same"))
    assert (await desk.run(isolation="none"))["result"] == "works all the same"


async def test_a_repository_without_a_commit_cannot_isolate(desk: Desk, tmp_path: Path):
    repo = init(tmp_path / "unborn")
    message = await spawn_refused(desk, repo)
    fix = "commit something, set worktree.base to `snapshot`, or use isolation `none`"
    assert message == f"the repository {repo.path} has no commit yet; {fix}"
    assert repo.state() == {
        "worktrees": f"worktree {repo.path}\nHEAD {'0' * 40}\nbranch refs/heads/main",
        "branches": "",
        "status": "",
    }


async def test_c24_a_detached_head_is_a_base_like_any_other(desk: Desk):
    first = desk.repo.git("rev-parse", "HEAD")
    desk.repo.commit({"app.py": "later = 1\n"})
    desk.repo.git("checkout", "-q", "--detach", first)
    desk.says(
        say(use("Read", file_path="app.py")),
        say(use("Edit", file_path="app.py", old_string="a - b", new_string="a + b")),
        say("done"),
    )
    info = await desk.run(isolation="worktree")
    assert (info["status"], info["worktree"]["baseCommit"]) == ("completed", first)
    result = await desk.apply(info["id"])
    assert ([file["path"] for file in result["applied"]], result["conflicts"]) == (["app.py"], [])
    assert desk.repo.git("rev-parse", "HEAD") == first
    assert desk.repo.git("branch", "--show-current") == ""
    assert (desk.repo.path / "app.py").read_text() == "def add(a, b):\n    return a + b\n"


async def test_a_folder_outside_the_workspace_is_refused_however_it_is_spelled(desk: Desk, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (desk.repo.path / "link").symlink_to(outside)
    for spelling in (outside, desk.repo.path / ".." / "outside", desk.repo.path / "link", Path("/")):
        code, message, data = await refusal(desk, "agent/spawn", {"prompt": "x", "cwd": str(spelling)})
        words = f"cwd: {str(spelling)!r} is outside the folders of the workspace: {desk.repo.path}"
        assert (code, message, data) == (INVALID, words, {"field": "cwd"})


async def test_an_agent_works_in_a_folder_of_the_workspace(desk: Desk):
    desk.says(say(use("Read", file_path="notes.txt")), say("done"))
    info = await desk.run(cwd=str(desk.repo.path / "docs"))
    assert (info["cwd"], desk.told(1)) == (
        str(desk.repo.path / "docs"),
        "     1\tone\n     2\ttwo\n     3\tthree",
    )


async def test_what_cannot_be_read_is_told_to_the_model_and_it_goes_on(desk: Desk):
    (desk.repo.path / "loop").symlink_to("loop")
    (desk.repo.path / "data.bin").write_bytes(b"\0\1\2" * 100)
    names = ("missing.txt", "docs", "loop", "data.bin")
    desk.says(say(*(use("Read", file_path=name) for name in names)), say("done"))
    info = await desk.run()
    results = desk.results(1)
    assert (info["status"], [failed for failed, _ in results]) == ("completed", [True] * 4)
    for name, (_, text) in zip(names, results, strict=True):
        assert str(desk.repo.path / name) in text


# Files


async def test_m1_broken_files_are_named_with_their_line_and_the_others_load(desk: Desk):
    await desk.client.request("agent/definitions", {})  # what was read before a file broke goes on
    desk.repo.write(
        {
            ".claude/agents/good.md": b"\xef\xbb\xbf---\r\nname: good\r\ndescription: Good.\r\n---\r\nBe good.\r\n",
            ".claude/agents/broken.md": "---\nname: broken\ndescription: [unclosed\n---\nx\n",
            ".claude/agents/vague.md": "---\nname: vague\ndescription: V.\npermissionMode: yolo\nmaxTurns: -1\n---\n",
            ".claude/agents/nameless.md": "---\nname: nameless\n---\nx\n",
            ".claude/agents/README.md": "Just words.\n",
            ".claude/settings.json": '{\n  "permissions": {\n    "allow": [,]\n  }\n}\n',
            ".claude/settings.local.json": '{"permissions": {"deny": ["Bash(", 5]}, "maxConcurrentAgents": 0}',
        }
    )
    found = await desk.client.request("agent/definitions", {})
    own = [(each["name"], each["source"]) for each in found["agents"] if each["source"] == "project"]
    assert own == [("good", "project"), ("vague", "project")]
    folder = desk.repo.path / ".claude"
    problems = [
        (
            Path(each["uri"].removeprefix("file://")).relative_to(folder).as_posix(),
            each["range"]["start"]["line"],
            each["severity"],
            each["message"],
        )
        for each in found["problems"]
    ]
    assert sorted(problems) == [
        ("agents/broken.md", 3, 1, "the front matter is not valid YAML: expected ',' or ']', but got '<stream end>'"),
        ("agents/nameless.md", 0, 1, "description is missing: say in a sentence when to use this agent"),
        (
            "agents/vague.md",
            3,
            2,
            "permissionMode 'yolo' is none of default, acceptEdits, plan, dontAsk, bypassPermissions, bubble; "
            "default is used",
        ),
        ("agents/vague.md", 4, 2, "maxTurns must be a whole number above 0, not -1"),
        (
            "settings.json",
            2,
            1,
            "not valid JSON: Expecting value. What the file said before stays in force until it is mended",
        ),
        (
            "settings.local.json",
            0,
            2,
            "permissions.deny holds 'Bash(', which is no rule; write Tool or Tool(specifier)",
        ),
        ("settings.local.json", 0, 2, "permissions.deny holds 5, which is no rule; write Tool or Tool(specifier)"),
        ("settings.local.json", 0, 2, "the setting maxConcurrentAgents must be a whole number of at least 1, not 0"),
    ]
    desk.says(say("I am good"))
    assert (await desk.run(agentType="good"))["agentType"] == "good"
    assert desk.asked(0).json["system"][0]["text"].endswith("Be good.")


async def test_a_repaired_file_counts_at_the_next_launch(desk: Desk):
    desk.repo.write({".claude/agents/mine.md": "---\nname: mine\n---\n"})
    assert (await refusal(desk, "agent/spawn", {"prompt": "x", "agentType": "mine"}))[2] == {"code": "unknownAgentType"}
    desk.repo.write({".claude/agents/mine.md": "---\nname: mine\ndescription: Mine.\ntools: Read\n---\nMine.\n"})
    desk.says(say("ready"))
    info = await desk.run(agentType="mine")
    assert (info["result"], [tool["name"] for tool in desk.asked(0).json["tools"]]) == ("ready", ["Read"])


# Notifications of the client


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("textDocument/didOpen", {"textDocument": 5}),
        ("textDocument/didChange", {"textDocument": {"uri": 1}, "contentChanges": "x"}),
        ("textDocument/didClose", [1]),
        ("workspace/didChangeWorkspaceFolders", {"event": {"added": 5, "removed": []}}),
        ("workspace/didChangeConfiguration", ["agentLs"]),
        ("window/workDoneProgress/cancel", 7),
    ],
)
async def test_a_notification_with_wrong_types_is_one_line_in_the_log(desk: Desk, method: str, params: Any):
    desk.client.stderr = ""
    desk.client.notify(method, params)
    await desk.client.request("agent/list", {})
    assert desk.client.stderr.count("\n") <= 1, "and no traceback, which would fail every test of this server"
    assert desk.client.stderr == "" or desk.client.stderr.startswith(
        f"ERROR lsp_server.rpc: the notification {method} could not be handled: "
    )


async def test_half_a_surrogate_pair_in_a_text_ends_no_run_and_spoils_no_history(desk: Desk):
    """Not what a client sends, not what a model says, not the name of a file that a tool finds."""
    half = "\ud83d"
    desk.repo.path.joinpath(os.fsdecode(b"n\xe9w.txt")).write_text("x")
    desk.says(say(use("Glob", pattern="n*.txt")), say("one"), say("two"))
    info = await desk.run(prompt=f"x {half}", description=f"d {half}", name=None)
    assert (info["status"], info["result"], info["description"]) == ("completed", "one", "d \ufffd")
    await desk.client.request("agent/send", {"to": info["id"], "message": f"y {half}"})
    again = await desk.client.request("agent/wait", {"agentId": info["id"]})
    assert (again["agent"]["status"], again["agent"]["result"]) == ("completed", "two")

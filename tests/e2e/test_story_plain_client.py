"""The whole path for an editor that has never heard of `agent/*`: commands, code actions, progress, messages (ED-4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lsp_server.demo.script import conversation, say, use
from tests.e2e.desk import Desk
from tests.e2e.editor import Editor
from tests.e2e.wire import ResponseError

pytestmark = pytest.mark.anyio

ASK = "window/showMessageRequest"
ALLOW, REJECT = {"title": "Allow once"}, {"title": "Reject"}


@pytest.fixture
async def plain(plain_desk: Desk) -> AsyncIterator[Desk]:
    """Makes progress tokens and shows messages, as every editor; documents cannot be shown just now."""
    plain_desk.client.on("window/workDoneProgress/create", lambda params: None)
    plain_desk.client.on("window/showDocument", lambda params: {"success": False})
    yield plain_desk


async def command(desk: Desk, name: str, *arguments: Any) -> Any:
    params = {"command": f"agent.{name}", **({"arguments": list(arguments)} if arguments else {})}
    return await desk.client.request("workspace/executeCommand", params, timeout=20)


async def refusal(desk: Desk, name: str, *arguments: Any) -> tuple[int, str]:
    """The error, which is shown to the user as well."""
    with pytest.raises(ResponseError) as caught:
        await command(desk, name, *arguments)
    text = str(caught.value).partition(": ")[2].rpartition(" (")[0]
    shown = await desk.client.expect("window/showMessage", lambda params: params["type"] == 1)
    assert shown == {"type": 1, "message": text}
    return caught.value.code, text


async def spawn(desk: Desk, **params: Any) -> str:
    return str((await command(desk, "spawn", {"prompt": "go", **params}))["agent"]["id"])


async def wait(desk: Desk, agent: str) -> Any:
    return (await command(desk, "wait", {"agentId": agent}))["agent"]


@pytest.mark.spec("ED-4")
async def test_the_whole_path_by_commands(plain: Desk):
    desk, path = plain, plain.repo.path / "app.py"
    editor = Editor(desk.client)
    desk.client.on("workspace/applyEdit", editor.apply)
    desk.client.hold(ASK)
    desk.says(
        say(use("Read", file_path="app.py")),
        say(use("Edit", file_path="app.py", old_string="a - b", new_string="a + b")),
        say(use("Bash", command="/bin/true")),
        say("Repaired."),
    )
    agent = await spawn(desk, prompt="Repair the thing", isolation="worktree")
    held = await desk.client.held(ASK, timeout=20)
    worktree = (await desk.info(agent))["worktree"]["path"]
    assert held.params == {
        "type": 2,
        "message": "general-purpose (Repair the thing) asks: Bash /bin/true\nno rule allows this command\n"
        f"Command: /bin/true\nDirectory: {worktree}",
        "actions": [
            {"title": "Allow once"},
            {"title": "Allow for this session: Bash(/bin/true)"},
            {"title": "Always allow Bash(/bin/true) (.claude/settings.local.json)"},
            {"title": "Reject"},
            {"title": "Reject for this session: Bash(/bin/true)"},
            {"title": "Always reject Bash(/bin/true) (.claude/settings.local.json)"},
            {"title": "Reject and stop the agent"},
        ],
    }
    held.reply(ALLOW)
    assert (await wait(desk, agent))["status"] == "completed"
    done = "general-purpose (Repair the thing) completed: Repaired.; agent.review shows its changes"
    await desk.client.expect("window/showMessage", lambda params: params == {"type": 3, "message": done})
    assert desk.client.received("agent/progress") == []
    assert desk.client.received("agent/permission") == []

    review = await command(desk, "review", {"agentId": agent})
    [hunk] = review["files"][0]["hunks"]
    assert hunk["text"] == "-    return a - b\n+    return a + b\n"
    shown = await desk.client.expect("window/showMessage", lambda params: "The diff is in" in params["message"])
    diff = Path(shown["message"].partition("The diff is in ")[2].partition("; ")[0])
    assert diff.read_text() == "--- app.py\n+++ app.py\n-    return a - b\n+    return a + b\n"

    doc = editor.open(path)
    editor.change(path, "# mine\n" + doc.text)
    result = await command(desk, "apply", {"agentId": agent})
    assert (result["conflicts"], result["remaining"]) == ([], 0)
    told = "1 files were changed, 0 changes are left to review"
    await desk.client.expect("window/showMessage", lambda params: params == {"type": 3, "message": told})
    assert doc.text == "# mine\ndef add(a, b):\n    return a + b\n"
    assert path.read_text() == "def add(a, b):\n    return a - b\n"
    editor.close(path)


@pytest.mark.spec("ED-4")
async def test_how_the_work_is_kept_in_git_is_asked(plain: Desk):
    desk = plain
    desk.client.hold(ASK)
    write = use("Write", file_path="new.txt", content="new\n")
    desk.says(say(write), say("done"))
    agent = await spawn(desk, isolation="worktree")
    await wait(desk, agent)
    finishing = asyncio.ensure_future(command(desk, "finish", {"agentId": agent}))
    held = await desk.client.held(ASK, timeout=20)
    titles = ["One commit on a new branch", "The agent's own branch", "Merge into my branch"]
    assert held.params["actions"] == [{"title": title} for title in titles]
    held.reply({"title": titles[0]})
    result = await finishing
    assert desk.repo.git("rev-parse", result["branch"]) == result["commit"]
    told = f"The agent's work is commit {result['commit'][:12]} on the branch {result['branch']}"
    await desk.client.expect("window/showMessage", lambda params: params == {"type": 3, "message": told})


async def test_progress_is_begun_reported_and_ended(plain: Desk):
    desk = plain
    tokens = []
    desk.client.on("window/workDoneProgress/create", lambda params: tokens.append(params["token"]))
    desk.client.on(ASK, lambda params: ALLOW)
    desk.says(say(use("Read", file_path="app.py")), say(use("Bash", command="/bin/true")), say("done"))
    agent = await spawn(desk, description="look")
    await wait(desk, agent)
    await desk.client.expect("$/progress", lambda params: params["value"]["kind"] == "end")
    assert len(tokens) == 1
    assert desk.client.received("$/progress") == [
        {"token": tokens[0], "value": value}
        for value in (
            {"kind": "begin", "title": "general-purpose: look", "cancellable": True},
            {"kind": "report", "message": "Read app.py", "cancellable": True},
            {"kind": "report", "message": "Bash /bin/true", "cancellable": True},
            {"kind": "report", "message": "needs your answer", "cancellable": True},
            {"kind": "end", "message": "completed"},
        )
    ]


async def test_cancelling_the_progress_stops_the_agent(plain: Desk):
    desk = plain
    desk.says(say("never", gate="never"))
    agent = await spawn(desk)
    begun = await desk.client.expect("$/progress", lambda params: params["value"]["kind"] == "begin")
    desk.client.notify("window/workDoneProgress/cancel", {"token": begun["token"]})
    info = await wait(desk, agent)
    assert (info["status"], info["stopReason"]) == ("stopped", "cancelled")
    await desk.client.expect("$/progress", lambda params: params["value"] == {"kind": "end", "message": "stopped"})
    desk.client.notify("window/workDoneProgress/cancel", {"token": begun["token"]})  # late
    desk.client.notify("window/workDoneProgress/cancel", {"token": 5})
    assert (await desk.info(agent))["status"] == "stopped"


async def test_an_editor_that_makes_no_token_is_served_without(plain: Desk):
    desk = plain

    def refuse(params: Any) -> None:
        raise ResponseError(-32601, "no tokens here")

    desk.client.on("window/workDoneProgress/create", refuse)
    desk.says(say("done"))
    info = await wait(desk, await spawn(desk))
    assert (info["status"], desk.client.received("$/progress")) == ("completed", [])


@pytest.mark.parametrize("answer", [None, {"title": "Allow"}, {"title": ""}, {}, "Allow once"])
async def test_dismissed_leaves_it_open_and_agent_answer_without_arguments_asks_again(plain: Desk, answer: Any):
    desk = plain
    desk.client.script(ASK, answer, None, REJECT)
    desk.says(say(use("Bash", command="touch made")), say("done"))
    agent = await spawn(desk)
    first = await desk.client.expect(ASK, timeout=20)
    dismissed = {"accepted": False, "reason": "the question was dismissed; the request stays open"}
    assert await command(desk, "answer") == dismissed
    assert (await desk.info(agent))["status"] == "waiting"
    assert await command(desk, "answer") == {"accepted": True}
    info = await wait(desk, agent)
    assert desk.client.received(ASK) == [first] * 3
    assert (info["status"], (desk.repo.path / "made").exists()) == ("completed", False)


async def test_agent_answer_with_an_option_decides_and_withdraws_the_question(plain: Desk):
    desk = plain
    desk.client.hold(ASK)
    desk.says(say(use("Bash", command="touch made")), say("done"))
    agent = await spawn(desk)
    held = await desk.client.held(ASK, timeout=20)
    [request] = (await command(desk, "permissions"))["requests"]
    assert await command(desk, "answer", {"requestId": request["requestId"], "optionId": "allowOnce"}) == {
        "accepted": True
    }
    assert (await wait(desk, agent))["status"] == "completed"
    assert held.withdrawn.is_set()
    held.reply(REJECT)
    assert (desk.repo.path / "made").exists()


async def test_an_editor_that_cannot_ask_denies(plain: Desk):
    desk = plain
    desk.client.script(ASK, ResponseError(-32601, "Unhandled method"))
    desk.says(say(use("Bash", command="touch made")), say("reported"))
    info = await wait(desk, await spawn(desk))
    assert "there is nobody who could be asked. Report this." in desk.told(1)
    assert (info["status"], info["result"], (desk.repo.path / "made").exists()) == ("completed", "reported", False)


async def test_questions_come_one_at_a_time(plain: Desk):
    desk = plain
    names = ("one", "two", "three")
    desk.script(
        *(
            conversation(say(use("Bash", command=f"/bin/echo {n}")), say("done"), name=n, first_user=f"<{n}>")
            for n in names
        )
    )
    desk.client.hold(ASK)
    agents = [await spawn(desk, prompt=f"<{name}>") for name in names]
    seen = []
    for count in range(1, 4):
        held = await desk.client.held(ASK, timeout=20)
        while len((await command(desk, "permissions"))["requests"]) < 4 - count:
            pass
        assert len(desk.client.received(ASK)) == count
        seen.append(held.params["message"].partition("Command: /bin/echo ")[2].partition("\n")[0])
        held.reply(ALLOW)
    assert sorted(seen) == sorted(names)
    assert [(await wait(desk, agent))["status"] for agent in agents] == ["completed"] * 3


async def test_code_actions_launch_answer_review_and_apply(plain: Desk):
    desk = plain
    path = desk.repo.path / "app.py"
    place = {"start": {"line": 1, "character": 4}, "end": {"line": 1, "character": 4}}
    diagnostic = {"range": place, "message": "wrong sign", "severity": 1}

    async def actions(*diagnostics: Any) -> dict[str, Any]:
        params = {"textDocument": {"uri": path.as_uri()}, "range": place, "context": {"diagnostics": list(diagnostics)}}
        found = await desk.client.request("textDocument/codeAction", params)
        return {each["title"]: each["command"] for each in found}

    async def run(title: str, **kept: Any) -> Any:
        chosen = (await actions(diagnostic))[title]
        return await desk.client.request(
            "workspace/executeCommand", {"command": chosen["command"], "arguments": chosen["arguments"]}
        )

    desk.says(
        say(use("Bash", command="/bin/true")),
        say(use("Write", file_path="new.txt", content="new\n")),
        say("done"),
    )
    desk.client.script(ASK, None, ALLOW)
    fix = (await actions(diagnostic))["Agent: fix “wrong sign”"]
    assert "Agent: explain this" in await actions()
    arguments = [{**fix["arguments"][0], "isolation": "worktree"}]
    spawned = await desk.client.request(
        "workspace/executeCommand", {"command": fix["command"], "arguments": arguments}, timeout=20
    )
    agent = spawned["agent"]
    await desk.client.expect(ASK, timeout=20)
    assert "Diagnostic, line 2, error: wrong sign" in desk.told(0)
    assert await run("Agent: answer “Bash /bin/true”") == {"accepted": True}
    assert (await wait(desk, agent["id"]))["status"] == "completed"
    review = await run(f"Agent: review “{agent['description']}”")
    assert [file["path"] for file in review["files"]] == ["new.txt"]
    await run(f"Agent: apply “{agent['description']}”")
    assert (desk.repo.path / "new.txt").read_text() == "new\n"


async def test_commands_without_arguments_do_the_obvious_or_say_what_is_missing(plain: Desk):
    desk = plain
    assert await refusal(desk, "spawn") == (-32602, "prompt: is missing")
    assert await refusal(desk, "send") == (-32602, "to: is missing")
    question = "requestId: there is no open permission request"
    assert await refusal(desk, "answer") == (-32602, question)
    nobody = "agentId: is missing, and there is no agent that agent/stop could be meant for"
    assert await refusal(desk, "stop") == (-32602, nobody)
    for arguments in ([], [None], [{}], ["x"], [[]]):
        assert "agents" in await command(desk, "list", *arguments)
        assert (await command(desk, "permissions", *arguments)) == {"requests": []}
    with pytest.raises(ResponseError) as caught:
        await desk.client.request("workspace/executeCommand", {"command": "agent.unknown"})
    assert caught.value.code == -32602
    desk.says(say("never", gate="never"))
    agent = await spawn(desk)
    waiting = desk.client.ask("workspace/executeCommand", {"command": "agent.wait", "arguments": []})
    assert (await command(desk, "stop"))["agent"]["id"] == agent
    assert (await desk.client.wait(waiting))["agent"]["status"] == "stopped"


async def test_which_agent_is_asked_when_several_fit(plain: Desk):
    desk = plain
    desk.script(*(conversation(say("never", gate="never"), name=n, first_user=f"<{n}>") for n in ("first", "second")))
    first = await spawn(desk, prompt="<first>", description="the first")
    second = await spawn(desk, prompt="<second>", description="the second")
    labels = []

    def choose(params: Any) -> Any:
        labels.extend(action["title"] for action in params["actions"])
        return {"title": next(label for label in labels if "the first" in label)}

    desk.client.on(ASK, choose)
    assert (await command(desk, "stop"))["agent"]["id"] == first
    assert len(labels) == 2
    assert (await command(desk, "stop"))["agent"]["id"] == second
    desk.client.on(ASK, lambda params: None)


async def test_faults_are_shown_because_editors_drop_the_errors_of_commands(plain: Desk):
    desk = plain
    unknown = "there is no agent 'nobody' in this workspace; agent/list names them"
    assert await refusal(desk, "review", {"agentId": "nobody"}) == (-32803, unknown)
    code, text = await refusal(desk, "spawn", {"prompt": "x", "cwd": "/"})
    assert (code, text.partition(" is outside")[0]) == (-32602, "cwd: '/'")
    desk.script(invalid_keys=("test",))
    agent = await spawn(desk)
    assert (await wait(desk, agent))["status"] == "failed"
    shown = await desk.client.expect("window/showMessage", lambda params: params["type"] == 1)
    assert shown["message"].startswith("general-purpose (go) failed: the model service answered 401 ")


async def test_the_transcript_is_named_where_no_document_can_be_shown(plain: Desk):
    desk = plain
    desk.says(say("Here is my answer."))
    agent = await spawn(desk)
    info = await wait(desk, agent)
    page = await command(desk, "transcript", {"agentId": agent})
    assert page["complete"] is True
    shown = await desk.client.expect("window/showMessage", lambda params: "transcript" in params["message"])
    assert shown["message"] == f"The transcript of go is in {info['outputFile']}"
    assert "Here is my answer." in Path(info["outputFile"]).read_text()


async def test_diffs_and_transcripts_are_shown_where_the_editor_can(plain: Desk):
    desk, shown = plain, []

    def show(params: Any) -> Any:
        shown.append((params["uri"], Path(params["uri"].removeprefix("file://")).read_text()))
        return {"success": True}

    desk.client.on("window/showDocument", show)
    desk.says(say(use("Write", file_path="new.txt", content="new\n")), say("Here is my answer."))
    agent = await spawn(desk, isolation="worktree")
    info = await wait(desk, agent)
    await command(desk, "review", {"agentId": agent})
    await command(desk, "transcript", {"agentId": agent})
    (_, diff), (uri, transcript) = shown
    assert diff == "--- new.txt\n+++ new.txt\n+new\n"
    assert (uri, "Here is my answer." in transcript) == (Path(info["outputFile"]).as_uri(), True)
    assert [m for m in desk.client.received("window/showMessage") if " is in " in m["message"]] == []

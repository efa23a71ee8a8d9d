"""Bytes, order and numbers: how the server speaks, and what it takes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lsp_server.demo.script import Fault, Thinking, conversation, say, use
from tests.e2e.conftest import SERVER
from tests.e2e.desk import CLIENTS, Desk
from tests.e2e.lsp_client import LspClient
from tests.e2e.raw import converse, message
from tests.e2e.wire import ResponseError, frame
from tests.git_helpers import init

pytestmark = pytest.mark.anyio

COMMAND = [*SERVER, "serve"]
END = message("shutdown", number="end") + message("exit")


def initialize(number: Any = 1, **capabilities: Any) -> bytes:
    return message("initialize", {"processId": None, "rootUri": None, "capabilities": capabilities}, number)


# Bytes: each conversation is a server of its own


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (["utf-8"], "utf-8"),
        (["utf-32", "utf-8", "utf-16"], "utf-32"),
        (["utf-16", "utf-8"], "utf-16"),
        (["utf-7", "utf-8"], "utf-8"),
        ([], "utf-16"),
        (None, "utf-16"),
    ],
)
def test_the_first_known_position_encoding_of_the_client_is_chosen(alone, offered: Any, chosen: str):
    general = {} if offered is None else {"general": {"positionEncodings": offered}}
    replies, code, _ = converse(COMMAND, initialize(**general) + END, *alone)
    assert [(reply["id"], reply["result"]) for reply in replies[1:]] == [("end", None)]
    assert (replies[0]["result"]["capabilities"]["positionEncoding"], code) == (chosen, 0)


def test_everything_that_is_sent_behind_initialize_is_answered_in_order(alone):
    data = initialize() + b"".join(message(m, {}, m) for m in ("agent/list", "agent/definitions", "agent/permissions"))
    replies, code, _ = converse(COMMAND, data, *alone, answers=4, end=END)
    assert sorted(str(reply["id"]) for reply in replies) == sorted(
        ["1", "agent/list", "agent/definitions", "agent/permissions", "end"]
    )
    assert replies[0]["result"]["capabilities"]["experimental"]["agent"]["version"] == 1
    results = {reply["id"]: reply.get("result") for reply in replies}
    assert (results["agent/list"], results["agent/permissions"], code) == ({"agents": []}, {"requests": []}, 0)
    assert {"Explore", "Plan", "general-purpose"} <= {each["name"] for each in results["agent/definitions"]["agents"]}


def test_headers_in_any_case_and_in_any_order(alone):
    body = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "agent/list", "params": {}}).encode()
    kind = b"application/vscode-jsonrpc; charset=utf-8"
    data = b"".join(
        (
            initialize().replace(b"Content-Length", b"content-length"),
            b"CONTENT-LENGTH:%d\r\nContent-Type: %b\r\n\r\n%b" % (len(body), kind, body),
            b"content-type: %b\r\ncontent-length:   %d\r\n\r\n%b" % (kind, len(body), body.replace(b": 2", b": 3")),
        )
    )
    replies, code, _ = converse(COMMAND, data, *alone, answers=3, end=END)
    assert (sorted(str(reply["id"]) for reply in replies), code) == (["1", "2", "3", "end"], 0)


def test_what_is_no_message_is_refused_and_the_stream_goes_on(alone):
    bad = [
        b"{",
        b"\xff\xfe",
        b"[]",
        b"5",
        b"null",
        b'{"id": 7, "method": "agent/list"}',
        b'{"jsonrpc": "2.0", "id": 1.5, "method": "agent/list"}',
        b'{"jsonrpc": "2.0", "id": null, "method": "agent/list"}',
        b'{"jsonrpc": "2.0", "id": {}, "method": "agent/list"}',
    ]
    data = initialize() + b"".join(map(frame, bad)) + message("agent/list", {}, 2)
    replies, code, stderr = converse(COMMAND, data, *alone, answers=len(bad) + 2, end=END)
    errors = [reply for reply in replies if "error" in reply]
    assert [(reply["id"], reply["error"]["code"]) for reply in errors] == [(None, -32700)] * 2 + [(None, -32600)] * 7
    assert {reply["id"]: reply["result"] for reply in replies if "result" in reply}[2] == {"agents": []}
    assert (code, "Traceback" in stderr) == (0, False)


@pytest.mark.parametrize("junk", [b"hello\r\n\r\n", b"Content-Length: many\r\n\r\n{}", b"Content-Length: -1\r\n\r\n"])
def test_a_stream_that_cannot_be_read_ends_the_server_with_a_reason(alone, junk: bytes):
    replies, code, stderr = converse(COMMAND, initialize() + junk + message("agent/list", {}, 2), *alone)
    assert [reply["id"] for reply in replies] == [1]
    assert (code, "Traceback" in stderr) == (1, False)
    assert "the client's stream cannot be read any further" in stderr


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (initialize() + message("initialized", {}) + END, 0),
        (initialize() + message("exit"), 1),
        (initialize(), 0),
        (END, 0),
        (message("exit"), 1),
        (b"", 0),
        (initialize() + b"Content-Length: 50\r\n\r\n{", 0),
    ],
    ids=["in order", "exit alone", "end of stdin", "never initialized", "exit first", "nothing", "torn message"],
)
def test_the_exit_code_says_how_it_ended(alone, data: bytes, code: int):
    replies, found, stderr = converse(COMMAND, data, *alone)
    assert (found, "Traceback" in stderr, "error" in str(replies)) == (code, False, False)


def test_after_shutdown_requests_are_refused(alone):
    data = initialize() + message("shutdown", number=2) + message("agent/list", {}, 3) + message("exit")
    replies, code, _ = converse(COMMAND, data, *alone)
    assert [(reply["id"], reply.get("error", {}).get("code")) for reply in replies] == [
        (1, None),
        (2, None),
        (3, -32600),
    ]
    assert code == 0


def test_a_client_with_our_capability_is_offered_no_commands_and_another_is(alone):
    offers = [CLIENTS["trusted"].capabilities, {"experimental": {"agent": {"version": 2}}}, {}]
    found = []
    for offer in offers:
        replies, _, _ = converse(COMMAND, initialize(**offer) + END, *alone)
        found.append("executeCommandProvider" in replies[0]["result"]["capabilities"])
    assert found == [False, True, True]


def test_without_a_word_stdio_is_served_too(alone):
    replies, code, _ = converse(list(SERVER), initialize() + END, *alone)
    assert ([reply["id"] for reply in replies], code) == ([1, "end"], 0)


def test_messages_may_arrive_byte_by_byte(alone):
    data = initialize() + message("agent/list", {"ü": "🎉"}, 2) + message("agent/list", {}, 3)
    replies, code, _ = converse(COMMAND, data, *alone, answers=3, end=END, pause=0.001)
    results = {reply["id"]: reply["result"] for reply in replies[1:]}
    assert (results, code) == ({2: {"agents": []}, 3: {"agents": []}, "end": None}, 0)


# Progress


def deltas(desk: Desk, agent: Any, kind: str) -> dict[str, str]:
    """The joined deltas of each message; those before a retry are void."""
    joined: dict[str, str] = {}
    for event in desk.events(agent, kind, "retry", "message"):
        if event["kind"] == kind:
            joined[event["messageId"]] = joined.get(event["messageId"], "") + event["delta"]
    return joined


async def test_events_are_numbered_without_gaps_and_deltas_join_to_their_message(desk: Desk):
    words = ["Ünï 🎉 " * 40, "second part " * 30, "done"]
    desk.says(
        say(words[0], use("Read", file_path="app.py"), chunk=7, per_delta_ms=2),
        say(words[1], use("Glob", pattern="**/*"), chunk=3, per_delta_ms=1),
        say(words[2], fault=Fault("no_stop", (1,))),
    )
    info = await desk.run()
    progress = desk.progress(info)
    durable = [each["seq"] for each in progress if "deltaSeq" not in each]
    assert durable == list(range(1, len(durable) + 1))
    last = 0
    for each in progress:  # a delta carries the number of the durable event before it
        last = each["seq"] if "deltaSeq" not in each else last
        assert each["seq"] == last
    numbers = [each["deltaSeq"] for each in progress if "deltaSeq" in each]
    assert numbers == sorted(set(numbers))
    said = {e["messageId"]: e["content"] for e in desk.events(info, "message") if e["role"] == "assistant"}
    found = deltas(desk, info, "text")
    assert [content[0]["text"] for content in said.values()] == words
    joined = [found.get(key, "") for key in said]  # those that are late when their message is complete are left out
    assert [text.startswith(part) for text, part in zip(words, joined, strict=True)] == [True] * 3
    assert [len(part) > 0.8 * len(text) for text, part in zip(words[:2], joined, strict=False)] == [True] * 2
    assert len(desk.events(info, "text")) < 120  # merged, not one per token
    page = await desk.client.request("agent/transcript", {"agentId": info["id"]})
    kept = [{"seq": e["seq"], "at": e["at"], "event": e["event"]} for e in progress if "deltaSeq" not in e]
    assert page == {"events": kept, "nextSeq": len(durable), "complete": True}


async def test_a_transcript_is_read_in_pages(desk: Desk):
    desk.says(say(use("Read", file_path="app.py")), say("done"))
    agent = (await desk.run())["id"]
    whole = (await desk.client.request("agent/transcript", {"agentId": agent}))["events"]
    pages, after = [], 0
    while True:
        page = await desk.client.request("agent/transcript", {"agentId": agent, "afterSeq": after, "limit": 4})
        pages += page["events"]
        after = page["nextSeq"]
        if page["complete"]:
            break
        assert len(page["events"]) == 4
    assert (pages, after) == (whole, len(whole))


async def test_thinking_is_told_to_people(desk: Desk):
    desk.says(say(Thinking("Let me think about it."), "done", chunk=6, per_delta_ms=20))
    info = await desk.run()
    [message] = [event for event in desk.events(info, "message") if event["role"] == "assistant"]
    assert message["content"] == [
        {"type": "thinking", "thinking": "Let me think about it."},
        {"type": "text", "text": "done"},
    ]
    assert deltas(desk, info, "thinking") == {message["messageId"]: "Let me think about it."}


async def test_who_wants_no_text_deltas_gets_none_but_sees_what_commands_print(strangers_desk: Desk):
    desk = strangers_desk
    desk.client.on("agent/permission", lambda params: {"optionId": "allowOnce"})
    desk.says(
        say("many words " * 50, use("Bash", command="/bin/echo one; sleep 0.2; /bin/echo two"), chunk=3), say("done")
    )
    info = await desk.run()
    assert desk.events(info, "text", "thinking") == []
    live = [e.get("output", "") for e in desk.events(info, "toolUpdate") if e["status"] == "in_progress"]
    assert "".join(live) == "one\ntwo\n"
    [ended] = [event for event in desk.events(info, "toolUpdate") if event["status"] == "completed"]
    assert (ended["output"], info["status"]) == ("one\ntwo\n", "completed")


async def test_a_wait_can_be_cancelled_and_leaves_the_agent_alone(desk: Desk):
    desk.says(say("done", gate="go"))
    agent = await desk.spawn()
    waiting = desk.client.ask("agent/wait", {"agentId": agent})
    desk.client.cancel(waiting)
    with pytest.raises(ResponseError) as caught:
        await desk.client.wait(waiting)
    assert caught.value.code == -32800
    other = desk.client.ask("agent/wait", {"agentId": agent})
    desk.model.gate("go").set()
    info = await desk.ended(agent)
    assert (await desk.client.wait(other))["agent"] == info
    assert info["status"] == "completed"


# Workspaces


async def test_l1_the_folder_that_is_worked_in_is_the_named_one_then_the_documents_then_the_first(
    desk: Desk, tmp_path: Path
):
    repos = [init(tmp_path / name, {"where.txt": f"{name}\n"}) for name in ("one", "two", "three")]
    added = [{"uri": repo.path.as_uri(), "name": repo.path.name} for repo in repos]
    here = {"uri": desk.repo.path.as_uri(), "name": "workspace"}
    desk.client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": added, "removed": [here]}})
    document = {"context": {"uri": (repos[2].path / "where.txt").as_uri()}}
    inner = repos[1].path / "inner"
    inner.mkdir()
    wanted: list[tuple[dict[str, Any], Path]] = [
        ({}, repos[0].path),
        (document, repos[2].path),
        ({"cwd": str(inner), **document}, inner),
        ({"context": {"uri": "untitled:Untitled-1"}}, repos[0].path),
        ({"context": {"uri": Path("/etc/passwd").as_uri()}}, repos[0].path),
    ]
    found = []
    for params, _ in wanted:
        desk.says(say(use("Glob", pattern="*")), say("done"))
        info = await desk.run(**params)
        told = desk.asked(0).json["messages"][0]["content"][0]["text"]
        assert f"Working directory: {info['cwd']}\n" in told
        found.append(Path(info["cwd"]))
    assert found == [path for _, path in wanted]
    desk.says(say(use("Write", file_path="new.txt", content="x")), say("done"))
    info = await desk.run(isolation="worktree", **document)
    assert info["worktree"]["baseCommit"] == repos[2].git("rev-parse", "HEAD")
    assert len(repos[2].git("worktree", "list").splitlines()) == 2
    removed = {"event": {"added": [here], "removed": added}}
    desk.client.notify("workspace/didChangeWorkspaceFolders", removed)


ELSEWHERE = ["vscode-remote://wsl%2Bubuntu/home/me/work", "file://server/share/work"]


@pytest.mark.parametrize("uris", [*([uri] for uri in ELSEWHERE), ELSEWHERE])
async def test_l3_nothing_starts_here_for_an_editor_whose_folder_is_on_another_machine(
    alone: tuple[dict[str, str], Path], uris: list[str]
):
    env, folder = alone
    (folder / ".claude").mkdir()
    (folder / ".claude" / "settings.json").write_text('{"permissions": {"allow": ["Bash"]}}')
    trusted = CLIENTS["trusted"]
    async with await LspClient.start([*SERVER, "serve"], env=env, cwd=folder) as client:
        folders = [{"uri": uri, "name": "work"} for uri in uris]
        await client.initialize(
            capabilities=trusted.capabilities, options=trusted.options, workspaceFolders=folders, rootUri=uris[0]
        )
        said = await client.expect("window/showMessage")
        why = f"{', '.join(uris)} is no folder of this machine; start agent-ls where the folder is"
        assert why in said["message"]
        for method, params in (("agent/spawn", {"prompt": "go"}), ("agent/send", {"to": "main", "message": "go"})):
            with pytest.raises(ResponseError, match=re.escape(why)) as caught:
                await client.request(method, params)
            assert caught.value.data == {"code": "notAllowed"}
        assert (await client.request("agent/list", {}))["agents"] == []


async def test_l3_folders_and_places_are_uris_whatever_their_names_are(desk: Desk, tmp_path: Path):
    other = init(tmp_path / "mit Umlaut ä, 100% & #1", {"a b.txt": "one\n"})
    there = {"uri": other.path.as_uri(), "name": "other"}
    change = "workspace/didChangeWorkspaceFolders"
    desk.client.notify(change, {"event": {"added": [there], "removed": []}})
    desk.says(say(use("Write", file_path="c ü.txt", content="two\n")), say("done"))
    info = await desk.run(cwd=there["uri"], isolation="worktree")
    [call] = desk.events(info, "toolCall")
    assert call["locations"] == [{"uri": (Path(info["worktree"]["path"]) / "c ü.txt").as_uri()}]
    [file] = (await desk.review(info["id"]))["files"]
    assert file["uri"] == (other.path / "c ü.txt").as_uri()
    await desk.apply(info["id"])
    assert (other.path / "c ü.txt").read_text() == "two\n"
    desk.client.notify(change, {"event": {"added": [], "removed": [there]}})


async def test_agents_of_a_folder_that_was_taken_out_go_on_and_are_not_named(desk: Desk, tmp_path: Path):
    other = init(tmp_path / "other", {"where.txt": "other\n"})
    there = {"uri": other.path.as_uri(), "name": "other"}
    change = "workspace/didChangeWorkspaceFolders"
    desk.client.notify(change, {"event": {"added": [there], "removed": []}})
    desk.script(
        conversation(say("here"), first_user="at home", name="here"), conversation(say("found", gate="late"), name="x")
    )
    mine = await desk.run("at home")
    agent = await desk.spawn(cwd=str(other.path))
    await desk.model.wait_for(1, 20, conversation="x")

    async def named() -> set[str]:
        return {each["id"] for each in (await desk.client.request("agent/list", {}))["agents"]}

    assert await named() == {mine["id"], agent}
    desk.client.notify(change, {"event": {"added": [], "removed": [there]}})
    assert await named() == {mine["id"]}
    desk.model.gate("late").set()
    assert (await desk.ended(agent))["result"] == "found"
    assert await named() == {mine["id"]}
    desk.client.notify(change, {"event": {"added": [there], "removed": []}})
    assert await named() == {mine["id"], agent}
    desk.client.notify(change, {"event": {"added": [], "removed": [there]}})


async def test_what_the_user_looks_at_is_told_to_the_agent(desk: Desk):
    path = desk.repo.path / "app.py"
    place = {"start": {"line": 1, "character": 4}, "end": {"line": 1, "character": 10}}
    diagnostics = [{"range": place, "severity": 2, "message": "wrong sign", "source": "lint"}, {"message": "odd"}]
    desk.says(say("done"))
    await desk.run("Fix it", context={"uri": path.as_uri(), "range": place, "diagnostics": diagnostics})
    told = desk.told(0)
    assert told.endswith(
        f"\n<editor-context>\nThe user is looking at {path}, lines 2 to 2.\nDiagnostic, line 2, warning: wrong sign\n"
        "Diagnostic, line 1, error: odd\n</editor-context>\n\nFix it"
    )


async def test_settings_of_the_editor_count_from_the_next_launch(desk: Desk):
    desk.client.notify("workspace/didChangeConfiguration", {"settings": {"agentLs": {"model": "haiku"}}})
    desk.says(say("done"))
    info = await desk.run()
    desk.client.notify("workspace/didChangeConfiguration", {"settings": {"agentLs": {}}})
    assert "haiku" in info["model"]
    assert desk.asked(0).json["model"] == info["model"]
    assert "Working directory" not in json.dumps(desk.asked(0).json["system"])

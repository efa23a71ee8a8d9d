"""What stops an agent, on purpose or not: the person, the service, the network, the limit of turns."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from lsp_server.demo.script import Fault, ToolUse, conversation, say, use
from tests.e2e.desk import CLIENTS, Desk, until
from tests.git_helpers import Repo

pytestmark = pytest.mark.anyio

HUNG = "trap '' TERM; (trap '' TERM; sleep 300 & echo $! > grandchild; wait) & echo $$ > child; sleep 300"
STOPPED = "This call was interrupted before it ended: the user stopped the agent."


def allow(desk: Desk, *commands: str) -> None:
    rules = {"permissions": {"allow": [f"Bash({command})" for command in commands]}}
    desk.repo.write({".claude/settings.json": json.dumps(rules)})


async def stop(desk: Desk, agent: str) -> tuple[Any, float]:
    """What agent/stop answers, and after how many seconds."""
    started = time.monotonic()
    answer = await desk.client.request("agent/stop", {"agentId": agent}, timeout=15)
    return answer["agent"], time.monotonic() - started


async def test_e4_a_hung_command_and_what_it_started_are_gone_when_stop_answers(desk: Desk):
    allow(desk, HUNG)
    desk.says(say("I run it.", use("Bash", command=HUNG)))
    agent = await desk.spawn()
    files = [desk.repo.path / name for name in ("child", "grandchild")]
    await until(lambda: all(file.exists() and file.read_text().strip() for file in files))
    pids = [int(file.read_text()) for file in files]
    assert [psutil.pid_exists(pid) for pid in pids] == [True, True]
    info, seconds = await stop(desk, agent)
    alive = [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE]
    assert (alive, info["status"], info["stopReason"], info["result"]) == ([], "stopped", "cancelled", "I run it.")
    assert seconds < 8  # they ignore SIGTERM: one patience of 2 s, and a slow machine
    assert await desk.ended(agent) == info
    [call] = [event for event in desk.events(agent, "toolUpdate") if event["status"] == "failed"]
    assert call["output"] == STOPPED


async def test_e4_a_service_that_never_answers_is_left_at_once(desk: Desk):
    desk.says(say("…", fault=Fault("hang")))
    agent = await desk.spawn()
    entry = await desk.model.wait_for(1, 20)
    info, seconds = await stop(desk, agent)
    await desk.model.wait_until(lambda: entry.closed_early_ns is not None, 5)
    assert (info["status"], info["stopReason"], "error" in info) == ("stopped", "cancelled", False)
    assert seconds < 2


async def test_e5_a_stream_is_closed_within_a_tenth_of_a_second(desk: Desk):
    delays = []
    for _ in range(5):
        desk.says(say("word " * 500, chunk=5, per_delta_ms=20))
        agent = await desk.spawn()
        await desk.event(agent, "text")
        asked_at = time.monotonic_ns()
        info, _ = await stop(desk, agent)
        entry = desk.asked(0)
        await desk.model.wait_until(lambda entry=entry: entry.closed_early_ns is not None, 5)
        delays.append((entry.closed_early_ns - asked_at) / 1e6)
        assert (info["status"], info["stopReason"]) == ("stopped", "cancelled")
        seen = len(desk.progress(agent))
        await desk.client.request("agent/list", {})
        assert len(desk.progress(agent)) == seen  # nothing after the end
        if delays[-1] < 100:
            break
    assert min(delays) < 100, delays  # a busy machine may need more than one try; a poll would miss all five


async def test_e8_stopped_in_the_middle_of_three_calls_the_conversation_goes_on(desk: Desk):
    commands = ("/bin/echo first", "touch begun; sleep 300", "touch third")
    allow(desk, *commands)
    desk.says(
        say("Three things.", *(use("Bash", command=command) for command in commands)),
        say("gone on"),
    )
    agent = await desk.spawn()
    await until((desk.repo.path / "begun").exists)
    info, _ = await stop(desk, agent)
    assert (info["status"], info["result"]) == ("stopped", "Three things.")
    await desk.ended(agent)
    assert len(desk.model.requests()) == 1
    sent = await desk.client.request("agent/send", {"to": agent, "message": "go on without it"})
    assert sent["agent"]["id"] == agent
    info = await desk.ended(agent)
    assert (info["status"], info["result"]) == ("completed", "gone on")
    assert desk.results(1) == [(False, "first\n"), (True, STOPPED), (True, STOPPED)]
    assert desk.told(1).endswith("\ngo on without it")
    assert not (desk.repo.path / "third").exists()
    assert [event["status"] for event in desk.events(agent, "status")] == ["running", "running"]


async def test_a_stopped_stream_leaves_a_conversation_that_goes_on(desk: Desk):
    long = say("word " * 500, chunk=5, per_delta_ms=20, when="a long story")
    desk.says([*long, *say("second answer", when="shorter")])
    agent = await desk.spawn("a long story")
    await desk.event(agent, "text")
    await stop(desk, agent)
    await desk.ended(agent)
    await desk.client.request("agent/send", {"to": agent, "message": "shorter"})
    info = await desk.ended(agent)
    assert (info["status"], info["result"]) == ("completed", "second answer")
    assert [message["role"] for message in desk.asked(1).json["messages"]] == ["user", "user"]
    assert desk.told(1).endswith("shorter")


async def test_stop_ends_an_agent_that_waits_in_the_queue_of_a_retry(desk: Desk):
    desk.says(say("never", fault=Fault("status", status=429, headers={"retry-after": "50"})))
    agent = await desk.spawn()
    await desk.event(agent, "retry")
    info, seconds = await stop(desk, agent)
    assert (info["status"], seconds < 2) == ("stopped", True)


# The service


async def test_five_faults_of_the_service_are_retried_and_told(desk: Desk):
    step = use("Read", file_path="app.py")
    once = (1,)
    desk.says(
        say("one", step, fault=Fault("status", once, status=429, type="rate_limit_error", message="Slow down",
                                     headers={"retry-after-ms": "200"})),
        say("two", step, fault=Fault("status", once, status=529)),
        say("three", step, fault=Fault("drop", once, after_events=5)),
        say("four", step, fault=Fault("error_event", once, after_events=5)),
        say("five", step, fault=Fault("no_stop", once)),
        say("six", step, fault=Fault("drop", once)),
        say("done"),
    )  # fmt: skip
    info = await desk.run()
    retries = desk.events(info, "retry")
    assert (info["status"], info["result"], info["usage"]["turns"]) == ("completed", "done", 7)
    url = f"no answer from {desk.model.url}: "
    wanted = [
        "the model service answered 429 rate_limit_error: Slow down",
        "the model service answered 529 overloaded_error: Overloaded",
        url,
        "the model service broke off its answer: overloaded_error: Overloaded",
        "the model's answer was cut off: the stream ended without message_stop",
        url,
    ]
    assert [retry["reason"].startswith(text) for retry, text in zip(retries, wanted, strict=True)] == [True] * 6
    assert [(retry["attempt"], retry["maxAttempts"]) for retry in retries] == [(1, 11)] * 6
    assert retries[0]["delayMs"] == 200
    assert all(370 <= retry["delayMs"] <= 500 for retry in retries[1:])
    said = [e["content"][0]["text"] for e in desk.events(info, "message") if e["role"] == "assistant"]
    assert said == ["one", "two", "three", "four", "five", "six", "done"]
    assert len(desk.model.requests()) == 13


async def test_a_wait_of_an_hour_is_a_failure_that_says_so(desk: Desk):
    desk.says(
        say("x", fault=Fault("status", status=429, type="rate_limit_error", message="Limit reached",
                             headers={"retry-after": "3600"}))
    )  # fmt: skip
    info = await desk.run()
    assert (info["status"], info["error"]) == (
        "failed",
        "the model service answered 429 rate_limit_error: Limit reached; it asks to wait 3600 s, more than the 60 s "
        "we wait",
    )
    assert (desk.events(info, "retry"), len(desk.model.requests())) == ([], 1)


async def test_a_wrong_key_is_a_failure_that_names_the_setting(desk: Desk):
    desk.script(invalid_keys=("test",))
    info = await desk.run()
    assert (info["status"], info["error"], len(desk.model.requests())) == (
        "failed",
        "the model service answered 401 authentication_error: invalid x-api-key; check the key in the "
        "environment (ANTHROPIC_API_KEY), or the one set in the editor",
        1,
    )


async def test_a_refused_request_fails_with_the_services_words(desk: Desk):
    desk.script(models=("claude-other",))
    info = await desk.run()
    assert info["status"] == "failed"
    assert info["error"].startswith("the model service answered 404 not_found_error: model: ")
    assert len(desk.model.requests()) == 1


async def test_an_endpoint_that_nobody_listens_at_is_named(server, workspace: Path):
    with socket.socket() as taken:  # a port that is bound, and never listened at
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        client = await server(env={"ANTHROPIC_BASE_URL": url, "CLAUDE_CODE_MAX_RETRIES": "1"})
        await client.initialize(root=workspace, capabilities=CLIENTS["trusted"].capabilities)
        desk = Desk(client, None, Repo(workspace))
        info = await desk.run()
    assert info["status"] == "failed"
    assert info["error"].startswith(f"no answer from {url}: ConnectError ")
    assert info["error"].endswith("(gave up after 2 attempts)")
    assert [event["attempt"] for event in desk.events(info, "retry")] == [1]


# Limits


@pytest.mark.spec("CTX-10")
async def test_the_limit_of_turns_ends_a_run_with_what_was_found(desk: Desk):
    step = use("Read", file_path="app.py")
    desk.says(say("found one", step), say("found two", step), say("never"))
    info = await desk.run(maxTurns=2)
    assert (info["status"], info["stopReason"], info["result"]) == (
        "completed",
        "max_turns",
        "found two\n\n(Stopped at the limit of 2 turns, before the task was finished.)",
    )
    assert (info["usage"]["turns"], len(desk.model.requests())) == (2, 2)


async def test_an_answer_that_was_cut_off_or_refused_says_so(desk: Desk):
    desk.says(say("half an ans", stop_reason="max_tokens"))
    cut = await desk.run()
    desk.says(say("I can't.", stop_reason="refusal"))
    refused = await desk.run()
    assert [(info["status"], info["stopReason"], info["result"]) for info in (cut, refused)] == [
        ("completed", "max_tokens", "half an ans"),
        ("completed", "refusal", "I can't."),
    ]


async def test_what_a_misbehaving_model_does_is_told_to_it(desk: Desk):
    desk.says(
        say(ToolUse("Fly", {"to": "moon"}, unchecked=True)),
        say(ToolUse("Read", {"path": 1}, unchecked=True)),
        say(ToolUse("Bash", {"command": ""}, unchecked=True)),
        say("done"),
    )
    desk.client.forbid("agent/permission")
    info = await desk.run()
    assert (info["status"], info.get("error")) == ("completed", None)
    names = ", ".join(tool["name"] for tool in desk.asked(0).json["tools"])
    assert desk.results(1) == [(True, f"There is no tool Fly. Yours are: {names}.")]
    for number, field in ((2, "file_path"), (3, "command")):
        [(failed, text)] = desk.results(number)
        assert (failed, field in text) == (True, True), text


# Agents that agents launched


async def child_that_waits(desk: Desk) -> tuple[str, str]:
    """Root and child; the child made two calls at once, and the client never answers what one of them needs."""
    job = use("Agent", description="the job", prompt="child: make it", mode="default")
    calls = (use("Read", file_path="README.md"), use("Bash", command="make it"), use("Glob", pattern="*.md"))
    desk.script(
        conversation(say("At once.", *calls), name="child", first_user="child: make it"),
        conversation(say(job), say("the child is no more"), name="root"),
    )
    desk.client.hold("agent/permission")
    root = await desk.spawn("root")
    held = await desk.client.held("agent/permission", timeout=20)
    child = str(held.params["agent"]["id"])
    await desk.event(child, "status", status="waiting")
    return root, child


def loose_ends(desk: Desk, agent: str) -> tuple[list[str], list[str]]:
    """Announced calls without exactly one final update; final updates of calls that were never announced."""
    announced = [event["toolCallId"] for event in desk.events(agent, "toolCall")]
    ends = [e["toolCallId"] for e in desk.events(agent, "toolUpdate") if e["status"] != "in_progress"]
    return [call for call in announced if ends.count(call) != 1], [call for call in ends if call not in announced]


async def test_e11_a_call_that_nobody_answers_is_shown_and_its_agent_can_be_ended(desk: Desk):
    root, child = await child_that_waits(desk)
    info = await desk.info(child)
    assert (info["status"], info["pendingPermissions"], info["parentId"]) == ("waiting", 1, root)
    [pending] = (await desk.client.request("agent/permissions", {}))["requests"]
    assert (pending["agent"]["id"], pending["title"]) == (child, "Bash make it")
    assert len(loose_ends(desk, child)[0]) == 2  # the one that waits and the one behind it
    info, seconds = await stop(desk, child)
    assert (info["status"], seconds < 5) == ("stopped", True)
    end = await desk.ended(root)
    assert (end["status"], end["result"]) == ("completed", "the child is no more")
    await desk.ended(child)
    [(failed, said)] = desk.results(1, "root")
    assert (failed, said.startswith("The user stopped this agent.")) == (True, True)
    assert [loose_ends(desk, agent) for agent in (root, child)] == [([], []), ([], [])]
    assert (await desk.client.request("agent/permissions", {}))["requests"] == []


async def test_e11_the_end_of_the_parent_ends_the_call_of_its_child_that_nobody_answers(desk: Desk):
    root, child = await child_that_waits(desk)
    info, seconds = await stop(desk, root)
    assert (info["status"], seconds < 5) == ("stopped", True)
    assert [(await desk.ended(agent))["status"] for agent in (root, child)] == ["stopped", "stopped"]
    assert [loose_ends(desk, agent) for agent in (root, child)] == [([], []), ([], [])]
    outputs = [e["output"] for e in desk.events(child, "toolUpdate") if e["status"] == "failed"]
    assert outputs == [STOPPED, STOPPED]
    assert (await desk.client.request("agent/permissions", {}))["requests"] == []

"""Agents that nobody waits for, as an editor sees them: moved there, launched by a person, asked for, stopped."""

from __future__ import annotations

from typing import Any

import pytest

from lsp_server.demo.script import Conversation, conversation, say, use
from tests.e2e.desk import Desk
from tests.e2e.lsp_client import Held
from tests.e2e.test_story_plain_client import command
from tests.e2e.wire import ResponseError

pytestmark = pytest.mark.anyio

WORDS = "word " * 80


def job(prompt: str = "x", **more: Any) -> Any:
    return use("Agent", description=f"job {prompt}", prompt=f"child {prompt}", **more)


def child(*turns: Any, prompt: str = "x") -> Conversation:
    return conversation(*turns, first_user=f"child {prompt}", name=prompt)


def root(*turns: Any) -> Conversation:
    return conversation(*turns, name="root")


async def child_of(desk: Desk, parent: str) -> str:
    def fits(params: Any) -> bool:
        event = params["event"]
        return event["kind"] == "started" and event["agent"].get("parentId") == parent

    params = await desk.client.expect("agent/progress", fits, 20)
    return str(params["agentId"])


def bodies(desk: Desk, name: str) -> list[bytes]:
    return [entry.body for entry in desk.model.requests(name)]


def durable_numbers(desk: Desk, agent: str) -> list[int]:
    return [each["seq"] for each in desk.progress(agent) if "deltaSeq" not in each]


async def refusal(desk: Desk, method: str, **params: Any) -> tuple[int, str, Any]:
    with pytest.raises(ResponseError) as caught:
        await desk.client.request(method, params, timeout=15)
    return caught.value.code, str(caught.value), caught.value.data


# agent/background


@pytest.mark.spec("RUN-4", "RUN-6", "RUN-8")
async def test_a_child_that_is_moved_in_the_middle_of_its_answer_does_not_notice(desk: Desk):
    script = (
        child(say(WORDS, use("Read", file_path="app.py"), chunk=5, per_delta_ms=10), say("found it")),
        root(say(job()), say("It works."), say("It found it.")),
    )
    desk.script(*script)
    left_alone = await desk.spawn()
    await desk.ended(left_alone)
    assert "found it" in desk.results(1, "root")[0][1]
    wanted = bodies(desk, "x")
    assert len(wanted) == 2

    desk.script(*script)
    parent = await desk.spawn()
    moved = await child_of(desk, parent)
    await desk.event(moved, "text")
    answer = (await desk.client.request("agent/background", {"agentId": moved}))["agent"]
    assert (answer["background"], answer["status"]) == (True, "running")
    await desk.event(moved, "status", status="running", background=True)
    first = await desk.ended(parent)
    assert (first["result"], first["status"]) == ("It works.", "completed")
    assert desk.results(1, "root")[0][1].startswith(
        f"Launched in the background. You are told when it ends; until then neither poll nor guess its result.\n"
        f"agentId: {moved}\n"
    )
    end = await desk.ended(moved)
    assert (end["result"], end["background"]) == ("found it", True)
    assert await desk.event(parent, "notification") == {
        "kind": "notification",
        "fromAgentId": moved,
        "status": "completed",
        "summary": 'Agent "job x" is done',
    }
    second = await desk.ended(parent)
    assert (second["result"], second["background"]) == ("It found it.", False)
    assert "<result>found it</result>" in desk.told(2, "root")

    assert bodies(desk, "x") == wanted, "its requests are those of a run without the move"
    for agent in (moved, parent):
        numbers = durable_numbers(desk, agent)
        assert numbers == list(range(1, len(numbers) + 1))
    said = [e["content"][0]["text"] for e in desk.events(moved, "message") if e["role"] == "assistant"]
    assert said == [WORDS, "found it"]
    first_message = desk.events(moved, "text")[0]["messageId"]
    deltas = [event["delta"] for event in desk.events(moved, "text") if event["messageId"] == first_message]
    assert deltas and WORDS.startswith("".join(deltas)), "no delta was told twice, or left out before the last"


@pytest.mark.spec("RUN-4")
async def test_what_cannot_be_moved_is_told(desk: Desk):
    desk.says(say("ok"))
    info = await desk.run()
    code, text, data = await refusal(desk, "agent/background", agentId=info["id"])
    assert (code, data) == (-32803, {"code": "alreadyTerminal"})
    assert f"agent {info['id']} does not run: it is completed" in text
    assert (await refusal(desk, "agent/background", agentId="nobody"))[2] == {"code": "unknownAgent"}
    assert (await refusal(desk, "agent/background"))[2] == {"field": "agentId"}


@pytest.mark.spec("ED-4", "RUN-4")
async def test_a_plain_client_moves_an_agent_by_a_command(plain_desk: Desk):
    desk = plain_desk
    desk.client.on("window/workDoneProgress/create", lambda params: None)
    desk.script(
        child(say("found it", gate="late")),
        root(say(job()), say("It works."), say("It found it.")),
    )
    parent = (await command(desk, "spawn", {"prompt": "go"}))["agent"]["id"]
    await desk.model.wait_for(1, 20, conversation="x")
    made = next(each for each in (await command(desk, "list"))["agents"] if each.get("parentId") == parent)
    moved = (await command(desk, "background", {"agentId": made["id"]}))["agent"]
    assert (moved["id"], moved["background"], moved["status"]) == (made["id"], True, "running")
    assert (await command(desk, "wait", {"agentId": parent}))["agent"]["result"] == "It works."
    desk.model.gate("late").set()
    await desk.model.wait_for(3, 20, conversation="root")
    assert (await command(desk, "wait", {"agentId": parent}))["agent"]["result"] == "It found it."


# agent/spawn below another agent


@pytest.mark.spec("FK-1", "FK-2", "FK-8")
async def test_a_person_forks_a_conversation(desk: Desk):
    desk.script(
        conversation(say("forked"), user="the directive", name="fork", offset=1),
        root(say("I know all about it."), say("I heard.")),
    )
    parent = await desk.run("the whole story")
    fork = await desk.spawn("the directive", fork=True, parentId=parent["id"], description="look again")
    info = await desk.ended(fork)
    assert (info["result"], info["fork"], info["background"], info["parentId"], info["agentType"]) == (
        "forked",
        True,
        True,
        parent["id"],
        "fork",
    )
    base, own = desk.asked(0, "root").json, desk.asked(0, "fork").json
    assert [each["role"] for each in own["messages"]] == ["user", "assistant", "user"]
    assert "the whole story" in str(own["messages"][0])
    assert (own["tools"], own["model"]) == (base["tools"], base["model"])
    assert (await desk.event(parent["id"], "notification"))["fromAgentId"] == fork
    assert (await desk.ended(parent["id"]))["result"] == "I heard."


async def test_a_person_forks_the_main_thread_once_it_has_said_something(desk: Desk):
    desk.script(
        conversation(say("forked"), user="the directive", name="fork", offset=1),
        root(say("hello"), say("I heard.")),
    )
    code, text, data = await refusal(desk, "agent/spawn", prompt="the directive", fork=True)
    assert (code, data) == (-32602, {"field": "parentId"})
    assert "names an agent without a turn; send it a message first" in text
    main = (await desk.client.request("agent/send", {"to": "main", "message": "hi"}))["agent"]["id"]
    await desk.ended(main)
    fork = await desk.spawn("the directive", fork=True, description="look again")
    info = await desk.ended(fork)
    assert (info["result"], info["parentId"]) == ("forked", main)
    again = await desk.ended(main)
    assert (again.get("error"), again.get("result")) == (None, "I heard.")


async def test_a_person_gives_an_agent_a_child(desk: Desk):
    desk.script(child(say("found it")), root(say("hello"), say("I heard.")))
    parent = (await desk.run())["id"]
    made = await desk.spawn("child x", parentId=parent, agentType="Explore")
    info = await desk.ended(made)
    assert (info["parentId"], info["rootId"], info["depth"], info["background"], info["fork"], info["result"]) == (
        parent,
        parent,
        1,
        True,
        False,
        "found it",
    )
    assert (await desk.event(parent, "notification"))["fromAgentId"] == made
    assert (await desk.ended(parent))["result"] == "I heard."


@pytest.mark.parametrize(
    ("params", "data", "words"),
    [
        ({"parentId": "nobody", "fork": True}, {"code": "unknownAgent"}, "nobody"),
        ({"parentId": "nobody"}, {"code": "unknownAgent"}, "nobody"),
        ({"fork": True, "model": "opus"}, {"field": "model"}, "a fork takes it from its parent"),
        ({"fork": True, "agentType": "Explore"}, {"field": "agentType"}, "a fork takes it from its parent"),
        ({"fork": True, "permissionMode": "plan"}, {"field": "permissionMode"}, "a fork takes it from its parent"),
        ({"fork": "yes"}, {"field": "fork"}, "fork"),
        ({"agentType": "nothing"}, {"code": "unknownAgentType"}, "nothing"),
    ],
)
async def test_a_child_that_cannot_be_is_told(desk: Desk, params: dict[str, Any], data: Any, words: str):
    desk.says(say("hello"))
    parent = (await desk.run())["id"]
    code, text, found = await refusal(desk, "agent/spawn", prompt="x", **{"parentId": parent, **params})
    assert (code, found) == (-32803 if "code" in data else -32602, data)
    assert words in text
    listed = (await desk.client.request("agent/list", {}))["agents"]
    assert [each for each in listed if each.get("parentId") == parent] == []


# Permission requests of agents whose parents have ended


async def asking_child(desk: Desk) -> tuple[str, str, Held]:
    """A parent that has ended, and its background child whose request is open."""
    desk.script(
        child(say(use("Bash", command="touch made")), say("made it")),
        root(say(job(run_in_background=True, mode="default")), say("It works."), say("It made it.")),
    )
    desk.client.hold("agent/permission")
    parent = await desk.spawn()
    made = await child_of(desk, parent)
    assert (await desk.ended(parent))["result"] == "It works."
    held = await desk.client.held("agent/permission", lambda params: params["agent"]["id"] == made, 20)
    return parent, made, held


@pytest.mark.spec("PM-7")
async def test_a_request_of_a_child_whose_parent_has_ended_reaches_the_person(desk: Desk):
    parent, made, held = await asking_child(desk)
    [above] = held.params["agent"]["chain"]
    assert (above["id"], above["agentType"]) == (parent, "general-purpose")
    assert held.params["agent"]["rootId"] == parent
    assert ((await desk.info(made))["status"], (await desk.info(parent))["status"]) == ("waiting", "completed")
    held.reply({"optionId": "allowOnce"})
    end = await desk.ended(made)
    assert (end["status"], end["result"], (desk.repo.path / "made").exists()) == ("completed", "made it", True)
    [settled] = desk.events(made, "permissionResolved")
    assert settled["outcome"] == "allowOnce"
    assert (await desk.ended(parent))["result"] == "It made it."


@pytest.mark.spec("RUN-5")
async def test_e2_to_stop_a_background_child_withdraws_its_request(desk: Desk):
    parent, made, held = await asking_child(desk)
    info = (await desk.client.request("agent/stop", {"agentId": made}, timeout=15))["agent"]
    assert (info["status"], info["pendingPermissions"]) == ("stopped", 0)
    await withdrawn(desk, made, held)
    assert (await desk.info(parent))["status"] == "completed", "nobody is woken by what the person stopped"
    await desk.client.request("agent/send", {"to": parent, "message": "well?"})
    assert (await desk.event(parent, "notification"))["status"] == "stopped"
    await desk.ended(parent)
    assert "<status>stopped</status>" in desk.told(2, "root")


async def withdrawn(desk: Desk, agent: str, held: Held) -> None:
    """The client's open request was taken back, and told as settled by nobody."""
    settled = await desk.event(agent, "permissionResolved")
    assert (settled["outcome"], settled["requestId"]) == ("withdrawn", held.params["requestId"])
    assert held.withdrawn.is_set()
    assert (await desk.client.request("agent/permissions", {}))["requests"] == []
    await desk.ended(agent)


# agent/stop and its scopes


@pytest.mark.spec("RUN-5")
@pytest.mark.parametrize("scope", ["turn", "agent"])
async def test_the_end_of_a_parent_is_not_that_of_its_background_children(desk: Desk, scope: str):
    desk.script(
        child(say("found it", gate="late")),
        root(say(job(run_in_background=True)), say("never", gate="never")),
    )
    parent = await desk.spawn()
    made = await child_of(desk, parent)
    await desk.model.wait_for(2, 20, conversation="root")
    await desk.model.wait_for(1, 20, conversation="x")
    params = {"agentId": parent, "scope": scope}
    assert (await desk.client.request("agent/stop", params, timeout=15))["agent"]["status"] == "stopped"
    await desk.ended(parent)
    assert (await desk.info(made))["status"] == "running"
    assert (await refusal(desk, "agent/stop", agentId=parent, scope=scope))[2] == {"code": "alreadyTerminal"}
    desk.model.gate("late").set()
    assert (await desk.ended(made))["result"] == "found it"
    assert (await desk.info(parent))["status"] == "stopped"


@pytest.mark.spec("RUN-5")
async def test_e2_the_scope_tree_ends_descendants_and_withdraws_what_they_ask(desk: Desk):
    parent, made, held = await asking_child(desk)
    params = {"agentId": parent}
    assert (await refusal(desk, "agent/stop", **params))[2] == {"code": "alreadyTerminal"}
    assert not held.withdrawn.is_set()
    info = (await desk.client.request("agent/stop", {**params, "scope": "tree"}, timeout=15))["agent"]
    assert (info["id"], info["status"]) == (parent, "completed"), "it had ended before"
    await withdrawn(desk, made, held)
    assert (await desk.info(made))["status"] == "stopped"
    assert (await refusal(desk, "agent/stop", **params, scope="tree"))[2] == {"code": "alreadyTerminal"}
    assert (await refusal(desk, "agent/stop", **params, scope="all"))[2] == {"field": "scope"}


@pytest.mark.spec("RUN-5")
async def test_main_names_the_main_thread(desk: Desk):
    desk.script(
        child(say("found it", gate="never")),
        root(say(job(run_in_background=True)), say("never", gate="never"), say("back again")),
    )
    main = (await desk.client.request("agent/send", {"to": "main", "message": "go"}))["agent"]["id"]
    made = await child_of(desk, main)
    await desk.model.wait_for(2, 20, conversation="root")
    await desk.model.wait_for(1, 20, conversation="x")
    stopped = (await desk.client.request("agent/stop", {"agentId": "main"}, timeout=15))["agent"]
    assert (stopped["id"], stopped["status"]) == (main, "stopped")
    await desk.ended(main)
    assert (await desk.info(made))["status"] == "running"
    assert (await refusal(desk, "agent/background", agentId="main"))[2] == {"code": "alreadyTerminal"}
    await desk.client.request("agent/stop", {"agentId": "main", "scope": "tree"}, timeout=15)
    assert (await desk.ended(made))["status"] == "stopped"

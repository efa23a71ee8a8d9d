"""Who is asked, with what in hand, and what each answer does: to the call, to the next ones, to the files."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest

from lsp_server.demo.script import conversation, say, use
from tests.e2e.desk import Desk, option
from tests.e2e.lsp_client import Held
from tests.e2e.wire import ResponseError

pytestmark = pytest.mark.anyio

GO_ON = "Don't look for another way to do the same: go on without it, or say what you need and why."
REFUSED = f"The user refused this call. {GO_ON}"


def shell(command: str, **more: Any) -> Any:
    return say(use("Bash", command=command, **more))


async def asked(desk: Desk, agent: str, timeout: float = 20) -> Held:
    return await desk.client.held("agent/permission", lambda params: params["agent"]["id"] == agent, timeout)


async def start_asking(desk: Desk, command: str) -> tuple[str, Held]:
    """An agent that wants to run `command`, and its open request."""
    desk.says(shell(command), say("done"))
    desk.client.hold("agent/permission")
    agent = await desk.spawn()
    return agent, await asked(desk, agent)


async def answer(desk: Desk, request: str, **fields: Any) -> Any:
    return await desk.client.request("agent/answer", {"requestId": request, **fields})


def settled(desk: Desk, agent: str) -> list[Any]:
    kept = ("outcome", "decidedBy", "comment")
    events = desk.events(agent, "permissionResolved")
    return [{name: event[name] for name in kept if name in event} for event in events]


@pytest.mark.spec("PM-6")
async def test_a_request_holds_everything_that_a_person_must_know(desk):
    desk.says(shell("touch made"), say("done"))
    desk.client.hold("agent/permission")
    agent = await desk.spawn("Make a file", description="make it")
    held = await asked(desk, agent)
    params = held.params
    rule = "Bash(touch made)"
    local = f"{rule} (.claude/settings.local.json)"
    user = params["destinationFiles"][-1]["path"]
    assert user.endswith("/home/.claude/settings.json")
    assert params == {
        "requestId": params["requestId"],
        "agent": {
            "id": agent,
            "rootId": agent,
            "agentType": "general-purpose",
            "description": "make it",
            "chain": [],
        },
        "tool": {"name": "Bash", "kind": "execute", "useId": "toolu_conversation_0_0"},
        "title": "Bash touch made",
        "destinations": ["session", "localSettings", "projectSettings", "userSettings"],
        "destinationFiles": [
            {"destination": "localSettings", "path": str(desk.repo.path / ".claude" / "settings.local.json")},
            {"destination": "projectSettings", "path": str(desk.repo.path / ".claude" / "settings.json")},
            {"destination": "userSettings", "path": user},
        ],
        "input": {"command": "touch made"},
        "reason": "no rule allows this command",
        "detail": {"command": "touch made", "cwd": str(desk.repo.path)},
        "options": [
            {"id": "allowOnce", "kind": "allowOnce", "label": "Allow once"},
            {
                "id": "allowSession",
                "kind": "allowSession",
                "label": f"Allow for this session: {rule}",
                "rule": rule,
                "destination": "session",
            },
            {
                "id": "allowAlways",
                "kind": "allowAlways",
                "label": f"Always allow {local}",
                "rule": rule,
                "destination": "localSettings",
            },
            {"id": "rejectOnce", "kind": "rejectOnce", "label": "Reject"},
            {
                "id": "rejectSession",
                "kind": "rejectSession",
                "label": f"Reject for this session: {rule}",
                "rule": rule,
                "destination": "session",
            },
            {
                "id": "rejectAlways",
                "kind": "rejectAlways",
                "label": f"Always reject {local}",
                "rule": rule,
                "destination": "localSettings",
            },
            {"id": "rejectAndStop", "kind": "rejectAndStop", "label": "Reject and stop the agent"},
        ],
        "createdAt": params["createdAt"],
    }
    assert not (desk.repo.path / "made").exists()
    assert (await desk.info(agent))["pendingPermissions"] == 1
    held.reply({"optionId": "allowOnce"})
    info = await desk.ended(agent)
    assert (info["status"], info["pendingPermissions"], (desk.repo.path / "made").exists()) == ("completed", 0, True)
    assert desk.told(1) == "(no output)"


async def test_a9_the_call_is_announced_before_it_is_asked_for(desk):
    agent, held = await start_asking(desk, "/bin/true")
    # the journal of what the editor received, in its order
    journal = [m for m in desk.client.messages if m.method in ("agent/progress", "agent/permission")]
    kinds = ["ask" if m.is_request else m.params["event"]["kind"] for m in journal]
    call = next(event for event in desk.events(agent, "toolCall"))
    assert (call["toolCallId"], call["title"]) == (held.params["tool"]["useId"], held.params["title"])
    assert [k for k in kinds if k in ("toolCall", "permissionRequested", "ask")] == [
        "toolCall",
        "permissionRequested",
        "ask",
    ]
    held.reply({"optionId": "rejectOnce"})
    await desk.ended(agent)


@pytest.mark.spec("PM-6")
async def test_an_edit_is_shown_as_a_diff_and_as_an_edit_to_draw(desk):
    path = desk.repo.path / "app.py"
    desk.says(
        say(use("Read", file_path="app.py")),
        say(use("Edit", file_path="app.py", old_string="a - b", new_string="a + b")),
        say("done"),
    )
    desk.client.hold("agent/permission")
    agent = await desk.spawn()
    held = await asked(desk, agent)
    edit = {
        "documentChanges": [
            {
                "textDocument": {"uri": path.as_uri(), "version": None},
                "edits": [
                    {
                        "range": {"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 0}},
                        "newText": "    return a + b\n",
                    }
                ],
            }
        ]
    }
    diff = "--- a/app.py\n+++ b/app.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n"
    assert held.params["detail"] == {"diff": diff, "edit": edit}
    assert path.read_text() == "def add(a, b):\n    return a - b\n"
    held.reply({"optionId": "allowOnce"})
    await desk.ended(agent)
    assert path.read_text() == "def add(a, b):\n    return a + b\n"


async def test_allowed_for_the_session_also_counts_for_another_agent(desk):
    agent, held = await start_asking(desk, "/bin/echo once")
    held.reply({"optionId": "allowSession"})
    await desk.ended(agent)
    desk.client.forbid("agent/permission")
    desk.says(shell("/bin/echo once"), shell("/bin/echo once "), say("done"))
    other = await desk.run("again")
    assert (other["status"], desk.told(1), desk.told(2)) == ("completed", "once\n", "once\n")
    assert not (desk.repo.path / ".claude").exists()


async def test_allowed_for_the_session_says_nothing_of_a_longer_command(desk):
    agent, held = await start_asking(desk, "/bin/echo once")
    held.reply({"optionId": "allowSession"})
    await desk.ended(agent)
    agent, held = await start_asking(desk, "/bin/echo once; touch made")
    held.reply({"optionId": "rejectOnce"})
    await desk.ended(agent)
    assert not (desk.repo.path / "made").exists()


async def test_a12_rejected_for_the_session_denies_another_agent_without_asking(desk):
    agent, held = await start_asking(desk, "touch made")
    held.reply({"optionId": "rejectSession"})
    await desk.ended(agent)
    assert desk.told(1) == REFUSED
    desk.client.forbid("agent/permission")
    desk.says(shell("touch made"), say("done"))
    await desk.run("the other one")
    assert desk.told(1) == f"Not permitted: denied by the rule Bash(touch made) in this session. {GO_ON}"
    assert not (desk.repo.path / "made").exists()


@pytest.mark.spec("PM-5")
async def test_b2_allowed_always_is_added_to_the_local_settings_and_takes_nothing_away(desk):
    path = desk.repo.path / ".claude" / "settings.local.json"
    before = {
        "zebra": {"unknown": [1, {"deep": None}]},
        "permissions": {"deny": ["Read(./secrets/**)"], "allow": [f"Bash(make {n})" for n in range(20)], "extra": 1},
        "model": "opus",
    }
    desk.repo.write({".claude/settings.local.json": json.dumps(before)})
    agent, held = await start_asking(desk, "/bin/echo always")
    held.reply({"optionId": "allowAlways", "destination": "localSettings"})
    await desk.ended(agent)
    permissions = {**before["permissions"], "allow": [*before["permissions"]["allow"], "Bash(/bin/echo always)"]}
    assert path.read_text() == json.dumps({**before, "permissions": permissions})  # to the byte, on one line as it was
    assert sorted(each.name for each in path.parent.iterdir()) == ["settings.local.json"]
    desk.client.forbid("agent/permission")
    desk.says(shell("/bin/echo always"), say("done"))
    await desk.run("the other one")
    assert desk.told(1) == "always\n"


async def test_b2_two_answers_at_the_same_time_are_both_kept(desk):
    desk.script(
        conversation(shell("/bin/echo one"), say("done"), name="one", first_user="first"),
        conversation(shell("/bin/echo two"), say("done"), name="two", first_user="second"),
    )
    desk.client.hold("agent/permission")
    agents = [await desk.spawn("first"), await desk.spawn("second")]
    for held in [await asked(desk, agent) for agent in agents]:
        held.reply({"optionId": "allowAlways"})
    for agent in agents:
        await desk.ended(agent)
    kept = json.loads((desk.repo.path / ".claude" / "settings.local.json").read_text())
    assert sorted(kept["permissions"]["allow"]) == ["Bash(/bin/echo one)", "Bash(/bin/echo two)"]


async def test_settings_that_cannot_be_extended_are_left_as_they_are(desk):
    path = desk.repo.path / ".claude" / "settings.local.json"
    agent, held = await start_asking(desk, "touch made")
    desk.repo.write({".claude/settings.local.json": "{ this is no JSON"})
    held.reply({"optionId": "allowAlways"})
    info = await desk.ended(agent)
    assert (info["status"], path.read_text()) == ("completed", "{ this is no JSON")
    assert settled(desk, agent) == [{"outcome": "allowAlways", "decidedBy": "user"}]
    assert (desk.repo.path / "made").exists()  # the person allowed this call, whatever becomes of the rule


async def test_b4_an_untrusted_folder_is_not_offered_what_would_not_be_read_back(strangers_desk):
    desk = strangers_desk
    rules = {"permissions": {"allow": ["Bash(touch one)"], "deny": ["Bash(touch two)"]}}
    desk.repo.write({".claude/settings.json": json.dumps(rules)})
    desk.says(shell("touch one"), shell("touch two"), say("done"))
    desk.client.hold("agent/permission")
    agent = await desk.spawn()
    held = await asked(desk, agent)
    kinds = [each["kind"] for each in held.params["options"]]
    assert kinds == ["allowOnce", "allowSession", "rejectOnce", "rejectSession", "rejectAndStop"]
    held.reply({"optionId": "rejectOnce"})
    await desk.ended(agent)
    source = desk.repo.path / ".claude" / "settings.json"
    assert desk.told(1) == REFUSED
    assert desk.told(2) == f"Not permitted: denied by the rule Bash(touch two) in {source}:1. {GO_ON}"


@pytest.mark.spec("PM-2")
async def test_deny_comes_before_ask_and_ask_before_allow(desk):
    rules = {
        "permissions": {
            "allow": ["Bash(/bin/echo 1)", "Bash(/bin/echo 2)", "Bash(/bin/echo 3)"],
            "ask": ["Bash(/bin/echo 2)", "Bash(/bin/echo 3)"],
            "deny": ["Bash(/bin/echo 3)"],
        }
    }
    desk.repo.write({".claude/settings.json": json.dumps(rules)})
    desk.says(say(*(use("Bash", command=f"/bin/echo {n}") for n in (1, 2, 3))), say("done"))
    desk.client.hold("agent/permission")
    agent = await desk.spawn()
    held = await asked(desk, agent)
    source = desk.repo.path / ".claude" / "settings.json"
    asking = f"the rule Bash(/bin/echo 2) in {source}:1 asks"
    assert (held.params["title"], held.params["reason"]) == ("Bash /bin/echo 2", asking)
    held.reply({"optionId": "allowOnce"})
    await desk.ended(agent)
    assert desk.results(1) == [
        (False, "1\n"),
        (False, "2\n"),
        (True, f"Not permitted: denied by the rule Bash(/bin/echo 3) in {source}:1. {GO_ON}"),
    ]


@pytest.mark.parametrize(
    "call",
    [
        use("Read", file_path="secrets/key.txt"),
        use("Grep", pattern="hidden", output_mode="content"),
        use("Grep", pattern="hidden", output_mode="content", path="secrets/key.txt"),
        use("Grep", pattern="hidden", output_mode="content", path="secrets"),
    ],
    ids=["Read", "Grep above", "Grep file", "Grep folder"],
)
async def test_what_a_read_rule_denies_is_not_shown_by_any_tool(desk, call):
    desk.repo.write({".claude/settings.json": '{"permissions": {"deny": ["Read(./secrets/**)"]}}'})
    desk.repo.write({"secrets/key.txt": "hidden words\n", "public.txt": "nothing hidden here\n"})
    desk.client.on("agent/permission", lambda params: {"optionId": "allowOnce"})
    desk.says(say(call), say("done"))
    await desk.run()
    assert "hidden words" not in desk.told(1)


@pytest.mark.spec("PM-5")
async def test_the_model_reads_why_it_was_refused_and_goes_on(desk):
    agent, held = await start_asking(desk, "npm test")
    held.reply({"optionId": "rejectOnce", "comment": "use make test instead"})
    info = await desk.ended(agent)
    assert desk.told(1) == f"The user refused this call and says: use make test instead. {GO_ON}"
    assert settled(desk, agent) == [{"outcome": "rejectOnce", "decidedBy": "user", "comment": "use make test instead"}]
    assert (info["status"], info["result"]) == ("completed", "done")


async def test_a_comment_on_an_allowed_call_is_told_after_its_result(desk):
    agent, held = await start_asking(desk, "/bin/echo hi")
    held.reply({"optionId": "allowOnce", "comment": "but only this once"})
    await desk.ended(agent)
    assert desk.told(1) == "hi\n\nThe user allowed the call and says: but only this once"


async def test_a28_reject_and_stop_ends_the_agent(desk):
    agent, held = await start_asking(desk, "touch made")
    held.reply({"optionId": "rejectAndStop"})
    info = await desk.ended(agent)
    assert (info["status"], info["stopReason"], len(desk.model.requests())) == ("stopped", "cancelled", 1)
    assert settled(desk, agent) == [{"outcome": "rejectAndStop", "decidedBy": "user"}]
    assert not (desk.repo.path / "made").exists()


@pytest.mark.spec("PM-5")
async def test_what_runs_is_the_command_as_the_person_changed_it(desk):
    agent, held = await start_asking(desk, "touch made")
    held.reply({"optionId": "allowOnce", "updatedInput": {"command": "touch other && /bin/echo done"}})
    await desk.ended(agent)
    made = sorted(path.name for path in desk.repo.path.iterdir() if path.name in ("made", "other"))
    assert made == ["other"]
    change = "The user changed the input of the call to: {'command': 'touch other && /bin/echo done'}"
    assert desk.told(1) == f"done\n\n{change}"


async def test_b10_a_changed_command_is_held_against_the_deny_rules(desk):
    desk.repo.write({".claude/settings.json": '{"permissions": {"deny": ["Bash(touch forbidden)"]}}'})
    agent, held = await start_asking(desk, "touch made")
    held.reply({"optionId": "allowOnce", "updatedInput": {"command": "touch forbidden"}})
    await desk.ended(agent)
    source = desk.repo.path / ".claude" / "settings.json"
    rule = f"denied by the rule Bash(touch forbidden) in {source}:1"
    assert desk.told(1) == f"The user changed the input, but {rule}. {GO_ON}"
    assert not (desk.repo.path / "forbidden").exists()


async def test_a_changed_input_that_cannot_run_is_refused(desk):
    agent, held = await start_asking(desk, "touch made")
    held.reply({"optionId": "allowOnce", "updatedInput": {"order": "touch other"}})
    await desk.ended(agent)
    assert desk.told(1).startswith("The user changed the input, but it cannot run: ")
    assert not (desk.repo.path / "made").exists()


@pytest.mark.spec("PM-8")
async def test_dismissed_is_no_decision_and_any_view_may_still_answer(desk):
    agent, held = await start_asking(desk, "touch made")
    request = held.params["requestId"]
    held.reply({"cancelled": True, "optionId": "allowOnce"})
    assert (await desk.client.request("agent/permissions", {}))["requests"] == [held.params]
    assert (await desk.info(agent))["status"] == "waiting"
    assert await answer(desk, request, optionId="maybe") == {
        "accepted": False,
        "reason": "optionId 'maybe' was not offered; choose one of allowOnce, allowSession, allowAlways, rejectOnce, "
        "rejectSession, rejectAlways, rejectAndStop",
    }
    nothing = "no optionId was given, so nothing is decided; the request stays open"
    assert await answer(desk, request) == {"accepted": False, "reason": nothing}
    for input, problem in (
        ({}, "Bad input of Bash: 'command' is a required property"),
        ({"command": 1}, "Bad input of Bash, command: 1 is not of type 'string'"),
    ):
        reason = f"updatedInput cannot run, so nothing is decided; the request stays open: {problem}"
        refused = {"accepted": False, "reason": reason}
        assert await answer(desk, request, optionId="allowOnce", updatedInput=input) == refused
    assert (await desk.client.request("agent/permissions", {}))["requests"] == [held.params]
    assert await answer(desk, request, cancelled=True) == {"accepted": False, "reason": nothing}
    assert (await answer(desk, request, optionId="allowOnce", destination="userSettings"))["accepted"] is False
    assert await answer(desk, request, optionId="allowOnce") == {"accepted": True}
    info = await desk.ended(agent)
    closed = "this request is not open any more: it was answered, or its agent has ended"
    assert await answer(desk, request, optionId="rejectOnce") == {"accepted": False, "reason": closed}
    assert (info["status"], (desk.repo.path / "made").exists()) == ("completed", True)
    assert (await desk.client.request("agent/permissions", {}))["requests"] == []
    assert settled(desk, agent) == [{"outcome": "allowOnce", "decidedBy": "user"}]


@pytest.mark.parametrize("reply", [{"optionId": "allow"}, {"optionId": "ALLOWONCE"}, {}, None, {"outcome": "allow"}])
async def test_an_answer_that_was_not_offered_decides_nothing(desk, reply):
    agent, held = await start_asking(desk, "touch made")
    held.reply(reply)
    assert [each["requestId"] for each in (await desk.client.request("agent/permissions", {}))["requests"]] == [
        held.params["requestId"]
    ]
    assert not (desk.repo.path / "made").exists()
    assert await answer(desk, held.params["requestId"], optionId="rejectOnce") == {"accepted": True}
    await desk.ended(agent)


@pytest.mark.parametrize("reply", ["allowOnce", ["allowOnce"], 1, {"optionId": 1}, {"optionId": ["allowOnce"]}])
async def test_an_answer_that_is_none_denies(desk, reply):
    agent, held = await start_asking(desk, "touch made")
    held.reply(reply)
    info = await desk.ended(agent)
    assert settled(desk, agent) == [{"outcome": "noClient", "decidedBy": "none"}]
    assert (info["status"], (desk.repo.path / "made").exists()) == ("completed", False)


@pytest.mark.spec("CTX-3")
@pytest.mark.parametrize("code", [-32601, -32603, -32800])
async def test_a1_an_editor_that_cannot_ask_denies_and_the_agent_goes_on(desk, code):
    agent, held = await start_asking(desk, "touch made")
    held.fail(code, "no such method")
    info = await desk.ended(agent)
    assert desk.told(1) == (
        "Not permitted: no rule allows this command, and there is nobody who could be asked. Report this. " + GO_ON
    )
    assert (info["status"], info["result"]) == ("completed", "done")
    assert settled(desk, agent) == [{"outcome": "noClient", "decidedBy": "none"}]
    assert not (desk.repo.path / "made").exists()


@pytest.mark.spec("PM-8")
async def test_a15_k4_an_answer_after_the_stop_is_passed_over(desk):
    agent, held = await start_asking(desk, "touch made")
    stopped = await desk.client.request("agent/stop", {"agentId": agent})
    assert held.withdrawn.is_set()
    held.reply({"optionId": "allowOnce"})
    info = await desk.ended(agent)
    assert stopped["agent"] == info
    assert (info["status"], info["pendingPermissions"], len(desk.model.requests())) == ("stopped", 0, 1)
    assert settled(desk, agent) == [{"outcome": "withdrawn", "decidedBy": "none"}]
    assert (await answer(desk, held.params["requestId"], optionId="allowOnce"))["accepted"] is False
    assert (await desk.client.request("agent/permissions", {}))["requests"] == []
    assert not (desk.repo.path / "made").exists()


async def test_a_request_that_was_answered_elsewhere_is_withdrawn_here(desk):
    agent, held = await start_asking(desk, "touch made")
    assert await answer(desk, held.params["requestId"], optionId="rejectOnce") == {"accepted": True}
    await asyncio.wait_for(held.withdrawn.wait(), 5)
    held.reply({"optionId": "allowOnce"})
    info = await desk.ended(agent)
    assert (info["status"], desk.told(1)) == ("completed", REFUSED)
    assert not (desk.repo.path / "made").exists()


@pytest.mark.spec("PM-7")
async def test_a3_six_agents_ask_at_the_same_time_and_each_gets_its_own_answer(desk):
    names = [f"agent{n}" for n in range(6)]
    desk.script(*(conversation(shell(f"touch {n}"), say("done"), name=n, first_user=f"<{n}>") for n in names))
    desk.client.hold("agent/permission")
    agents = {name: await desk.spawn(f"<{name}>", background=True) for name in names}
    requests = {name: await asked(desk, agent) for name, agent in agents.items()}
    pending = (await desk.client.request("agent/permissions", {}))["requests"]
    assert {each["requestId"] for each in pending} == {held.params["requestId"] for held in requests.values()}
    assert {name: held.params["input"]["command"] for name, held in requests.items()} == {
        name: f"touch {name}" for name in names
    }
    for name, held in requests.items():
        held.reply({"optionId": "allowOnce" if name in names[::2] else "rejectOnce"})
    ended = [(await desk.ended(agent))["status"] for agent in agents.values()]
    assert ended == ["completed"] * 6
    assert sorted(path.name for path in desk.repo.path.glob("agent*")) == names[::2]
    assert len(desk.client.received("agent/permission")) == 6


async def test_a16_what_hides_in_a_command_is_not_offered_for_longer_than_once(desk):
    command = "/bin/echo hi" + "\t" * 500 + "\u202e; touch made"
    agent, held = await start_asking(desk, command)
    assert held.params["detail"]["command"] == command
    assert [each["kind"] for each in held.params["options"]] == ["allowOnce", "rejectOnce", "rejectAndStop"]
    held.reply({"optionId": "rejectOnce"})
    await desk.ended(agent)


# Modes

EDIT = (
    say(use("Read", file_path="app.py")),
    say(use("Edit", file_path="app.py", old_string="a - b", new_string="a + b")),
)
EDITED = "def add(a, b):\n    return a + b\n"
UNTOUCHED = "def add(a, b):\n    return a - b\n"


@pytest.mark.spec("PM-1", "TL-6")
async def test_plan_denies_edits_and_asks_for_commands(desk):
    desk.says(*EDIT, shell("sh -c 'touch made'"), say("done"))
    desk.client.on("agent/permission", lambda params: {"optionId": option(params, "rejectOnce")})
    info = await desk.run(permissionMode="plan")
    assert info["permissionMode"] == "plan"
    reason = "the mode plan allows no edits; describe the change instead"
    assert desk.told(2) == f"Not permitted: {reason}. {GO_ON}"
    assert [each["title"] for each in desk.client.received("agent/permission")] == ["Bash sh -c 'touch made'"]
    assert (desk.repo.path / "app.py").read_text() == UNTOUCHED


@pytest.mark.spec("PM-1")
async def test_dont_ask_denies_without_asking(desk):
    desk.repo.write({".claude/settings.json": '{"permissions": {"allow": ["Bash(/bin/echo fine)"]}}'})
    desk.client.forbid("agent/permission")
    desk.says(*EDIT, shell("touch made"), shell("/bin/echo fine"), say("done"))
    info = await desk.run(permissionMode="dontAsk")
    assert (info["status"], desk.told(4)) == ("completed", "fine\n")
    assert [desk.told(2), desk.told(3)] == [
        f"Not permitted: the mode dontAsk never asks, and no rule allows Edit here. {GO_ON}",
        f"Not permitted: the mode dontAsk never asks, and no rule allows this command. {GO_ON}",
    ]
    assert (desk.repo.path / "app.py").read_text() == UNTOUCHED
    assert not (desk.repo.path / "made").exists()


@pytest.mark.spec("PM-1")
async def test_accept_edits_edits_in_place_but_neither_outside_nor_what_commands_trust(desk, tmp_path):
    outside = tmp_path / "outside.txt"
    desk.says(
        *EDIT,
        say(use("Write", file_path=str(outside), content="x")),
        say(use("Write", file_path=".git/hooks/pre-commit", content="x")),
        shell("sh -c 'touch made'"),
        say("done"),
    )
    desk.client.on("agent/permission", lambda params: {"optionId": option(params, "rejectOnce")})
    await desk.run(permissionMode="acceptEdits")
    hook = desk.repo.path / ".git" / "hooks" / "pre-commit"
    assert [(each["tool"]["name"], each["reason"]) for each in desk.client.received("agent/permission")] == [
        ("Write", f"{outside} is outside the working directory"),
        ("Write", f"{hook} can change what later commands do, so a person decides"),
        ("Bash", "no rule allows this command"),
    ]
    assert (desk.repo.path / "app.py").read_text() == EDITED
    assert (outside.exists(), hook.exists(), (desk.repo.path / "made").exists()) == (False, False, False)


@pytest.mark.spec("PM-1")
async def test_default_asks_for_edits_too(desk):
    desk.says(*EDIT, say("done"))
    desk.client.on("agent/permission", lambda params: {"optionId": option(params, "rejectOnce")})
    await desk.run(permissionMode="default", isolation="worktree")
    assert [each["title"] for each in desk.client.received("agent/permission")] == ["Edit app.py"]
    assert (desk.repo.path / "app.py").read_text() == UNTOUCHED


@pytest.mark.spec("PM-1")
async def test_bypass_is_refused_for_root(desk):
    desk.says(shell("touch made"), say("done"))
    if os.geteuid() != 0:  # then a person may choose it
        assert (await desk.run(permissionMode="bypassPermissions"))["status"] == "completed"
        assert (desk.repo.path / "made").exists()
        return
    before = await desk.client.request("agent/list", {})
    with pytest.raises(ResponseError) as caught:
        await desk.spawn(permissionMode="bypassPermissions")
    assert (caught.value.code, caught.value.data) == (-32803, {"code": "notAllowed"})
    assert "bypassPermissions is refused for the root user; set IS_SANDBOX=1" in str(caught.value)
    assert await desk.client.request("agent/list", {}) == before


@pytest.mark.spec("PM-7", "WT-2")
async def test_bubble_edits_freely_in_its_own_worktree_only(desk):
    inside = desk.repo.path / "app.py"
    desk.says(
        *EDIT,
        say(use("Edit", file_path=str(inside), old_string="a - b", new_string="a * b")),
        say(use("Write", file_path=str(desk.repo.path / ".git" / "hooks" / "pre-commit"), content="x")),
        say("done"),
    )
    desk.client.forbid("agent/permission")
    info = await desk.run(isolation="worktree")
    assert (info["permissionMode"], info["status"]) == ("bubble", "completed")
    where = f"which this agent must not change: it works in its own worktree {info['worktree']['path']}"
    assert [desk.told(n).partition(". Write to")[0] for n in (3, 4)] == [
        f"{inside} is in {desk.repo.path}, {where}",
        f"{desk.repo.path}/.git/hooks/pre-commit is in {desk.repo.path}/.git, {where}",
    ]
    assert inside.read_text() == UNTOUCHED
    assert [each["path"] for each in (await desk.review(info["id"]))["files"]] == ["app.py"]


async def test_bubble_asks_for_edits_of_the_users_own_files(desk):
    desk.says(*EDIT, say("done"))
    desk.client.on("agent/permission", lambda params: {"optionId": option(params, "rejectOnce")})
    await desk.run()
    assert [each["title"] for each in desk.client.received("agent/permission")] == ["Edit app.py"]
    assert (desk.repo.path / "app.py").read_text() == UNTOUCHED

"""Where hooks stand among rules, modes and people, and that every call of every agent passes them."""

from __future__ import annotations

from typing import Any

import pytest

from agent_core.events import PermissionAsked, PermissionSettled
from agent_core.permissions.gate import HOW_TO_GO_ON
from agent_core.permissions.types import PermissionAnswer, PermissionMode
from agent_core.task import TaskStatus
from lsp_server.demo.script import conversation, say, use
from tests.unit.agent_core.hooks.hooking import answers, command, decides, listens, on, pre, ran, told, trusted, write
from tests.unit.agent_core.workshop import Person, Shop

__all__ = ["trusted"]  # fixture

pytestmark = pytest.mark.anyio

TOUCH = use("Bash", command="touch made")
DENY = {"deny": ["Bash(touch made)"]}
ASK = {"ask": ["Bash(touch made)"]}
ALLOW = {"allow": ["Bash(touch made)"]}
LATER = f"A PreToolUse hook refused this call: so it is. {HOW_TO_GO_ON}"


async def call(shop: Shop, *answers: PermissionAnswer, **fields: Any) -> tuple[bool, int, str]:
    """Whether the command ran, how often a person was asked, what the model was told."""
    person = Person(list(answers))
    if answers:
        shop.runtime.attach(person)
    shop.says(say(TOUCH), say("done"))
    info = await shop.run(**fields)
    shop.check(info)
    if answers:
        shop.runtime.detach(person)
    return (shop.folder / "made").exists(), len(person.requests), shop.results(1)[0][2]


YES = PermissionAnswer("allowOnce")


@pytest.mark.spec("HK-3")
@pytest.mark.parametrize(
    ("rules", "hook", "mode", "ran", "asked", "text"),
    [
        (ALLOW, "deny", None, False, 0, LATER),
        (None, "deny", PermissionMode.BYPASS, False, 0, LATER),
        (None, "allow", None, True, 0, "(no output)"),
        (None, "allow", PermissionMode.DONT_ASK, True, 0, "(no output)"),
        (ALLOW, "ask", None, True, 1, "(no output)"),
        (None, "ask", PermissionMode.BYPASS, True, 1, "(no output)"),
        (ALLOW, "defer", None, True, 1, "(no output)"),
        (ALLOW, "ask", PermissionMode.DONT_ASK, False, 0, "the mode dontAsk never asks, and a PreToolUse hook asks"),
        (ALLOW, None, None, True, 0, "(no output)"),
    ],
)
async def test_where_a_hook_stands(
    trusted: Shop, rules: Any, hook: str | None, mode: PermissionMode | None, ran: bool, asked: int, text: str
) -> None:
    write(trusted, rules, PreToolUse=[pre(hook)])
    got = await call(trusted, YES, permission_mode=mode)
    assert got[:2] == (ran, asked)
    assert text in got[2]


@pytest.mark.spec("HK-3")
@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
async def test_b10_a_hook_that_allows_beats_no_rule_and_no_guard(trusted: Shop, event: str) -> None:
    def allows(**more: Any) -> list[Any]:
        output = {"decision": {"behavior": "allow", **more}} if event == "PermissionRequest" else {}
        own = {"permissionDecision": "allow", **more} if event == "PreToolUse" else {}
        return [on("*", decides(event, **output, **own))]

    write(trusted, DENY, **{event: allows()})
    done, asked, text = await call(trusted, YES)
    assert (done, asked) == (False, 0) and "denied by the rule Bash(touch made)" in text
    write(trusted, ASK, **{event: allows()})
    done, asked, _ = await call(trusted, PermissionAnswer("rejectOnce"))
    assert (done, asked) == (False, 1)
    write(trusted, **{event: allows()})
    person = Person([PermissionAnswer("rejectOnce")])
    trusted.runtime.attach(person)
    trusted.says(say(use("Write", file_path=".envrc", content="x")), say("done"))
    await trusted.run()
    assert "a person decides" in person.requests[0].reason
    assert not (trusted.folder / ".envrc").exists()


@pytest.mark.spec("HK-3")
@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
async def test_b10_the_input_that_a_hook_makes_is_decided_again(trusted: Shop, event: str) -> None:
    changed = {"updatedInput": {"command": "touch made"}}
    if event == "PreToolUse":
        hook = decides(event, permissionDecision="allow", **changed)
    else:
        hook = decides(event, decision={"behavior": "allow", **changed})
    harmless = use("Bash", command="touch harmless")
    for rules, runs in ((DENY, False), (ASK, False), (None, True)):
        write(trusted, rules, **{event: [on("Bash", hook)]})
        person = Person([PermissionAnswer("rejectOnce")])
        trusted.runtime.attach(person)
        trusted.says(say(harmless), say("done"))
        info = await trusted.run()
        assert (trusted.folder / "made").exists() is runs
        assert [request.input for request in person.requests] == ([{"command": "touch made"}] if rules is ASK else [])
        trusted.check(info)
        trusted.runtime.detach(person)
    assert not (trusted.folder / "harmless").exists()


@pytest.mark.spec("HK-3")
@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
async def test_a_hook_that_ends_the_run_holds_the_call_back(trusted: Shop, event: str) -> None:
    rules = ALLOW if event == "PreToolUse" else None
    write(trusted, rules, **{event: [on("Bash", answers({"continue": False, "stopReason": "enough"}))]})
    trusted.says(say(TOUCH), say("done"))
    info = await trusted.run()
    assert info.status is TaskStatus.STOPPED and not (trusted.folder / "made").exists()
    trusted.check(info)


@pytest.mark.spec("HK-3")
async def test_an_input_that_cannot_run_is_refused_with_the_reason(trusted: Shop) -> None:
    write(trusted, PreToolUse=[pre("allow", updatedInput={"cmd": "x"})])
    done, _, text = await call(trusted)
    assert not done
    assert text.startswith("A PreToolUse hook changed the input, but it cannot run: Bad input of Bash: ")


@pytest.mark.spec("HK-3", "CTX-3")
@pytest.mark.parametrize(
    ("decision", "runs", "text"),
    [
        ({"behavior": "allow"}, True, "(no output)"),
        ({"behavior": "deny", "message": "not here"}, False, "A PermissionRequest hook refused this call: not here. "),
        (None, False, "there is nobody who could be asked"),
    ],
)
async def test_where_nobody_can_be_asked_hooks_decide(trusted: Shop, decision: Any, runs: bool, text: str) -> None:
    write(trusted, PermissionRequest=[on("Bash", decides("PermissionRequest", decision=decision))])
    trusted.says(say(TOUCH), say("done"))
    info = await trusted.run()
    assert ((trusted.folder / "made").exists(), text in trusted.results(1)[0][2]) == (runs, True)
    [settled] = trusted.of(info, PermissionSettled)
    by_hook = {True: ("allowOnce", "hook"), False: ("rejectOnce", "hook")}[runs] if decision else ("noClient", "none")
    assert (settled.outcome, settled.decided_by) == by_hook
    assert len(trusted.of(info, PermissionAsked)) == 1
    trusted.check(info)


@pytest.mark.spec("HK-3")
async def test_what_a_hook_adds_reaches_the_model_after_the_result(trusted: Shop) -> None:
    write(
        trusted,
        ALLOW,
        PreToolUse=[pre(additionalContext="mind the tests")],
        PostToolUse=[on("Bash", decides("PostToolUse", additionalContext="lint it", updatedToolOutput="touched"))],
    )
    done, _, text = await call(trusted)
    assert (done, text) == (True, "touched")
    assert trusted.told(1)[1:] == ["A PreToolUse hook adds:\nmind the tests", "A PostToolUse hook adds:\nlint it"]


@pytest.mark.spec("HK-1", "HK-3")
async def test_hooks_after_a_call_know_how_it_went(trusted: Shop) -> None:
    write(
        trusted,
        {"allow": ["Bash(touch made)", "Bash(false)"]},
        PostToolUse=[on("Bash", listens("post"), command("echo not so >&2; exit 2"))],
        PostToolUseFailure=[on("Bash", listens("failure"))],
    )
    trusted.says(say(TOUCH, use("Bash", command="false"), use("Bash", command="denied")), say("done"))
    info = await trusted.run()
    [post], [failure] = told(trusted, "post"), told(trusted, "failure")
    assert post["tool_response"] == {"content": [{"type": "text", "text": "(no output)"}], "is_error": False}
    assert (failure["tool_input"], failure["error"]) == ({"command": "false"}, "Exit code 1")
    assert "A PostToolUse hook objects to this call:\nnot so" in trusted.told(1)
    assert sorted(ran(trusted, info)) == [
        ("PostToolUse", "block", "not so"),
        ("PostToolUse", "ok", None),
        ("PostToolUseFailure", "ok", None),
    ]


@pytest.mark.spec("HK-1")
@pytest.mark.parametrize("how", ["foreground", "background", "fork", "nested"])
async def test_h1_hooks_run_for_every_agent_with_its_id_and_type(trusted: Shop, how: str) -> None:
    write(trusted, ALLOW, PreToolUse=[on("Bash", listens("pre"))], PostToolUse=[on("Bash", listens("post"))])
    (trusted.folder / ".claude/settings.local.json").write_text('{"maxDepth": 3}')
    options = {"background": {"run_in_background": True}, "fork": {"fork": True, "run_in_background": False}}
    launch = use("Agent", description="child", prompt="child task", **options.get(how, {}))
    turns = [say(TOUCH), say("child done")]
    middle = [say(use("Agent", description="grandchild", prompt="grand task")), say("middle done")]
    grand = conversation(*turns, name="grand", first_user="grand task")
    child = conversation(*(middle if how == "nested" else turns), name="child", first_user="child task")
    if how == "fork":
        child = conversation(*turns, name="child", last_user="child task", offset=1)
    top = conversation(say(launch), say("waiting"), say("all done"), name="top", first_user="top task")
    trusted.script(*((grand,) if how == "nested" else ()), child, top)
    await trusted.run("top task")
    worker = next(
        log
        for log in trusted.logs.values()
        if log.state.info.depth == (2 if how == "nested" else 1) or (how == "fork" and log.state.info.fork)
    )
    await trusted.ended(worker.state.info)
    for name in ("pre", "post"):
        [payload] = told(trusted, name)
        assert (payload["agent_id"], payload["tool_name"]) == (worker.agent_id, "Bash")
        assert payload["agent_type"] == worker.state.info.agent_type


@pytest.mark.spec("HK-1")
async def test_h2_the_launch_of_an_agent_is_a_tool_call(trusted: Shop) -> None:
    write(trusted, PreToolUse=[on("Agent", listens("pre"), decides("PreToolUse", permissionDecision="deny"))])
    trusted.says(say(use("Agent", description="child", prompt="work", subagent_type="Explore")), say("done"))
    await trusted.run()
    [payload] = told(trusted, "pre")
    wanted = {"description": "child", "prompt": "work", "subagent_type": "Explore"}
    assert (payload["tool_name"], payload["tool_input"]) == ("Agent", wanted)
    assert (len(trusted.logs), trusted.results(1)[0][1]) == (1, True)

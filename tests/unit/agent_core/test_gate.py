"""From a call to a person and back: what each answer does to the call, to later ones, to the files, to the agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from agent_core.events import (
    Ended,
    MessageAdded,
    Outcome,
    PermissionAsked,
    PermissionSettled,
    StatusChanged,
    ToolEnded,
)
from agent_core.messages import StopReason, TextBlock, ToolResultBlock
from agent_core.permissions.gate import HOW_TO_GO_ON
from agent_core.permissions.types import (
    Destination,
    OptionKind,
    PermissionAnswer,
    PermissionFacts,
    PermissionMode,
    PermissionRequest,
    ToolKind,
)
from agent_core.task import TaskStatus
from lsp_server.demo.script import conversation, say, use
from tests.git_helpers import Repo, clean_git, repo
from tests.unit.agent_core.workshop import Person, Shop, kinds, open_shop

__all__ = ["clean_git", "repo"]  # fixtures

pytestmark = pytest.mark.anyio

TOUCH = use("Bash", command="touch made")
MAKE = use("Bash", command="sh -c 'touch made'")
"""No mode knows what a shell does."""
REFUSED = f"The user refused this call. {HOW_TO_GO_ON}"


@pytest.fixture
async def trusted(tmp_path: Path) -> AsyncIterator[Shop]:
    """A folder whose project settings count, so that "always" is offered."""
    async with open_shop(tmp_path, trusted=True) as opened:
        yield opened
        assert opened.model.problems == []


def local(shop: Shop) -> object:
    path = shop.folder / ".claude" / "settings.local.json"
    return json.loads(path.read_text()) if path.exists() else None


async def answered(shop: Shop, answer: PermissionAnswer | None, *answers: PermissionAnswer | None) -> Person:
    person = Person([answer, *answers])
    shop.runtime.attach(person)
    return person


@pytest.mark.spec("PM-5")
@pytest.mark.parametrize(
    ("kind", "ran", "asks_again", "rule"),
    [
        (OptionKind.ALLOW_ONCE, True, True, None),
        (OptionKind.ALLOW_SESSION, True, False, None),
        (OptionKind.ALLOW_ALWAYS, True, False, "allow"),
        (OptionKind.REJECT_ONCE, False, True, None),
        (OptionKind.REJECT_SESSION, False, False, None),
        (OptionKind.REJECT_ALWAYS, False, False, "deny"),
    ],
)
async def test_every_answer_does_what_it_says(
    trusted: Shop, kind: OptionKind, ran: bool, asks_again: bool, rule: str | None
) -> None:
    shop, made = trusted, trusted.folder / "made"
    person = await answered(shop, PermissionAnswer(kind), PermissionAnswer(kind))
    shop.says(say(TOUCH), say("done"))
    info = await shop.run()
    assert (made.exists(), shop.results(1)[0][1]) == (ran, not ran)
    [asked], [settled] = shop.of(info, PermissionAsked), shop.of(info, PermissionSettled)
    assert settled == PermissionSettled(asked.request_id, "Bash touch made", kind.value, "user")
    assert local(shop) == ({"permissions": {rule: ["Bash(touch made)"]}} if rule else None)
    made.unlink(missing_ok=True)
    shop.says(say(TOUCH), say("done"))
    other = await shop.run("another agent of the session")
    assert (made.exists(), len(person.requests)) == (ran, 2 if asks_again else 1)
    if not ran and not asks_again:
        assert "denied by the rule Bash(touch made) in " in shop.results(1)[0][2]
    shop.check(info), shop.check(other)


@pytest.mark.spec("PM-5")
async def test_reject_and_stop_ends_the_agent(shop: Shop) -> None:
    await answered(shop, PermissionAnswer("rejectAndStop", comment="enough"))
    shop.says(say("I try", TOUCH, use("Glob", pattern="*")))
    info = await shop.run()
    assert (info.status, info.stop_reason, info.result) == (TaskStatus.STOPPED, StopReason.CANCELLED, "I try")
    assert [(body.outcome, body.comment) for body in shop.of(info, PermissionSettled)] == [("rejectAndStop", "enough")]
    assert (len(shop.model.requests()), (shop.folder / "made").exists()) == (1, False)
    shop.check(info)


async def test_a_run_that_asks_is_waiting_and_then_runs_again(shop: Shop) -> None:
    await answered(shop, PermissionAnswer("allowOnce"))
    shop.says(say(TOUCH), say("done"))
    info = await shop.run()
    names = kinds(shop.bodies(info))
    asked = names.index("PermissionAsked")
    assert names[asked : asked + 5] == [
        "PermissionAsked",
        "StatusChanged",
        "PermissionSettled",
        "StatusChanged",
        "ToolEnded",
    ]
    statuses = [body.status for body in shop.of(info, StatusChanged)]
    assert statuses == [TaskStatus.RUNNING, TaskStatus.WAITING, TaskStatus.RUNNING]


async def test_two_asks_at_once_wait_until_both_are_answered(shop: Shop, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"text of {name}\n")
    person = Person()
    shop.runtime.attach(person)
    calls = [use("Read", file_path=str(tmp_path / name)) for name in ("a", "b")]
    shop.says(say(*calls), say("done"))
    started = await shop.spawn()
    requests = [await person.request(0), await person.request(1)]
    first, second = sorted(requests, key=lambda request: request.tool_use_id)
    assert (await shop.runtime.info(started.id)).pending_permissions == 2
    assert shop.runtime.answer(first.id, PermissionAnswer("allowOnce")) is None
    await shop.event(started, ToolEnded)
    now = await shop.runtime.info(started.id)
    assert (now.status, now.pending_permissions) == (TaskStatus.WAITING, 1)
    assert shop.runtime.answer(second.id, PermissionAnswer("rejectOnce")) is None
    info = await shop.ended(started)
    read, refused = shop.results(1)
    assert ("text of a" in read[2], refused[1:]) == (True, (True, REFUSED))
    assert [body.status for body in shop.of(info, StatusChanged)].count(TaskStatus.WAITING) == 1
    shop.check(info)


@pytest.mark.spec("PM-6", "ED-2")
async def test_the_request_says_who_asks_for_what_and_what_would_happen(shop: Shop) -> None:
    path = shop.folder / "a.txt"
    path.write_text("one\n")
    person = await answered(shop, PermissionAnswer("rejectOnce"))
    edit = {"file_path": "a.txt", "old_string": "one", "new_string": "two"}
    shop.says(say(use("Read", file_path="a.txt")), say(use("Edit", **edit)), say("done"))
    info = await shop.run("Change one to two", description="change a.txt")
    [request] = person.requests
    diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n"
    assert request == PermissionRequest(
        id=request.id,
        agent_id=info.id,
        root_id=info.id,
        agent_type="general-purpose",
        description="change a.txt",
        chain=(),
        tool_name="Edit",
        tool_kind=ToolKind.EDIT,
        tool_use_id="toolu_conversation_1_0",
        title="Edit a.txt",
        input=edit,
        reason="no rule allows Edit here",
        facts=PermissionFacts(writes=(path,), diff=diff, edit=(path, "one\n", "two\n")),
        options=request.options,
        created_at=request.created_at,
        destinations=("session", "userSettings"),
    )
    rule = f"Edit(/{path})"
    assert [(option.kind.value, option.rules) for option in request.options] == [
        ("allowOnce", ()),
        ("allowSession", (rule,)),
        ("rejectOnce", ()),
        ("rejectSession", (rule,)),
        ("rejectAndStop", ()),
    ]


@pytest.mark.spec("PM-5")
async def test_what_a_person_changed_is_what_runs_and_the_model_is_told(shop: Shop) -> None:
    changed = {"command": "echo changed"}
    await answered(shop, PermissionAnswer("allowOnce", updated_input=changed, comment="shorter"))
    shop.says(say(TOUCH), say("done"))
    info = await shop.run()
    assert not (shop.folder / "made").exists()
    assert shop.told(1) == [
        "changed\n",
        "The user changed the input of the call to: {'command': 'echo changed'}",
        "The user allowed the call and says: shorter",
    ]
    [message] = [body.message for body in shop.of(info, MessageAdded) if body.message.role == "user"][1:]
    assert [type(block) for block in message.content] == [ToolResultBlock, TextBlock, TextBlock]


async def test_comments_come_after_all_results(shop: Shop) -> None:
    await answered(shop, PermissionAnswer("allowOnce", comment="mind the gap"), PermissionAnswer("allowOnce"))
    shop.says(say(use("Bash", command="sh -c 'echo one'"), use("Bash", command="sh -c 'echo two'")), say("done"))
    await shop.run()
    assert shop.told(1) == ["one\n", "two\n", "The user allowed the call and says: mind the gap"]


@pytest.mark.spec("PM-2")
@pytest.mark.parametrize(
    ("updated", "words"),
    [
        ({"command": "rm -r x"}, "The user changed the input, but denied by the rule Bash(rm -r x) in "),
        ({"command": ""}, "The user changed the input, but it cannot run: Bad input of Bash, command: "),
        ({}, "The user changed the input, but it cannot run: Bad input of Bash: 'command' is a required property"),
        ({"command": "true", "sudo": True}, "The user changed the input, but it cannot run: Bad input of Bash: "),
    ],
)
async def test_b10_a_changed_input_is_checked_again(tmp_path: Path, updated: dict[str, object], words: str) -> None:
    async with open_shop(tmp_path, settings={"permissions": {"deny": ["Bash(rm -r x)"]}}) as shop:
        (shop.folder / "x").mkdir()
        await answered(shop, PermissionAnswer("allowSession", updated_input=updated))
        shop.says(say(TOUCH), say("done"))
        await shop.run()
        [(_, failed, text)] = shop.results(1)
        assert (failed, text.startswith(words)) == (True, True), text
        assert (shop.folder / "x").exists()


async def test_a_refusal_with_a_comment_reaches_the_model(shop: Shop) -> None:
    await answered(shop, PermissionAnswer("rejectOnce", comment="use make test"))
    shop.says(say(TOUCH), say("done"))
    await shop.run()
    words = f"The user refused this call and says: use make test. {HOW_TO_GO_ON}"
    assert shop.results(1) == [("toolu_conversation_0_0", True, words)]


@pytest.mark.spec("CTX-3")
@pytest.mark.parametrize("askers", [0, 2])
async def test_a1_with_nobody_who_can_answer_it_is_denied_with_a_reason(shop: Shop, askers: int) -> None:
    for _ in range(askers):
        await answered(shop, None)
    shop.says(say(TOUCH), say("done"))
    info = await shop.run()
    reason = "no rule allows this command, and there is nobody who could be asked. Report this."
    assert shop.results(1) == [("toolu_conversation_0_0", True, f"Not permitted: {reason} {HOW_TO_GO_ON}")]
    assert [(body.outcome, body.decided_by) for body in shop.of(info, PermissionSettled)] == [
        (Outcome.NO_CLIENT, "none")
    ]
    assert info.status is TaskStatus.COMPLETED
    shop.check(info)


@pytest.mark.spec("PM-8")
async def test_an_ask_survives_the_editor_that_showed_it(shop: Shop) -> None:
    first, second = Person(), Person()
    shop.runtime.attach(first)
    shop.says(say(TOUCH), say("done"))
    started = await shop.spawn()
    request = await first.request()
    shop.runtime.attach(second)
    assert await second.request() == request
    shop.runtime.detach(first)
    assert shop.runtime.pending_permissions() == (request,)
    assert shop.runtime.answer(request.id, PermissionAnswer("allowOnce")) is None
    twice = shop.runtime.answer(request.id, PermissionAnswer("rejectOnce"))
    assert twice == "this request is not open any more: it was answered, or its agent has ended"
    info = await shop.ended(started)
    assert ((shop.folder / "made").exists(), len(shop.of(info, PermissionSettled))) == (True, 1)


@pytest.mark.spec("PM-8")
async def test_an_answer_that_was_not_offered_leaves_the_ask_open(shop: Shop) -> None:
    person = await answered(shop, PermissionAnswer("allowForEver"))
    shop.says(say(TOUCH), say("done"))
    started = await shop.spawn()
    request = await person.request()
    await anyio.wait_all_tasks_blocked()
    assert shop.runtime.pending_permissions() == (request,)
    assert not (shop.folder / "made").exists()
    assert shop.runtime.answer(request.id, PermissionAnswer("allowOnce")) is None
    await shop.ended(started)
    assert (len(person.requests), (shop.folder / "made").exists()) == (1, True)


async def test_an_ask_is_in_the_transcript_before_anybody_sees_it(shop: Shop) -> None:
    person = Person()
    shop.runtime.attach(person)
    shop.says(say(TOUCH))
    started = await shop.spawn()
    request = await person.request()
    transcript = next(shop.state.glob(f"projects/*/*/subagents/agent-{started.id}.jsonl"))
    assert request.id in transcript.read_text()
    await shop.stopped(started)


@pytest.mark.spec("PM-7")
async def test_bubble_asks_for_commands_also_in_a_worktree_but_edits_it_freely(tmp_path: Path, repo: Repo) -> None:
    async with open_shop(tmp_path, folder=repo.path) as shop:
        person = await answered(shop, PermissionAnswer("allowOnce"))
        shop.says(say(use("Write", file_path="new.txt", content="x"), MAKE), say("done"))
        info = await shop.run(isolation="worktree", permission_mode=PermissionMode.BUBBLE)
        assert info.worktree is not None
        [request] = person.requests
        assert (request.tool_name, request.facts.cwd) == ("Bash", info.worktree.path)
        assert sorted(path.name for path in info.worktree.path.iterdir() if path.name in ("new.txt", "made")) == [
            "made",
            "new.txt",
        ]


@pytest.mark.spec("PM-1")
@pytest.mark.parametrize(
    ("mode", "edit", "command"),
    [
        (PermissionMode.DEFAULT, "asked", "asked"),
        (PermissionMode.ACCEPT_EDITS, "ran", "asked"),
        (PermissionMode.PLAN, "denied", "asked"),
        (PermissionMode.DONT_ASK, "denied", "denied"),
        (PermissionMode.BYPASS, "ran", "ran"),
        (PermissionMode.BUBBLE, "asked", "asked"),
    ],
)
async def test_what_each_mode_does(shop: Shop, mode: PermissionMode, edit: str, command: str) -> None:
    person = await answered(shop, PermissionAnswer("rejectOnce"), PermissionAnswer("rejectOnce"))
    shop.says(say(use("Write", file_path="new.txt", content="x"), MAKE), say("done"))
    info = await shop.run(permission_mode=mode)
    asked = {request.tool_name for request in person.requests}
    ends = [body.status for body in shop.of(info, ToolEnded)]

    def fate(tool: str, end: str) -> str:
        return "asked" if tool in asked else "ran" if end == "completed" else "denied"

    assert (fate("Write", ends[0]), fate("Bash", ends[1])) == (edit, command)
    assert ((shop.folder / "new.txt").exists(), (shop.folder / "made").exists()) == (edit == "ran", command == "ran")
    assert shop.of(info, Ended)[0].info.status is TaskStatus.COMPLETED


async def test_a_rule_that_cannot_be_stored_holds_for_the_session_and_the_call_runs(
    trusted: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    shop = trusted
    (shop.folder / ".claude").write_text("a file where a folder is due")
    person = await answered(shop, PermissionAnswer("allowAlways"))
    shop.says(say(TOUCH), say(TOUCH), say("done"))
    await shop.run()
    assert ((shop.folder / "made").exists(), len(person.requests)) == (True, 1)
    assert "holds for this session only, it could not be stored" in caplog.text


@pytest.mark.spec("PM-5")
@pytest.mark.parametrize("kind", [OptionKind.ALLOW_SESSION, OptionKind.ALLOW_ALWAYS, OptionKind.REJECT_ALWAYS])
@pytest.mark.parametrize(
    ("destination", "file"),
    [
        ("session", None),
        ("localSettings", "work/.claude/settings.local.json"),
        ("projectSettings", "work/.claude/settings.json"),
        ("userSettings", "home/.claude/settings.json"),
    ],
)
async def test_a_person_chooses_where_a_lasting_answer_is_stored(
    trusted: Shop, tmp_path: Path, kind: OptionKind, destination: Destination, file: str | None
) -> None:
    await answered(trusted, PermissionAnswer(kind, destination=destination))
    trusted.says(say(TOUCH), say("done"))
    await trusted.run()
    written = list(tmp_path.rglob("settings*.json"))
    assert written == ([tmp_path / file] if file else [])
    behavior = "allow" if kind.allows else "deny"
    for path in written:
        assert json.loads(path.read_text()) == {"permissions": {behavior: ["Bash(touch made)"]}}


async def test_b4_no_place_is_offered_that_is_not_read_back(shop: Shop, tmp_path: Path) -> None:
    person = await answered(shop, PermissionAnswer("allowSession", destination="userSettings"))
    shop.says(say(TOUCH), say("done"))
    await shop.run()
    assert person.requests[0].destinations == ("session", "userSettings")
    assert (tmp_path / "home" / ".claude" / "settings.json").exists()
    assert not (shop.folder / ".claude").exists()


async def test_b4_a_broken_file_is_no_destination(trusted: Shop) -> None:
    path = trusted.folder / ".claude" / "settings.local.json"
    path.parent.mkdir()
    path.write_text("{")
    person = await answered(trusted, PermissionAnswer("rejectOnce"))
    trusted.says(say(TOUCH), say("done"))
    await trusted.run()
    [request] = person.requests
    assert request.destinations == ("session", "projectSettings", "userSettings")
    assert request.reason.startswith(f"the rule * in {path} (which cannot be read")
    assert "allowAlways" not in [option.id for option in request.options]


async def test_a_deny_rule_that_comes_while_an_agent_runs_holds_at_its_next_call(shop: Shop) -> None:
    """Also when the file is broken in between: what it said goes on."""
    path = shop.folder / ".claude" / "settings.json"
    path.parent.mkdir()
    touch = use("Bash", command="touch one")
    shop.says(say(use("Read", file_path="x")), say(touch, gate="denied"), say(touch, gate="broken"), say("done"))
    info = await shop.spawn()
    for number, (gate, text) in enumerate(
        (("denied", '{"permissions": {"deny": ["Bash(touch one)"]}}'), ("broken", "{"))
    ):
        await shop.model.wait_for(number + 2)
        path.write_text(text)
        shop.model.gate(gate).set()
    await shop.ended(info)
    source = f"denied by the rule Bash(touch one) in {path}:1"
    assert [source in shop.results(number)[0][2] for number in (2, 3)] == [True, True]


@pytest.mark.spec("PM-3")
@pytest.mark.parametrize("mode", [PermissionMode.PLAN, PermissionMode.DONT_ASK])
async def test_a4_grants_and_modes_reach_agents_and_restrictions_do_too(tmp_path: Path, mode: PermissionMode) -> None:
    rules = {"permissions": {"allow": ["Bash(touch allowed)"]}, "defaultPermissionMode": "acceptEdits"}
    launch = use("Agent", description="child", prompt="child", run_in_background=False)
    write = use("Write", file_path="made", content="x")
    for parent, allowed, edited in ((PermissionMode.ACCEPT_EDITS, True, True), (mode, True, False)):
        async with open_shop(tmp_path / parent, settings=rules, trusted=True) as shop:
            (shop.folder / "a").write_text("x")
            look = use("Read", file_path="a")
            shop.script(
                conversation(say(look, use("Bash", command="touch allowed"), write), say("ok"), first_user="child"),
                conversation(say(launch), say("done"), first_user="go"),
            )
            await shop.run(permission_mode=parent)
            found = [(shop.folder / name).exists() for name in ("allowed", "made")]
            assert found == [allowed, edited], parent
            assert shop.runtime.pending_permissions() == ()


async def test_folders_beside_the_workspace_are_worked_in_as_in_it(tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "a").write_text("x")
    settings = {"permissions": {"additionalDirectories": [str(beside)]}}
    async with open_shop(tmp_path, settings=settings) as shop:
        calls = use("Read", file_path=str(beside / "a")), use("Write", file_path=str(beside / "b"), content="y")
        shop.says(say(*calls), say("done"))
        await shop.run(permission_mode=PermissionMode.ACCEPT_EDITS)
        assert [failed for _, failed, _ in shop.results(1)] == [False, False]


async def test_b1_what_was_allowed_always_is_allowed_after_a_restart_too(tmp_path: Path) -> None:
    outside = tmp_path / "out [1] *"
    outside.mkdir()
    (outside / "a").write_text("x")
    look = use("Read", file_path=str(outside / "a"))
    async with open_shop(tmp_path, trusted=True) as shop:
        person = await answered(shop, PermissionAnswer("allowAlways"))
        shop.says(say(look), say("done"))
        await shop.run()
        assert len(person.requests) == 1
    async with open_shop(tmp_path, trusted=True) as shop:
        shop.says(say(look, use("Read", file_path=str(tmp_path / "home"))), say("done"))
        await shop.run()
        assert [failed for _, failed, _ in shop.results(1)] == [False, True]


@pytest.mark.spec("PM-8")
async def test_a24_an_ask_waits_for_its_person_however_long_that_takes(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hours go by in an instant: every timer of less would fire."""
    person = Person()
    shop.runtime.attach(person)
    shop.says(say(MAKE), say("done"))
    started = await shop.spawn()
    request = await person.request()
    loop = asyncio.get_running_loop()
    real, woken = loop.time, asyncio.Event()
    loop.call_later(24 * 3600, woken.set)
    monkeypatch.setattr(loop, "time", lambda: real() + 48 * 3600)
    await woken.wait()
    await anyio.wait_all_tasks_blocked()
    assert shop.runtime.pending_permissions() == (request,)
    assert shop.of(started, PermissionSettled) == []
    shop.runtime.answer(request.id, PermissionAnswer("allowOnce"))
    assert (await shop.runtime.wait(started.id)).status is TaskStatus.COMPLETED
    assert (shop.folder / "made").exists()


@pytest.mark.spec("CTX-3", "PM-2")
async def test_a25_a_call_is_judged_alike_whoever_makes_it(tmp_path: Path) -> None:
    """The same calls by an agent, by one that it launched, and by one in the background."""
    (tmp_path / "secret").write_text("x")
    rules = {"allow": ["Bash(sh -c 'touch allowed')"], "deny": ["Bash(rm *)", "Read(.env)"], "ask": ["Bash(date *)"]}
    calls = [
        use("Bash", command="sh -c 'touch allowed'"),
        use("Bash", command="sh -c 'touch other'"),
        use("Bash", command="ls && rm x"),
        use("Bash", command="date -u"),
        use("Read", file_path=str(tmp_path / "secret")),
        use("Read", file_path=".env"),
        use("Write", file_path=str(tmp_path / "beside"), content="x"),
    ]
    settings = {"permissions": rules, "defaultPermissionMode": "inherit"}
    async with open_shop(tmp_path, settings=settings, trusted=True) as shop:
        person = await answered(shop, *[PermissionAnswer("rejectOnce") for _ in range(20)])
        jobs = [
            use("Agent", description=name, prompt=name, run_in_background=name == "behind")
            for name in ("before", "behind")
        ]
        children = [conversation(say(*calls), say("ok"), first_user=name, name=name) for name in ("before", "behind")]
        shop.script(
            *children,
            conversation(say(*calls), say(*jobs), say("done"), name="root", first_user="go", repeat_last=True),
        )
        root = await shop.run(permission_mode=PermissionMode.DEFAULT)
        infos = [root, *(each for each in await shop.runtime.list() if each.parent_id == root.id)]
        for info in infos:
            await shop.ended(info)
        asked = {info.id: [each.title for each in person.requests if each.agent_id == info.id] for info in infos}
        assert len(infos) == 3
        assert len({tuple(titles) for titles in asked.values()}) == 1
        assert asked[root.id] == [
            "Bash sh -c 'touch other'",
            "Bash date -u",
            f"Read {tmp_path / 'secret'}",
            f"Write {tmp_path / 'beside'}",
        ]
        results = [[failed for _, failed, _ in shop.results(1, name)] for name in ("root", "before", "behind")]
        assert results == [[False, *[True] * 6]] * 3
        assert shop.model.problems == []

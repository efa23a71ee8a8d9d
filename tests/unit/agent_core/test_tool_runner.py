"""The calls of one message: which run side by side, in which order results come, what a failing one does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest
from attrs import define, field

from agent_core.errors import ToolError
from agent_core.events import ToolCalled, ToolEnded, ToolOutput
from agent_core.messages import TextBlock
from agent_core.permissions.types import PermissionMode, ToolKind
from agent_core.task import TaskStatus
from agent_core.tool import ToolContext
from lsp_server.demo.script import ToolUse, say, use
from tests.unit.agent_core.conftest import AddTools
from tests.unit.agent_core.workshop import Probe, Shop

pytestmark = pytest.mark.anyio

FREE = {"permission_mode": PermissionMode.BYPASS}


@define(eq=False)
class Barrier:
    """Calls that meet: each waits until `count` of them run at the same time."""

    count: int
    running: int = 0
    met: anyio.Event = field(factory=anyio.Event)

    async def __call__(self, label: str, ctx: ToolContext) -> str:
        self.running += 1
        if self.running == self.count:
            self.met.set()
        with anyio.fail_after(10):
            await self.met.wait()
        return f"met {label}"


@define(eq=False)
class Journal:
    """Writes down when each call begins and ends."""

    lines: list[str] = field(factory=list)

    async def __call__(self, label: str, ctx: ToolContext) -> str:
        self.lines.append(f"{label} begins")
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        self.lines.append(f"{label} ends")
        return label


def raising(error: Exception) -> Callable[[str, ToolContext], Awaitable[str]]:
    async def work(label: str, ctx: ToolContext) -> str:
        raise error

    return work


async def test_neighbouring_calls_that_may_run_side_by_side(shop: Shop, tools: AddTools) -> None:
    tools(Probe("Meet", Barrier(3), concurrent=True))
    shop.says(say(*(use("Meet", label=label) for label in "abc")), say("done"))
    info = await shop.run(**FREE)
    assert (info.status, [text for _, _, text in shop.results(1)]) == (
        TaskStatus.COMPLETED,
        ["met a", "met b", "met c"],
    )


async def test_others_run_alone_and_in_order(shop: Shop, tools: AddTools) -> None:
    journal = Journal()
    tools(Probe("Alone", journal), Probe("Beside", journal, concurrent=True))
    calls = [("Alone", "a"), ("Alone", "b"), ("Beside", "c"), ("Beside", "d"), ("Alone", "e"), ("Beside", "f")]
    shop.says(say(*(use(name, label=label) for name, label in calls)), say("done"))
    info = await shop.run(**FREE)
    together, rest = journal.lines[4:8], journal.lines[:4] + journal.lines[8:]
    assert rest == [f"{label} {what}" for label in "abef" for what in ("begins", "ends")]
    assert together == ["c begins", "d begins", "c ends", "d ends"]
    assert [text for _, _, text in shop.results(1)] == list("abcdef")
    assert [body.title for body in shop.of(info, ToolCalled)] == [f"{name} {label}" for name, label in calls]


async def test_results_are_in_the_order_of_the_calls_and_ends_as_they_happen(shop: Shop, tools: AddTools) -> None:
    gate = anyio.Event()

    async def last(label: str, ctx: ToolContext) -> str:
        if label == "first":
            await gate.wait()
        gate.set()
        return label

    tools(Probe("Race", last, concurrent=True))
    shop.says(say(use("Race", label="first"), use("Race", label="second")), say("done"))
    info = await shop.run(**FREE)
    ids = ["toolu_conversation_0_0", "toolu_conversation_0_1"]
    assert [body.tool_call_id for body in shop.of(info, ToolEnded)] == [ids[1], ids[0]]
    assert shop.results(1) == [(ids[0], False, "first"), (ids[1], False, "second")]


async def test_calls_are_announced_and_on_disk_before_the_first_one_runs(shop: Shop, tools: AddTools) -> None:
    seen: list[tuple[int, int]] = []

    async def look(label: str, ctx: ToolContext) -> str:
        log = shop.logs[ctx.agent_id]
        path = next(shop.state.glob(f"projects/*/*/subagents/agent-{ctx.agent_id}.jsonl"))
        announced = sum(isinstance(event.body, ToolCalled) for event in log.kept())
        seen.append((announced, path.read_bytes().count(b'"ToolCalled"')))
        return ""

    tools(Probe("Look", look))
    shop.says(say(use("Look", label="a"), use("Look", label="b")), say("done"))
    await shop.run(**FREE)
    assert seen == [(2, 2), (2, 2)]


HOST = "failed inside; this is a fault of the host, not of your call."


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (use("Says", label="x"), "that is wrong"),
        (use("Crashes", label="x"), f"The tool Crashes {HOST}"),
        (use("Disk", label="x"), "No space left on device: /full"),
        (ToolUse("Fly", {}, unchecked=True), "There is no tool Fly. Yours are: "),
        (ToolUse("Says", {}, unchecked=True), "Bad input of Says: 'label' is a required property"),
        (ToolUse("Says", {"label": 1}, unchecked=True), "Bad input of Says, label: 1 is not of type 'string'"),
        (ToolUse("Read", {"file_path": ["a"]}, unchecked=True), "Bad input of Read, file_path: "),
        (use("Read", file_path="nowhere.txt"), "does not exist"),
    ],
)
async def test_what_fails_is_a_result_and_the_loop_goes_on(
    shop: Shop, tools: AddTools, call: ToolUse, text: str
) -> None:
    tools(
        Probe("Says", raising(ToolError("that is wrong"))),
        Probe("Crashes", raising(ZeroDivisionError("secret"))),
        Probe("Disk", raising(OSError(28, "No space left on device", "/full"))),
        Probe("Good", Barrier(1)),
    )
    shop.says(say(call, use("Good", label="other")), say("I go on"))
    info = await shop.run(**FREE)
    (_, failed, words), other = shop.results(1)
    assert (failed, text in words, "secret" in words) == (True, True, False), words
    assert other == ("toolu_conversation_0_1", False, "met other")
    assert (info.status, info.result) == (TaskStatus.COMPLETED, "I go on")
    assert [body.status for body in shop.of(info, ToolEnded)] == ["failed", "completed"]
    shop.check(info)


async def test_a_crash_beside_others_takes_none_along(shop: Shop, tools: AddTools) -> None:
    tools(
        Probe("Meet", Barrier(2), concurrent=True),
        Probe("Crashes", raising(ZeroDivisionError()), concurrent=True),
    )
    shop.says(say(use("Meet", label="a"), use("Crashes", label="x"), use("Meet", label="b")), say("done"))
    await shop.run(**FREE)
    assert [text for _, _, text in shop.results(1)] == ["met a", f"The tool Crashes {HOST}", "met b"]


async def test_an_unknown_tool_is_announced_as_what_it_is(shop: Shop) -> None:
    shop.says(say(ToolUse("Fly", {"path": "moon", "to": 1}, unchecked=True)), say("done"))
    info = await shop.run()
    [called] = shop.of(info, ToolCalled)
    assert called == ToolCalled(
        "toolu_conversation_0_0",
        "Fly",
        ToolKind.OTHER,
        "Fly",
        {"path": "moon", "to": 1},
        ((shop.folder / "moon", None),),
    )


async def test_output_is_shown_while_a_call_runs_and_its_begin_too(shop: Shop, tools: AddTools) -> None:
    go = anyio.Event()

    async def talk(label: str, ctx: ToolContext) -> str:
        ctx.report("half")
        await go.wait()
        return "whole"

    tools(Probe("Talk", talk))
    shop.says(say(use("Talk", label="a")), say("done"))
    started = await shop.spawn(**FREE)
    begun = await shop.event(started, ToolOutput)
    half = await shop.event(started, ToolOutput, lambda body: body.output != "")
    assert [begun, half] == [ToolOutput("toolu_conversation_0_0", text) for text in ("", "half")]
    go.set()
    info = await shop.ended(started)
    assert [body.output for body in shop.of(info, ToolEnded)] == [(TextBlock("whole"),)]
    assert [event.body async for event in ended_log(shop, info.id)] == shop.bodies(info)


async def ended_log(shop: Shop, agent_id: str):  # type: ignore[no-untyped-def]
    """All that a reader who comes now is shown; nothing that passes is kept after the end."""
    count = shop.logs[agent_id].seq
    async for event in shop.logs[agent_id].read():
        yield event
        if event.durable and event.seq == count:
            return

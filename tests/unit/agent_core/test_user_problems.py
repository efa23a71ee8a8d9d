"""What people met in other products (reference/user_problems.md) and must not meet here; named after the entries."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core import progress_summary
from agent_core.errors import TranscriptFailed
from agent_core.events import StatusChanged, ToolEnded
from agent_core.permissions.types import PermissionAnswer, PermissionMode
from agent_core.task import TaskStatus
from lsp_server.demo.script import Fault, conversation, say, use
from tests.unit.agent_core.test_background import child, child_of, job, opened, root, runs
from tests.unit.agent_core.test_forking import fork, forked, share, tokens, unmarked
from tests.unit.agent_core.workshop import Person, Shop, open_shop

pytestmark = pytest.mark.anyio
LOOK = use("Read", file_path="a.txt")
LONG = "All of this was said before. " * 2_000
"""About 14,000 tokens."""


# B. Rules


@pytest.mark.spec("PM-5")
async def test_b5_what_is_remembered_in_one_turn_holds_in_the_next(shop: Shop) -> None:
    person = Person([PermissionAnswer("allowSession")])
    shop.runtime.attach(person)
    twice = say(use("Bash", command="/bin/echo once"))
    shop.says(twice, twice, say("first"), twice, say("second"))
    info = await shop.run()
    info = await shop.send(info, "and again")
    assert info.result == "second"
    assert [request.title for request in person.requests] == ["Bash /bin/echo once"]
    assert [body.status for body in shop.of(info, ToolEnded)] == ["completed"] * 3


# F. Resume and transcripts


@pytest.mark.spec("TR-1", "TR-3")
async def test_f4_what_many_children_did_is_in_their_files_and_not_in_that_of_their_parent(tmp_path: Path) -> None:
    """The parent's file grows by their answers only, and a damaged file is named instead of "not found"."""
    count, line = 40, "all of this was read\n"
    async with opened(tmp_path) as shop:
        (shop.folder / "a.txt").write_text(line * 1_000)
        shop.script(
            conversation(say("I look.", LOOK), say("answer"), first_user="child "),
            root(say(*(job(str(number)) for number in range(count))), say("done")),
            unique_ids=True,
        )
        info = await shop.run()
        files = sorted(info.output_file.parent.glob("agent-*.jsonl"))
    own = info.output_file.with_suffix(".jsonl")
    others = [path for path in files if path != own]
    assert len(others) == count and all(path.stat().st_size > 20_000 for path in others)
    assert own.stat().st_size < count * 5_000 and line.strip().encode() not in own.read_bytes()
    others[0].write_bytes(others[0].read_bytes()[100:])
    own.write_bytes(b"}" + own.read_bytes())
    async with opened(tmp_path) as shop:
        listed = await shop.runtime.list()
        assert len(listed) == count - 1, "the others are there"
        with pytest.raises(TranscriptFailed, match="is damaged from its beginning"):
            await shop.runtime.send(listed[0].id, "more")


@pytest.mark.spec("TR-4")
@pytest.mark.filterwarnings("ignore:Sending a large body")
async def test_f5_an_agent_with_a_transcript_of_many_megabytes_goes_on(tmp_path: Path) -> None:
    async with opened(tmp_path) as shop:
        shop.script(conversation(say("done")), context_tokens=10_000_000)
        info = await shop.run("word " * 1_100_000)
        assert info.output_file.with_suffix(".jsonl").stat().st_size > 5 << 20
    async with opened(tmp_path) as shop:
        shop.script(conversation(say(""), say("more")), context_tokens=10_000_000)
        resumed = await shop.send(info, "and then?")
        assert (resumed.status, resumed.result) == (TaskStatus.COMPLETED, "more")


@pytest.mark.spec("TR-4", "MD-2")
async def test_f8_nothing_that_an_agent_was_launched_with_is_lost(tmp_path: Path) -> None:
    agents = tmp_path / "home" / ".claude" / "agents"
    agents.mkdir(parents=True)
    (agents / "odd.md").write_text("---\nname: odd\ndescription: d\ntools: Read\n---\nYou are odd.")
    (tmp_path / "work" / "sub").mkdir(parents=True)
    launched = {"agent_type": "odd", "model": "claude-opus-4-1", "permission_mode": PermissionMode.PLAN}
    async with opened(tmp_path) as shop:
        shop.says(say("done"))
        info = await shop.run(**launched, cwd=shop.folder / "sub", name="helper")
        before = shop.asked(0)
    (agents / "odd.md").write_text("---\nname: odd\ndescription: d\ntools: Bash\nmodel: haiku\n---\nChanged since.")
    async with opened(tmp_path) as shop:
        shop.says(say(""), say("more"))
        resumed = await shop.send(info, "and then?")
        body = shop.asked(0)
        assert [body[name] for name in ("model", "max_tokens")] == [before[name] for name in ("model", "max_tokens")]
        assert unmarked([body["tools"], body["system"]]) == unmarked([before["tools"], before["system"]])
        assert [tool["name"] for tool in body["tools"]] == ["Read"] and "You are odd." in json.dumps(body["system"])
        same = ("name", "agent_type", "model", "permission_mode", "cwd", "depth", "isolation", "started_at")
        assert [getattr(resumed, each) for each in same] == [getattr(info, each) for each in same]
        assert (resumed.model, resumed.cwd) == ("claude-opus-4-1", shop.folder / "sub")


# I. Prompt cache and cost


@pytest.mark.spec("FK-3", "TR-2")
async def test_i2_a_fork_that_is_woken_after_a_tool_call_reads_all_that_it_had(shop: Shop) -> None:
    path = shop.folder / "a.txt"
    path.write_text("hello\n")
    look = use("Read", file_path=str(path))
    shop.script(
        forked("x", say("I look.", look), say("forked"), say("woken"), offset=2),
        root(say(LOOK), say(fork("x", run_in_background=False)), say("over")),
    )
    info = await shop.run(f"go {LONG}")
    made = await child_of(shop, info)
    assert (await shop.send(made, "and?")).result == "woken"
    assert min(share(shop, "x", number) for number in range(3)) >= 0.95
    before, woken = shop.asked(1, "x")["messages"], shop.asked(2, "x")["messages"]
    assert unmarked(woken)[: len(before)] == unmarked(before)
    marks = {json.dumps(mark) for name in ("x", "root") for mark in lifetimes(shop, name)}
    assert marks == {'{"type": "ephemeral"}'}, "the fork's entries live as long as its parent's"


def lifetimes(shop: Shop, name: str) -> list[Any]:
    found: list[Any] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            found.extend(each for key, each in value.items() if key == "cache_control")
            value = list(value.values())
        for each in value if isinstance(value, list) else ():
            walk(each)

    for entry in shop.model.requests(name):
        walk(entry.json)
    return found


@pytest.mark.spec("CTX-4", "FK-9")
async def test_i3_the_environment_is_no_part_of_what_a_fresh_agent_writes_again(shop: Shop) -> None:
    """Four times one agent, in different folders: from the second on its tools and system prompt are read."""
    folders = [shop.folder / name for name in ("one", "two", "three", "four")]
    for number, folder in enumerate(folders):
        folder.mkdir()
        shop.says(say("done")) if number == 0 else None
    shop.script(*(conversation(say("done"), first_user=f"task {folder.name}", name=folder.name) for folder in folders))
    for folder in folders:
        await shop.run(f"task {folder.name}", cwd=folder)
    first, *later = [tokens(shop, folder.name, 0) for folder in folders]
    for each in later:
        assert each["cache_read_input_tokens"] >= 0.8 * sum(first.values())
        assert each["cache_read_input_tokens"] + each["cache_creation_input_tokens"] + each["input_tokens"] > 0
    heads = {json.dumps(unmarked([shop.asked(0, f.name)["tools"], shop.asked(0, f.name)["system"]])) for f in folders}
    assert len(heads) == 1 and not any(str(folder) in head for head in heads for folder in folders)


@pytest.mark.spec("CTX-4")
async def test_i5_the_cached_part_of_a_child_grows_with_each_of_its_turns(shop: Shop) -> None:
    path = shop.folder / "a.txt"
    path.write_text("hello\n" * 500)
    look = use("Read", file_path=str(path))
    shop.script(child("x", *(say("I look.", look),) * 9, say("found")), root(say(job("x")), say("done")))
    await shop.run()
    counts = [tokens(shop, "x", number) for number in range(10)]
    reads = [each["cache_read_input_tokens"] for each in counts]
    assert all(later > earlier for earlier, later in pairwise(reads)), reads
    for before, after in pairwise(counts):
        assert after["cache_read_input_tokens"] >= 0.99 * (sum(before.values()) - before["input_tokens"])
        assert after["input_tokens"] < 100


@pytest.mark.spec("RES-1")
async def test_i6_each_agent_shows_what_it_read_from_the_cache_and_wrote_to_it(shop: Shop) -> None:
    shop.script(
        child("x", say("I look.", use("Glob", pattern="*")), say("found")),
        root(say(job("x")), say("done")),
    )
    info = await shop.run()
    for agent, name in ((info, "root"), (await child_of(shop, info), "x")):
        counts = [tokens(shop, name, number) for number in range(len(shop.model.requests(name)))]
        usage = (await shop.runtime.info(agent.id)).usage
        assert usage.cache_read_tokens == sum(each["cache_read_input_tokens"] for each in counts) > 0
        assert usage.cache_creation_tokens == sum(each["cache_creation_input_tokens"] for each in counts) > 0


@pytest.mark.spec("RUN-11")
async def test_i7_a_summary_reads_the_agents_prefix_and_is_asked_for_only_after_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_summary, "EVERY_SECONDS", 0.05)
    async with opened(tmp_path, progressSummaries=True) as shop:
        path = shop.folder / "a.txt"
        path.write_text("hello\n" * 500)
        look = use("Read", file_path=str(path))
        shop.script(
            conversation(
                say("Reading\n a.txt"),
                say("Ignored", use("Bash", command="touch made"), prefix_changed="the question stood at the end"),
                last_user=progress_summary.QUESTION,
                name="summary",
            ),
            child("x", say("I look.", look), say("Again.", look, gate="one"), say("found", gate="two")),
            root(say(job("x", run_in_background=True)), say("ok"), say("heard")),
        )
        info = await shop.run()
        made = await child_of(shop, info)
        first = await shop.event(made, StatusChanged, lambda body: body.summary is not None)
        await anyio.sleep(0.3)
        assert len(shop.model.requests("summary")) == 1, "nothing is new"
        shop.model.gate("one").set()
        second = await shop.event(made, StatusChanged, lambda body: body.summary not in (None, first.summary))
        shop.model.gate("two").set()
        info = await runs(shop, info, 2)
        made = await shop.runtime.info(made.id)
        assert (first.summary, second.summary, made.result) == ("Reading a.txt", "Ignored", "found")
        assert not (shop.folder / "made").exists(), "no tool runs"
        for number in range(2):
            own, side = shop.asked(number, "x"), shop.asked(number, "summary")
            assert {**side, "messages": side["messages"][:-1], "max_tokens": 0} == {**own, "max_tokens": 0}
            assert tokens(shop, "summary", number)["cache_creation_input_tokens"] == 0
            assert share(shop, "summary", number) >= 0.95
        assert not any(progress_summary.QUESTION in json.dumps(each.json) for each in shop.model.requests("x"))
        before, last = tokens(shop, "x", 1), tokens(shop, "x", 2)
        assert last["cache_read_input_tokens"] >= 0.99 * (sum(before.values()) - before["input_tokens"])
        assert made.usage.turns == 3, "the summaries cost, but are no turns"
        assert len(shop.model.requests("summary")) == 2


@pytest.mark.spec("RUN-11")
async def test_i7_a_summary_that_fails_costs_the_agent_nothing_and_without_the_setting_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_summary, "EVERY_SECONDS", 0.02)
    for wanted in (True, False):
        async with opened(tmp_path / str(wanted), progressSummaries=wanted) as shop:
            shop.script(
                conversation(
                    say("", fault=Fault("status", status=529)), last_user=progress_summary.QUESTION, name="summary"
                ),
                child("x", say("I look.", use("Glob", pattern="*")), say("found", gate="late")),
                root(say(job("x", run_in_background=True)), say("ok"), say("heard")),
            )
            info = await shop.run()
            if wanted:
                await shop.model.wait_for(1, conversation="summary")
            else:
                await anyio.sleep(0.2)
            shop.model.gate("late").set()
            info = await runs(shop, info, 2)
            assert (info.result, len(shop.model.requests("summary"))) == ("heard", int(wanted))


# J. Context overflow


@pytest.mark.spec("RES-7")
async def test_j1_many_long_answers_at_once_leave_room_for_their_parent(shop: Shop) -> None:
    """Each is capped, and all of one turn together; the whole of each stands in a file that is named."""
    count, long = 8, "a" * 20_000 + "MIDDLE" + "z" * 20_000
    shop.script(
        conversation(say(long), first_user="child "),
        root(say(*(job(str(number)) for number in range(count))), say("done")),
        unique_ids=True,
    )
    info = await shop.run()
    texts = [text for _, failed, text in shop.results(1, "root") if not failed]
    assert len(texts) == count and sum(map(len, texts)) < 110_000
    for number, text in enumerate(texts):
        made = await child_of(shop, info, f"job {number}")
        assert text.startswith("aaa") and "zzz" in text and f"(The whole answer is in {made.output_file})" in text
        assert long in made.output_file.read_text()
    shop.check(info)


async def test_j3_what_a_child_had_found_is_kept_when_it_reaches_its_limit(tmp_path: Path) -> None:
    """Nothing can be removed; the parent gets what was said and why it ended."""
    async with open_shop(tmp_path) as shop:
        (shop.folder / "a.txt").write_text("hello\n" * 20_000)
        full = Fault(
            "status", status=400, type="invalid_request_error", message="prompt is too long: 210000 tokens > 200000"
        )
        shop.script(
            child("x", say("I found the half.", LOOK), say("", fault=full)), root(say(job("x")), say("I go on."))
        )
        info = await shop.run()
        ((_, failed, text),) = shop.results(1, "root")
        assert failed and "prompt is too long" in text and "What it had said last:\nI found the half." in text
        assert (info.status, info.result) == (TaskStatus.COMPLETED, "I go on.")


@pytest.mark.spec("RES-7", "RUN-6")
async def test_j1_notifications_that_come_together_share_one_budget(shop: Shop) -> None:
    count, long = 6, "a" * 20_000 + "MIDDLE" + "z" * 20_000
    jobs = [job(str(number), run_in_background=True) for number in range(count)]
    shop.script(
        conversation(say(long, gate="late"), first_user="child "),
        root(say(*jobs), say("They work.", gate="last"), say("heard"), say("no more")),
        unique_ids=True,
    )
    info = await shop.spawn()
    made = [await child_of(shop, info, f"job {number}") for number in range(count)]
    shop.model.gate("late").set()
    for each in made:
        await shop.ended(each)
    shop.model.gate("last").set()
    await shop.ended(info)
    texts = [text for text in shop.told(2, "root") if text.startswith("<task-notification>")]
    assert len(texts) == count and sum(map(len, texts)) < 110_000
    assert all("(The whole answer is in " in text for text in texts)

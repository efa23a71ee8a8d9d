"""Transcripts on disk: written before anybody hears of them, listed from head and tail, private."""

from __future__ import annotations

import asyncio
import fcntl
import stat
from pathlib import Path

import anyio
import pytest

from agent_core.errors import TranscriptFailed
from agent_core.event_log import EventLog
from agent_core.events import Ended, MessageAdded, Started, StatusChanged, UsageReported
from agent_core.ids import AgentId
from agent_core.messages import Usage
from agent_core.task import TaskStatus
from agent_core.transcript.index import TranscriptIndex, find_transcript
from agent_core.transcript.repair import recover
from agent_core.transcript.writer import TranscriptFiles, TranscriptWriter
from tests.unit.agent_core.builders import StillClock, assistant, info, user

pytestmark = pytest.mark.anyio
RUNNING = StatusChanged(TaskStatus.RUNNING, False)


def files(folder: Path, name: str = "a1") -> TranscriptFiles:
    base = folder / "c1" / "subagents"
    return TranscriptFiles(base / f"agent-{name}.jsonl", base / f"agent-{name}.md")


def started(folder: Path, writer: TranscriptWriter, name: str = "a1") -> EventLog:
    place = files(folder, name)
    log = EventLog(AgentId(name), StillClock(), lambda event: writer.put(log, place, event))
    log.append(Started(info(id=AgentId(name))))
    log.append(RUNNING)
    return log


@pytest.mark.spec("TR-1", "RES-8")
async def test_events_are_on_disk_when_written_returns(tmp_path: Path) -> None:
    writer = TranscriptWriter(asyncio.get_running_loop())
    writer.start()
    log = started(tmp_path, writer)
    log.append(MessageAdded(user("do it")))
    log.append(MessageAdded(assistant("I did it"), "end_turn"))
    await log.written()
    place = files(tmp_path)
    assert recover(place.transcript.read_bytes()).events == tuple(log.kept())
    readable = place.output.read_text()
    assert (
        readable
        == "# repair the test\n\ngeneral-purpose `a1`, model claude-sonnet-5-5\n\n## Task\n\ndo it\n\nI did it\n\n"
    )
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (place.transcript, place.transcript.parent)]
    assert modes == [0o600, 0o700]
    writer.close()


async def test_a_disk_that_refuses_ends_the_run_instead_of_hiding_it(tmp_path: Path) -> None:
    (tmp_path / "c1").write_text("a file where a folder is due")
    writer = TranscriptWriter(asyncio.get_running_loop())
    writer.start()
    log = started(tmp_path, writer)
    with anyio.fail_after(2), pytest.raises(TranscriptFailed, match="cannot be written"):
        await log.written()
    writer.close()


@pytest.mark.spec("TR-4")
async def test_the_list_is_made_of_heads_and_tails(tmp_path: Path) -> None:
    writer = TranscriptWriter(asyncio.get_running_loop())
    writer.start()
    other = TranscriptWriter(asyncio.get_running_loop())
    other.start()
    done, died = (started(tmp_path, writer, name) for name in ("done", "died"))
    alive = started(tmp_path, other, "alive")
    ended = info(id=AgentId("done"), status=TaskStatus.COMPLETED, result="r")
    done.append(Ended(ended))
    died.append(UsageReported(Usage(input_tokens=9), 1, 2))
    for log in (done, died, alive):
        await log.written()
    (tmp_path / "c1" / "subagents" / "agent-junk.jsonl").write_text("no transcript\n")
    writer.close()
    listed = {each.id: each for each in TranscriptIndex(tmp_path).read()}
    assert listed == {
        "done": ended,
        "died": info(id=AgentId("died"), status=TaskStatus.INTERRUPTED, usage=Usage(input_tokens=9)),
        "alive": info(id=AgentId("alive"), status=TaskStatus.RUNNING),
    }
    other.close()


@pytest.mark.spec("TR-4")
async def test_one_who_looks_does_not_take_the_lock_from_one_who_writes(tmp_path: Path) -> None:
    """Else an agent that lives here would be listed as interrupted elsewhere."""
    place = files(tmp_path)
    place.transcript.parent.mkdir(parents=True)
    place.transcript.touch()
    writer = TranscriptWriter(asyncio.get_running_loop())
    writer.start()
    with place.transcript.open() as looking:
        fcntl.flock(looking.fileno(), fcntl.LOCK_SH)
        log = started(tmp_path, writer)
        await anyio.sleep(0.02)
    await log.written()
    assert [each.status for each in TranscriptIndex(tmp_path).read()] == [TaskStatus.RUNNING]
    writer.close()


async def test_f2_a_huge_record_in_the_middle_does_not_slow_the_list(tmp_path: Path) -> None:
    writer = TranscriptWriter(asyncio.get_running_loop())
    writer.start()
    log = started(tmp_path, writer)
    log.append(MessageAdded(user("x" * 30_000_000)))
    ended = info(status=TaskStatus.COMPLETED, result="r")
    log.append(Ended(ended))
    await log.written()
    writer.close()
    begun = asyncio.get_running_loop().time()
    assert TranscriptIndex(tmp_path).read() == [ended]
    assert asyncio.get_running_loop().time() - begun < 0.5


@pytest.mark.parametrize("name", ["../c1", "a/b", "", "a*", "a" * 65, "a" * 5000, "\U0001d49c" * 64])
def test_an_odd_id_finds_no_file(tmp_path: Path, name: str) -> None:
    files(tmp_path).transcript.parent.mkdir(parents=True)
    files(tmp_path).transcript.touch()
    assert find_transcript(tmp_path, name) is None
    assert find_transcript(tmp_path, "a1") == files(tmp_path).transcript

"""Every durable event survives the way to its JSON line and back."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from attrs import evolve

from agent_core.events import (
    DurableBody,
    Ended,
    FilesChanged,
    MessageAdded,
    Outcome,
    PermissionAsked,
    PermissionSettled,
    Started,
    StatusChanged,
    ToolCalled,
    ToolEnded,
    UsageReported,
    WorktreeInfo,
)
from agent_core.ids import RequestId
from agent_core.messages import ImageBlock, RedactedThinkingBlock, StopReason, TextBlock, ThinkingBlock, Usage
from agent_core.permissions.types import ToolKind
from agent_core.task import TaskStatus
from agent_core.transcript.codec import BadRecord, decode, encode
from tests.unit.agent_core.builders import NOW, assistant, event, info, result, use, user

TREE = WorktreeInfo(Path("/t"), "agent-a1", "abc")
BODIES: list[DurableBody] = [
    Started(info(name="x")),
    StatusChanged(TaskStatus.PENDING, True, 3),
    StatusChanged(TaskStatus.RUNNING, False, worktree=TREE),
    MessageAdded(evolve(user("hä\u2028 \ud800 \\n", ImageBlock("image/png", "AA==")), meta="environment")),
    MessageAdded(
        assistant(
            ThinkingBlock("hm", "sig"), RedactedThinkingBlock("d"), "hi", use("t", "Edit", z=[1.5, None], a={"b": 1})
        ),
        "tool_use",
    ),
    MessageAdded(user(result("t", "no", is_error=True))),
    ToolCalled("t", "Read", ToolKind.READ, "Read a", {"b": 1, "a": 2}, ((Path("/w/a"), None), (Path("/w/b"), 3))),
    ToolEnded("t", "failed", (TextBlock("x"), ImageBlock("image/png", "AA==")), "--- a", 12),
    PermissionAsked(RequestId("r"), "t"),
    PermissionSettled(RequestId("r"), "t", Outcome.WITHDRAWN, "none", "why"),
    UsageReported(Usage(1, 2, 3, 4, 5, 6, 7), 10, 20),
    FilesChanged(((Path("/w/a"), "added"),)),
    Ended(info(status=TaskStatus.COMPLETED, stop_reason=StopReason.END_TURN, ended_at=NOW, worktree=TREE, result="ok")),
]


@pytest.mark.spec("TR-1", "TR-4")
@pytest.mark.parametrize("body", BODIES, ids=lambda body: type(body).__name__)
def test_round_trip(body: DurableBody) -> None:
    before = evolve(event(7, body), at=NOW + timedelta(microseconds=5))
    line = encode(before)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert decode(line) == before


def test_the_order_of_a_calls_input_is_kept() -> None:
    """The bytes of a call are part of the cached prefix."""
    back = decode(encode(event(1, MessageAdded(assistant(use("t", "Edit", z=1, a=2)))))).body
    assert isinstance(back, MessageAdded)
    assert list(back.message.tool_uses[0].input) == ["z", "a"]


@pytest.mark.spec("TR-1")
def test_a_line_has_uuid_and_parent_and_type() -> None:
    records = [json.loads(encode(event(seq, body))) for seq, body in enumerate((BODIES[0], BODIES[3], BODIES[4]), 1)]
    shown = [(each["uuid"], each["parentUuid"], each["type"], each["seq"], each["agentId"]) for each in records]
    assert shown == [
        ("a1-1", None, "progress", 1, "a1"),
        ("a1-2", "a1-1", "user", 2, "a1"),
        ("a1-3", "a1-2", "assistant", 3, "a1"),
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "not a transcript record"),
        (b'{"v": 2}\n', "transcript version 2, this program reads 1"),
        (b'{"v": 1, "event": {"type": "Unheard"}, "seq": 1, "agentId": "a", "at": "x"}', "not a transcript record"),
        (b"\xff\n", "not a transcript record"),
    ],
)
def test_a_bad_line_says_why(line: bytes, why: str) -> None:
    with pytest.raises(BadRecord, match=why):
        decode(line)

"""What comes next in a run, as a table."""

from __future__ import annotations

import pytest

from agent_core.messages import Message, StopReason
from agent_core.state import AgentState
from agent_core.turn import CallModel, Finish, RunTools, Step, next_step
from tests.unit.agent_core.builders import assistant, info, result, use, user

GO = user("go")


@pytest.mark.spec("CTX-10")
@pytest.mark.parametrize(
    ("messages", "stop_reason", "turns", "limit", "step"),
    [
        ((GO,), None, 0, None, CallModel()),
        ((GO, assistant(use("a"))), "tool_use", 1, None, RunTools((use("a"),))),
        ((GO, assistant(use("a"), use("b")), user(result("a"))), "tool_use", 1, None, RunTools((use("b"),))),
        ((GO, assistant(use("a")), user(result("a"))), "tool_use", 1, None, CallModel()),
        ((GO, assistant("done")), "end_turn", 1, None, Finish(StopReason.END_TURN)),
        ((GO, assistant("done")), "stop_sequence", 1, None, Finish(StopReason.END_TURN)),
        ((GO, assistant("cut")), "max_tokens", 1, None, Finish(StopReason.MAX_TOKENS)),
        ((GO, assistant("cut")), "model_context_window_exceeded", 1, None, Finish(StopReason.MAX_TOKENS)),
        ((GO, assistant("no")), "refusal", 1, None, Finish(StopReason.REFUSAL)),
        ((GO, assistant("wait")), "pause_turn", 1, None, CallModel()),
        ((GO, assistant("wait")), "pause_turn", 1, 1, Finish(StopReason.MAX_TURNS)),
        ((GO, assistant(use("a"))), "tool_use", 1, 1, RunTools((use("a"),))),
        ((GO, assistant(use("a")), user(result("a"))), "tool_use", 1, 1, Finish(StopReason.MAX_TURNS)),
        ((GO, assistant(use("a")), user(result("a"))), "tool_use", 1, 2, CallModel()),
    ],
)
def test_next_step(
    messages: tuple[Message, ...], stop_reason: str | None, turns: int, limit: int | None, step: Step
) -> None:
    assert next_step(AgentState(info(), messages, stop_reason, turns), limit) == step

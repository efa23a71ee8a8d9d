"""What comes next in a run. Pure: the loop asks, does it, records it, and asks again.

Step = CallModel | RunTools | Finish
"""

from __future__ import annotations

from attrs import frozen

from agent_core.messages import StopReason, ToolUseBlock
from agent_core.state import AgentState, unanswered


@frozen
class CallModel:
    pass


@frozen
class RunTools:
    calls: tuple[ToolUseBlock, ...]


@frozen
class Finish:
    reason: StopReason


Step = CallModel | RunTools | Finish

_FINAL = {
    "max_tokens": StopReason.MAX_TOKENS,
    "model_context_window_exceeded": StopReason.MAX_TOKENS,
    "refusal": StopReason.REFUSAL,
}


def next_step(state: AgentState, max_turns: int | None) -> Step:
    """Answer open calls first; then go on while the model has been told something new and turns are left (CTX-10)."""
    if calls := unanswered(state.messages):
        return RunTools(calls)
    last = state.messages[-1]
    if last.role == "assistant" and state.stop_reason != "pause_turn":
        return Finish(_FINAL.get(state.stop_reason or "", StopReason.END_TURN))
    if max_turns is not None and state.run_turns >= max_turns:
        return Finish(StopReason.MAX_TURNS)
    return CallModel()

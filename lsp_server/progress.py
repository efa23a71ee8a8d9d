"""Events to what one client is sent. Pure: deltas of one message or call are merged until the next flush.

Durable events are never merged, dropped or overtaken: whatever is held back is flushed before them.
"""

from __future__ import annotations

from attrs import define, evolve, field

from agent_core.events import PASSING, Event, TextDelta, ThinkingDelta, ToolOutput


@define
class DeltaMerger:
    """For one agent. `text_deltas` False leaves out what the model says word by word."""

    text_deltas: bool
    _held: dict[tuple[str, str], Event] = field(factory=dict)

    def feed(self, event: Event) -> list[Event]:
        """What must be sent now; merged deltas wait for `flush`."""
        body = event.body
        if not isinstance(body, PASSING):
            return [*self.flush(), event]
        if isinstance(body, TextDelta | ThinkingDelta):
            if self.text_deltas:
                self._hold((type(body).__name__, body.message_id), event)
            return []
        if isinstance(body, ToolOutput) and body.output:
            self._hold(("ToolOutput", body.tool_call_id), event)
            return []
        return [*self.flush(), event]

    def flush(self) -> list[Event]:
        held = list(self._held.values())
        self._held.clear()
        return held

    @property
    def holding(self) -> bool:
        return bool(self._held)

    def _hold(self, key: tuple[str, str], event: Event) -> None:
        before = self._held.pop(key, None)
        self._held[key] = event if before is None else _joined(before, event)


def _joined(before: Event, event: Event) -> Event:
    old, new = before.body, event.body
    if isinstance(old, ToolOutput) and isinstance(new, ToolOutput):
        return evolve(event, body=evolve(new, output=old.output + new.output))
    assert isinstance(old, TextDelta | ThinkingDelta)
    assert isinstance(new, TextDelta | ThinkingDelta)
    return evolve(event, body=evolve(new, delta=old.delta + new.delta))

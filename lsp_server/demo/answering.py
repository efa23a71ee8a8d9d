"""From a checked request to what will be sent: the turn, its fault at this attempt, the answer, the cache's share."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from attrs import define, field, frozen

from lsp_server.demo.body import Rendered, blocks_of
from lsp_server.demo.cache import Lookup, PromptCache
from lsp_server.demo.loading import ScriptError
from lsp_server.demo.matching import View, fill, find_alternatives, find_conversation
from lsp_server.demo.prefix_check import PrefixCheck
from lsp_server.demo.refusals import Invalid
from lsp_server.demo.replies import Answer, make_answer
from lsp_server.demo.request_log import Entry
from lsp_server.demo.script import Fault, Script, Turn

THINKING = ("thinking", "redacted_thinking")
MODIFIED = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
    "These blocks must remain as they were in the original response."
)


@frozen
class Plan:
    turn: Turn
    fault: Fault | None
    answer: Answer
    lookup: Lookup
    gate: str | None


@define
class Answering:
    """What has to be remembered between requests: attempts, cache, prefixes, thinking that was handed out."""

    cache: PromptCache
    clock_offset: float = 0
    _attempts: Counter[tuple[str, bytes, bytes, bytes]] = field(factory=Counter)
    _prefixes: PrefixCheck = field(factory=PrefixCheck)
    _issued: dict[str, set[tuple[str, str]]] = field(factory=dict)

    def plan(self, script: Script, body: Mapping[str, Any], rendered: Rendered, entry: Entry) -> Plan:
        """Fills the log entry. Invalid for what the service would refuse, ScriptError for faults of the script."""
        view = View(body)
        self._check_thinking(body)
        _check_length(script, rendered.size // 4)
        chosen = find_conversation(script, view)
        entry.conversation = chosen.name
        entry.turn, turns = find_alternatives(chosen, view)
        key = (chosen.name, rendered.tools, rendered.system, rendered.marks[-1])
        self._attempts[key] += 1
        entry.attempt = self._attempts[key]
        turn = turns[min(entry.attempt, len(turns)) - 1]
        problem = self._prefixes.problem(chosen.name, rendered, view.assistants)
        if problem and script.check_prefix and not turn.prefix_changed:
            raise ScriptError(problem)
        lookup = self.cache.look_up(body, time.monotonic() + self.clock_offset, rendered)
        again = f"_n{entry.number}" if script.unique_ids else f"_again{entry.attempt}" if entry.attempt > 1 else ""
        label = f"{chosen.name}_{entry.turn}{again}"
        answer = make_answer(turn, view, label, lookup.usage.wire())
        entry.usage = answer.usage
        self._remember(answer)
        return Plan(turn, turn.fault_at(entry.attempt), answer, lookup, fill(turn.gate, view))

    def _remember(self, answer: Answer) -> None:
        thinking = json.dumps([block for block in answer.content if block["type"] in THINKING])
        for block in answer.content:
            if block["type"] == "tool_use":
                self._issued.setdefault(block["id"], set()).add((answer.model, thinking))

    def _check_thinking(self, body: Mapping[str, Any]) -> None:
        """Within a tool loop the latest assistant message keeps its thinking, as long as the model stays."""
        config = body.get("thinking") or {}
        assistants = [i for i, message in enumerate(body["messages"]) if message["role"] == "assistant"]
        if not assistants or config.get("type", "disabled") == "disabled":
            return
        blocks = blocks_of(body["messages"][assistants[-1]]["content"])
        kept = json.dumps([block for block in blocks if block["type"] in THINKING])
        for block in blocks:
            issued = {known for model, known in self._issued.get(block.get("id"), ()) if model == body["model"]}
            if issued and kept not in issued:
                raise Invalid(f"messages.{assistants[-1]}.content.0: {MODIFIED}")


def _check_length(script: Script, tokens: int) -> None:
    limit = script.context_tokens
    if limit is not None and tokens > limit:
        raise Invalid(f"prompt is too long: {tokens} tokens > {limit} maximum")

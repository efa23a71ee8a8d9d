"""Room in an agent's context: results of its oldest calls leave the prompt before that is full (J3, J4).

It needs no request, so that it works when nothing fits any more. The transcript and the output file keep everything;
the model is told that it may call again. What other agents have answered goes last, the newest results never.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from attrs import frozen

from agent_core.agent import Agent
from agent_core.events import Compacted
from agent_core.model.aliases import context_limit
from agent_core.model.prompt import CLEARED, Json, Prompt

_KEPT_TURNS = 3
"""The results of the newest turns, which the model works with."""
_WORTH = 100
"""Tokens. To remove less would spoil the cache for nothing."""
_ANSWERS = frozenset({"Agent", "TaskOutput", "AskUserQuestion"})
_MARGIN, _IMAGE, _CHARACTERS = 8_000, 1_600, 4
"""Tokens that an estimate may be wrong by; tokens of an image; characters of a token."""


@frozen
class _Result:
    call_id: str
    tool: str
    tokens: int


def is_full(agent: Agent, env: Mapping[str, str]) -> bool:
    return _used(agent) >= _limit(agent, env)


def make_room(agent: Agent, env: Mapping[str, str]) -> None:
    """Half of the limit is made free, so that the cache is broken seldom."""
    used = _used(agent)
    _clear(agent, used, used - _limit(agent, env) // 2)


def make_all_room(agent: Agent) -> bool:
    """After the service has refused a request as too long; False when there is nothing left to remove."""
    used = _used(agent)
    return _clear(agent, used, used)


def _clear(agent: Agent, used: int, wanted: int) -> bool:
    chosen: list[_Result] = []
    for each in sorted(
        _old_results(agent.prompt), key=lambda result: result.tool in _ANSWERS
    ):  # stable: the oldest first
        if sum(result.tokens for result in chosen) >= wanted:
            break
        chosen.append(each)
    if chosen:
        freed = sum(result.tokens for result in chosen)
        agent.record(Compacted(used, max(0, used - freed), "auto", tuple(result.call_id for result in chosen)))
        agent.prompt = agent.prompt.without_results(agent.log.state.cleared)
    return bool(chosen)


def _limit(agent: Agent, env: Mapping[str, str]) -> int:
    """Tokens. Room stays for an answer; `CLAUDE_AUTOCOMPACT_PCT_OVERRIDE` (1 to 100) makes it less."""
    whole = context_limit(agent.model)
    room = whole - agent.project.configuration.settings.max_output_tokens - _MARGIN
    percent = env.get("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "")
    share = min(int(percent), 100) if percent.isdecimal() and int(percent) else 100
    return min(max(room, whole // 2), whole * share // 100)


def _used(agent: Agent) -> int:
    """What the service counted last, for a fork of its parent at first, and an estimate of what came since."""
    messages = agent.prompt.messages
    inherited = agent.parent.log.state.context_tokens if agent.fork and agent.parent else 0
    counted = agent.log.state.context_tokens or inherited
    since = next((index for index in range(len(messages), 0, -1) if messages[index - 1]["role"] == "assistant"), 0)
    return counted + sum(map(_tokens, messages[since if counted else 0 :]))


def _old_results(prompt: Prompt) -> Iterator[_Result]:
    names = {
        block["id"]: block["name"] for message in prompt.messages for block in message["content"] if "input" in block
    }
    turns = [message for message in prompt.messages if any("tool_use_id" in block for block in message["content"])]
    for message in turns[:-_KEPT_TURNS]:
        for block in message["content"]:
            if "tool_use_id" in block and block["content"] != [CLEARED] and (tokens := _tokens(block)) >= _WORTH:
                yield _Result(block["tool_use_id"], names.get(block["tool_use_id"], ""), tokens)


def _tokens(part: Json) -> int:
    content = part.get("content", ())
    if part.get("type") == "image":
        return _IMAGE
    if not isinstance(content, list) or not content:
        return len(json.dumps(part, ensure_ascii=False)) // _CHARACTERS
    return sum(map(_tokens, content))

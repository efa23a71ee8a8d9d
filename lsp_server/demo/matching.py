"""Which turn of a script answers a request, and the values that a turn takes from the request.

Templates in the strings of a turn, filled once per answer:

{{last_tool_result}}       text of the last tool_result of the last message that has one
{{tool_result:ID}}         text of the result of that tool_use
{{first_user}} {{last_user}} {{system}} {{model}}
{{any~REGEX}}              first group of the first match in the system prompt and all user texts; so for {{system~R}},
                           {{last_user~R}}, {{first_user~R}}, {{last_tool_result~R}}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from lsp_server.demo.body import blocks_of
from lsp_server.demo.loading import ScriptError
from lsp_server.demo.script import Conversation, Match, Script, Turn

TEMPLATE = re.compile(r"\{\{(.+?)\}\}", re.DOTALL)


class View:
    """The texts of a checked request body."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body = body
        self.model = str(body.get("model"))
        self.assistants = sum(message["role"] == "assistant" for message in body["messages"])

    @cached_property
    def system(self) -> str:
        return "\n".join(block["text"] for block in blocks_of(self.body.get("system")))

    @cached_property
    def users(self) -> list[str]:
        return [message_text(m["content"]) for m in self.body["messages"] if m["role"] == "user"]

    @property
    def first_user(self) -> str:
        return self.users[0]

    @property
    def last_user(self) -> str:
        return self.users[-1]

    @property
    def any(self) -> str:
        return "\n".join((self.system, *self.users))

    @property
    def last_tool_result(self) -> str:
        found = self._results()
        if not found:
            raise ScriptError("the request holds no tool_result")
        return message_text([found[-1]])

    def tool_result(self, use_id: str) -> str:
        for block in self._results():
            if block["tool_use_id"] == use_id:
                return message_text([block])
        raise ScriptError(f"the request holds no tool_result of {use_id!r}")

    def _results(self) -> list[Any]:
        blocks = [b for m in self.body["messages"] if m["role"] == "user" for b in blocks_of(m["content"])]
        return [block for block in blocks if block["type"] == "tool_result"]


def message_text(content: object) -> str:
    """The texts of a content value, tool results included, one per line."""
    return "\n".join(_block_text(block) for block in blocks_of(content))


def _block_text(block: Mapping[str, Any]) -> str:
    return message_text(block.get("content")) if block.get("type") == "tool_result" else block.get("text", "")


def find_conversation(script: Script, view: View) -> Conversation:
    """ScriptError when none matches."""
    for candidate in script.conversations:
        if _matches(candidate.match, view):
            return candidate
    names = ", ".join(c.name for c in script.conversations)
    raise ScriptError(f"no conversation of the script ({names}) matches; first user text: {view.first_user[:200]!r}")


def _matches(match: Match, view: View) -> bool:
    wanted = (
        (match.first_user, view.first_user),
        (match.system, view.system),
        (match.model, view.model),
        (match.last_user, view.last_user),
    )
    if any(part is not None and part not in text for part, text in wanted):
        return False
    if match.user is not None and not any(match.user in text for text in view.users):
        return False
    return match.not_user is None or not any(match.not_user in text for text in view.users)


def find_alternatives(chosen: Conversation, view: View) -> tuple[int, list[Turn]]:
    """(turn index, alternatives that fit). ScriptError when the script has no such turn."""
    index = view.assistants - chosen.offset
    if chosen.repeat_last:
        index = min(index, len(chosen.turns) - 1)
    if not 0 <= index < len(chosen.turns):
        raise ScriptError(
            f"conversation {chosen.name!r} has {len(chosen.turns)} turns, but the request holds {view.assistants} "
            f"assistant messages (offset {chosen.offset}); last user text: {view.last_user[:200]!r}"
        )
    fitting = [turn for turn in chosen.turns[index] if turn.when is None or turn.when in view.last_user]
    if not fitting:
        raise ScriptError(
            f"conversation {chosen.name!r}, turn {index}: no alternative fits; last user text: {view.last_user[:200]!r}"
        )
    return index, fitting


def fill(value: Any, view: View) -> Any:
    """`value` (JSON) with every template in its strings replaced. ScriptError when one has no value."""
    if isinstance(value, str):
        return TEMPLATE.sub(lambda found: _value(found[1], view), value)
    if isinstance(value, Mapping):
        return {key: fill(item, view) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [fill(item, view) for item in value]
    return value


def _value(name: str, view: View) -> str:
    if name.startswith("tool_result:"):
        return view.tool_result(name.removeprefix("tool_result:"))
    name, tilde, pattern = name.partition("~")
    if name not in ("last_tool_result", "first_user", "last_user", "system", "model", "any"):
        raise ScriptError(f"unknown template {{{{{name}}}}}")
    text = str(getattr(view, name))
    if not tilde:
        return text
    found = re.search(pattern, text)
    if found is None:
        raise ScriptError(f"template {{{{{name}~{pattern}}}}}: nothing matches in {text[:2000]!r}")
    return found[1] if found.re.groups else found[0]

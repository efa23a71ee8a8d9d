"""The rules for `messages`: roles, blocks, and each tool_use paired with a tool_result in the very next message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lsp_server.demo.body import blocks_of
from lsp_server.demo.refusals import check_keys, expect, need_text
from lsp_server.demo.signing import is_signature_of

COMMON = frozenset({"type", "cache_control"})
KEYS = {  # block type to its keys
    "text": COMMON | {"text", "citations"},
    "image": COMMON | {"source", "transformations"},
    "document": COMMON | {"source", "title", "context", "citations"},
    "search_result": COMMON | {"source", "title", "content", "citations"},
    "tool_use": COMMON | {"id", "name", "input", "caller", "toolset_name"},
    "tool_result": COMMON | {"tool_use_id", "content", "is_error", "toolset_name"},
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
}
ALLOWED = {
    "user": {"text", "image", "document", "search_result", "tool_result"},
    "assistant": {"text", "tool_use", "thinking", "redacted_thinking"},
    "system": {"text"},
}
RESULT_PARTS = {"text", "image", "document", "search_result"}
SYSTEM_MESSAGES = r"claude-(fable-5|mythos-5|opus-4-8|opus-5)"


def check_messages(body: Mapping[str, Any], strict_roles: bool) -> None:
    messages = body.get("messages")
    expect("messages" in body, "messages: Field required")
    expect(isinstance(messages, list), "messages: Input should be a valid list")
    assert isinstance(messages, list)
    expect(bool(messages), "messages: at least one message is required")
    for index, message in enumerate(messages):
        _check_message(message, f"messages.{index}", str(body["model"]))
    _check_order([message["role"] for message in messages], strict_roles)
    _check_pairs([(m["role"], blocks_of(m["content"])) for m in messages])


def _check_message(message: Any, where: str, model: str) -> None:
    expect(isinstance(message, Mapping), f"{where}: Input should be a valid dictionary")
    check_keys(message, frozenset({"role", "content"}), where)
    role = message.get("role")
    expect(role in ALLOWED, f"{where}.role: Input should be 'user', 'assistant' or 'system'")
    fits = role != "system" or re.match(SYSTEM_MESSAGES, model) is not None
    expect(fits, f"{where}.role: role 'system' is not supported on this model")
    content = message.get("content")
    expect(isinstance(content, str | list), f"{where}.content: Input should be a valid list")
    expect(bool(content), f"{where}: {role} messages must have non-empty content")
    for index, block in enumerate(blocks_of(content)):
        _check_block(block, f"{where}.content.{index}", str(role))


def _check_block(block: Any, where: str, role: str) -> None:
    expect(isinstance(block, Mapping), f"{where}: Input should be a valid dictionary")
    kind = str(block.get("type"))
    tags = f"does not match any of the expected tags: {', '.join(repr(tag) for tag in KEYS)}"
    expect(kind in KEYS, f"{where}: Input tag '{kind}' found using 'type' {tags}")
    expect(kind in ALLOWED[role], f"{where}: `{kind}` blocks are not permitted in `{role}` messages")
    check_keys(block, KEYS[kind], f"{where}.{kind}")
    match kind:
        case "text":
            need_text(block, where, "messages")
        case "tool_use":
            _check_tool_use(block, f"{where}.tool_use")
        case "tool_result":
            _check_tool_result(block, f"{where}.tool_result")
        case "thinking":
            genuine = is_signature_of(block.get("signature"), block.get("thinking"))
            expect(genuine, f"{where}: Invalid `signature` in `thinking` block")
        case "redacted_thinking":
            expect(bool(block.get("data")), f"{where}: Invalid `data` in `redacted_thinking` block")
        case _:
            expect(isinstance(block.get("source"), Mapping | str), f"{where}.{kind}.source: Field required")


def _check_tool_use(block: Mapping[str, Any], where: str) -> None:
    fits = re.fullmatch(r"[a-zA-Z0-9_-]+", str(block.get("id", ""))) is not None
    expect(fits, f"{where}.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    named = isinstance(block.get("name"), str) and 0 < len(block["name"]) <= 200
    expect(named, f"{where}.name: String should have between 1 and 200 characters")
    expect(isinstance(block.get("input"), Mapping), f"{where}.input: Input should be a valid dictionary")


def _check_tool_result(block: Mapping[str, Any], where: str) -> None:
    expect(isinstance(block.get("tool_use_id"), str), f"{where}.tool_use_id: Field required")
    expect(isinstance(block.get("is_error", False), bool), f"{where}.is_error: Input should be a valid boolean")
    content = block.get("content", "")
    expect(isinstance(content, str | list), f"{where}.content: Input should be a valid list")
    for index, part in enumerate(content if isinstance(content, list) else ()):
        place = f"{where}.content.{index}"
        kind = part.get("type") if isinstance(part, Mapping) else None
        expect(kind in RESULT_PARTS, f"{place}: Input tag '{kind}' does not match any of the expected tags")
        check_keys(part, KEYS[str(kind)], place)
        if kind == "text":
            need_text(part, place, "messages")


def _check_order(roles: list[str], strict: bool) -> None:
    expect(roles[0] == "user", 'messages.0: first message must use the "user" role')
    last = len(roles) - 1
    text = "This model does not support assistant message prefill. The conversation must end with a user message."
    expect(roles[last] != "assistant", f"messages.{last}: {text}")
    for index in range(1, len(roles)) if strict else ():
        text = 'roles must alternate between "user" and "assistant", but found multiple'
        expect(roles[index] != roles[index - 1], f'messages.{index}: {text} "{roles[index]}" roles in a row')


def _check_pairs(messages: list[tuple[str, list[Any]]]) -> None:
    open_ids: list[str] = []
    seen: set[str] = set()
    for index, (role, blocks) in enumerate(messages):
        where = f"messages.{index}"
        _check_results(open_ids, blocks, where)
        open_ids = [block["id"] for block in blocks if block["type"] == "tool_use"] if role == "assistant" else []
        for use_id in open_ids:
            fresh = use_id not in seen and open_ids.count(use_id) == 1
            expect(fresh, f"{where}: `tool_use` ids must be unique (found {use_id} twice)")
        seen.update(open_ids)


def _check_results(open_ids: list[str], blocks: list[Any], where: str) -> None:
    results = [(i, b["tool_use_id"]) for i, b in enumerate(blocks) if b["type"] == "tool_result"]
    for index, use_id in results:
        place = f"{where}.content.{index}"
        text = "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
        expect(use_id in open_ids, f"{place}: unexpected `tool_use_id` found in `tool_result` blocks: {use_id}. {text}")
        once = [found for _, found in results].count(use_id) == 1
        text = "each tool_use must have a single result. Found multiple `tool_result` blocks with id"
        expect(once, f"{place}: {text}: {use_id}")
    missing = [use_id for use_id in open_ids if use_id not in {found for _, found in results}]
    text = "`tool_use` ids were found without `tool_result` blocks immediately after"
    rule = "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    expect(not missing, f"{where}: {text}: {', '.join(missing)}. {rule}")
    leading = [index for index, _ in results] == list(range(len(results)))
    expect(leading, f"{where}.content: {text}: `tool_result` blocks must come first in the message, text after them")

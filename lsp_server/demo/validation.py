"""Refuses what the real Messages API refuses, with its words and the place in the body.

Invalid (400 unless another status is given) is the only exception that leaves this module.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from json import loads
from typing import Any

from attrs import define
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from lsp_server.demo.body import compact, nested, walk
from lsp_server.demo.messages_check import check_messages
from lsp_server.demo.refusals import Invalid, check_keys, expect, need_text, words

TOP = words(
    "model messages max_tokens system tools tool_choice stream temperature top_k top_p stop_sequences metadata",
    "thinking output_config cache_control container context_management compaction mcp_servers service_tier",
    "inference_geo speed diagnostics",
)
TOOL = words(
    "name description input_schema type cache_control strict defer_loading eager_input_streaming allowed_callers",
    "input_examples",
)
MANUAL_THINKING = r"claude-(3|(opus|sonnet|haiku)-4(-[0156])?(-\d{8})?$)"  # 4.7 and later know only adaptive


@define
class Rules:
    """`models`: patterns; `strict_roles`: no two messages of one role in a row."""

    models: tuple[str, ...]
    strict_roles: bool = False


def check_body(body: object, rules: Rules, *, counting: bool = False) -> None:
    """Raises Invalid. `counting`: a count_tokens request, which has no max_tokens."""
    expect(isinstance(body, Mapping), "The request body must be a JSON object")
    assert isinstance(body, Mapping)
    check_keys(body, TOP, "")
    _check_model(body, rules)
    if not counting:
        _check_numbers(body)
    names = _check_tools(body)
    _check_system(body)
    check_messages(body, rules.strict_roles)
    _check_tool_choice(body, names)
    _check_thinking(body)
    _check_breakpoints(body)


def _check_model(body: Mapping[str, Any], rules: Rules) -> None:
    expect("model" in body, "model: Field required")
    model = body["model"]
    if not isinstance(model, str) or not any(re.fullmatch(pattern, model) for pattern in rules.models):
        raise Invalid(f"model: {model}", status=404, type="not_found_error")


def _check_numbers(body: Mapping[str, Any]) -> None:
    expect("max_tokens" in body, "max_tokens: Field required")
    most = body["max_tokens"]
    expect(isinstance(most, int) and not isinstance(most, bool), "max_tokens: Input should be a valid integer")
    expect(most > 0, "max_tokens: Input should be greater than or equal to 1")
    heat = body.get("temperature", 1)
    expect(isinstance(heat, int | float) and 0 <= heat <= 1, "temperature: range: 0..1")


def _check_tools(body: Mapping[str, Any]) -> list[str]:
    tools = body.get("tools", [])
    expect(isinstance(tools, list), "tools: Input should be a valid list")
    names = []
    for index, tool in enumerate(tools):
        where = f"tools.{index}"
        expect(isinstance(tool, Mapping), f"{where}: Input should be a valid dictionary")
        if tool.get("type", "custom") in ("custom", None):
            _check_tool(tool, f"{where}.custom")
        names.append(tool.get("name"))
        expect(names.count(tool.get("name")) == 1, f"{where}: tools: Tool names must be unique.")
    return names


def _check_tool(tool: Mapping[str, Any], where: str) -> None:
    check_keys(tool, TOOL, where)
    name = tool.get("name")
    fits = isinstance(name, str) and re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", name) is not None
    expect(fits, f"{where}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    expect(isinstance(tool.get("description", ""), str), f"{where}.description: Input should be a valid string")
    schema = tool.get("input_schema")
    expect(isinstance(schema, Mapping), f"{where}.input_schema: Field required")
    assert isinstance(schema, Mapping)
    expect(schema.get("type") == "object", f"{where}.input_schema.type: Input should be 'object'")
    for word in ("oneOf", "allOf", "anyOf"):
        text = f"{where}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
        expect(word not in schema, text)
    text = f"{where}.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12"
    expect(schema_problem(compact(schema)) is None, text)


@lru_cache(maxsize=512)
def schema_problem(schema: str) -> str | None:
    """Why the JSON text is no schema of draft 2020-12; None when it is one."""
    try:
        Draft202012Validator.check_schema(loads(schema))
    except SchemaError as error:
        return error.message
    return None


@lru_cache(maxsize=512)
def input_problem(schema: str, value: str) -> str | None:
    """Place and kind of the first fault of a value under a valid schema, both JSON texts; None when it fits."""
    for error in Draft202012Validator(loads(schema)).iter_errors(loads(value)):
        return f"{'/'.join(str(part) for part in error.path)!r}: {error.message}"
    return None


def _check_system(body: Mapping[str, Any]) -> None:
    system = body.get("system", [])
    expect(isinstance(system, str | list), "system: Input should be a valid list")
    for index, block in enumerate(system if isinstance(system, list) else ()):
        where = f"system.{index}"
        expect(isinstance(block, Mapping) and block.get("type") == "text", f"{where}.type: Input should be 'text'")
        check_keys(block, frozenset({"type", "text", "cache_control", "citations"}), where)
        need_text(block, where, "system")


def _check_tool_choice(body: Mapping[str, Any], names: list[str]) -> None:
    choice = body.get("tool_choice")
    if choice is None:
        return
    expect(bool(names), "tool_choice: tool_choice may only be specified while providing tools")
    kind = choice.get("type") if isinstance(choice, Mapping) else None
    expect(kind in ("auto", "any", "tool", "none"), "tool_choice.type: Input should be 'auto', 'any', 'tool' or 'none'")
    if kind == "tool":
        expect(choice.get("name") in names, f"tool_choice: Tool '{choice.get('name')}' not found in provided tools")
    thinks = isinstance(body.get("thinking"), Mapping) and body["thinking"].get("type") == "enabled"
    text = "Thinking may not be enabled when tool_choice forces tool use."
    expect(not (thinks and kind in ("any", "tool")), text)


def _check_thinking(body: Mapping[str, Any]) -> None:
    thinking = body.get("thinking")
    if thinking is None:
        return
    kinds = ("adaptive", "enabled", "disabled", "between_tools")
    kind = thinking.get("type") if isinstance(thinking, Mapping) else None
    expect(kind in kinds, f"thinking.type: Input should be one of {', '.join(kinds)}")
    if kind != "enabled":
        return
    manual = re.match(MANUAL_THINKING, body["model"])
    expect(manual is not None, "thinking.type.enabled: not supported by this model, use thinking.type.adaptive")
    budget = thinking.get("budget_tokens")
    expect(isinstance(budget, int), "thinking.enabled.budget_tokens: Field required")
    expect(budget >= 1024, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    text = "`max_tokens` must be greater than `thinking.budget_tokens`."
    expect(budget < body.get("max_tokens", budget + 1), text)


def _check_breakpoints(body: Mapping[str, Any]) -> None:
    """At most four, a valid form, the longer time to live first."""
    found: list[tuple[str, Any]] = []
    for _, where, _, block in walk(body):
        controls = (part.get("cache_control") for part in (block, *nested(block)))
        found += [(where, control) for control in controls if control is not None]
    if body.get("cache_control") is not None:
        found.append(("cache_control", body["cache_control"]))
    for where, control in found:
        _check_control(control, where if where == "cache_control" else f"{where}.cache_control")
    text = f"A maximum of 4 blocks with cache_control may be provided. Found {len(found)}"
    expect(len(found) <= 4, f"{text}: {', '.join(where for where, _ in found)}.")
    shorter = False
    for where, control in found:
        long = control.get("ttl") == "1h"
        text = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
        expect(not (long and shorter), f"{where}.cache_control.ttl: {text}")
        shorter = shorter or not long


def _check_control(control: Any, where: str) -> None:
    expect(isinstance(control, Mapping), f"{where}: Input should be a valid dictionary")
    check_keys(control, frozenset({"type", "ttl"}), where)
    expect(control.get("type") == "ephemeral", f"{where}.type: Input should be 'ephemeral'")
    expect(control.get("ttl", "5m") in ("5m", "1h"), f"{where}.ttl: Input should be '5m' or '1h'")

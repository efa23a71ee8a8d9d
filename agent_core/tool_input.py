"""Checks a tool's input by the schema that the model was sent (IN-13)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_core.tool import Tool


def invalid(tool: Tool, input: Mapping[str, Any]) -> str | None:
    """What is wrong, in words for the model; None when nothing is."""
    if tool.name not in _validators or _validators[tool.name][0] is not tool.input_schema:
        _validators[tool.name] = (tool.input_schema, _validator(tool.input_schema))
    error = next(iter(_validators[tool.name][1].iter_errors(input)), None)
    if error is None:
        return None
    where = ".".join(str(part) for part in error.absolute_path)
    return f"Bad input of {tool.name}{f', {where}' if where else ''}: {error.message}{_allowed(error)}"


def _allowed(error: Any) -> str:
    """jsonschema names what is wrong, and of an enum what is right; not which fields there are."""
    if error.validator != "additionalProperties":
        return ""
    return f"; there are {', '.join(error.schema.get('properties', {}))}"


_validators: dict[str, tuple[Mapping[str, Any], Any]] = {}
"""By tool name, with the schema that each was made of: a schema is constant, and a validator costs a millisecond."""


def _validator(schema: Mapping[str, Any]) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schema)

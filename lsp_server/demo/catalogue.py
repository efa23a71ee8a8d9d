"""GET /v1/models: the names that a script's default patterns know, newest first."""

from __future__ import annotations

import re
from typing import Any

from lsp_server.demo.refusals import Invalid
from lsp_server.demo.script import MODELS

NAMES = (
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
    "claude-fable-5-2",
    "claude-opus-5",
    "claude-fable-5",
    "claude-sonnet-5",
    "claude-opus-4-8",
    "claude-haiku-4-5",
    "claude-sonnet-4-5",
)


def model_info(name: str) -> dict[str, Any]:
    """Invalid with 404 for a name that no model could have."""
    if not any(re.fullmatch(pattern, name) for pattern in MODELS):
        raise Invalid(f"model: {name}", status=404, type="not_found_error")
    words = name.removeprefix("claude-").split("-")
    return {
        "type": "model",
        "id": name,
        "display_name": f"Claude {words[0].title()} {'.'.join(words[1:])}",
        "created_at": "2026-01-01T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": 200000,
        "max_tokens": 64000,
    }


def model_list() -> dict[str, Any]:
    data = [model_info(name) for name in NAMES]
    return {"data": data, "has_more": False, "first_id": NAMES[0], "last_id": NAMES[-1]}

"""The resolution order of the model."""

from __future__ import annotations

from typing import Any

import pytest

from agent_core.model.aliases import ALIASES, context_limit, exact_id, resolve_model

PARENT = "claude-sonnet-4-5-20250929"


@pytest.mark.spec("MD-1", "MD-2", "MD-3", "MD-4", "MD-6")
@pytest.mark.parametrize(
    ("env", "call", "definition", "model"),
    [
        ({}, None, None, PARENT),
        ({}, None, "inherit", PARENT),
        ({}, None, "haiku", ALIASES["haiku"]),
        ({}, "opus", "haiku", ALIASES["opus"]),
        ({}, "inherit", "haiku", PARENT),
        ({}, "claude-x", None, "claude-x"),
        ({"CLAUDE_CODE_SUBAGENT_MODEL": "haiku"}, "opus", "opus", ALIASES["haiku"]),
        ({"CLAUDE_CODE_SUBAGENT_MODEL": "inherit"}, "opus", None, ALIASES["opus"]),
        ({"CLAUDE_CODE_SUBAGENT_MODEL": ""}, None, "opus", ALIASES["opus"]),
        ({}, "sonnet", None, PARENT),
        ({"ANTHROPIC_DEFAULT_OPUS_MODEL": "my-opus"}, "opus", None, "my-opus"),
        ({}, "sonnet[1m]", None, f"{ALIASES['sonnet']}[1m]"),
        ({"ANTHROPIC_DEFAULT_OPUS_MODEL": "my-opus"}, "opus[1m]", None, "my-opus[1m]"),
        ({"ANTHROPIC_DEFAULT_OPUS_MODEL": "my-opus[1m]"}, "opus[1m]", None, "my-opus[1m]"),
    ],
)
def test_order(env: dict[str, str], call: str | None, definition: str | None, model: str) -> None:
    assert resolve_model(env=env, call=call, definition=definition, parent=PARENT) == model


@pytest.mark.spec("MD-6")
@pytest.mark.parametrize("parent", ["us.anthropic.claude-opus-4-6-v1:0", "claude-opus-4-6@20260101"])
def test_a_provider_id_of_the_same_family_is_never_replaced(parent: str) -> None:
    assert exact_id("opus", {}, parent) == parent


def test_context_limits() -> None:
    limits: list[Any] = [context_limit("claude-sonnet-5-5"), context_limit("claude-sonnet-5-5[1m]")]
    assert limits == [200_000, 1_000_000]

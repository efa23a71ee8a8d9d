"""CTX-5: thinking is off for ordinary agents, the setting turns it on, and a fork has what its parent has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent_core.model.aliases import thinking_of
from agent_core.runtime import SpawnRequest
from lsp_server.demo.script import conversation, say
from tests.unit.agent_core.test_background import child, job, opened
from tests.unit.agent_core.test_forking import fork, forked

ADAPTIVE = {"type": "adaptive"}


@pytest.mark.parametrize(
    ("model", "tokens", "expected"),
    [
        ("claude-sonnet-5-5", 0, None),
        ("claude-sonnet-5-5", 8000, ADAPTIVE),
        ("claude-opus-4-8", 8000, ADAPTIVE),
        ("claude-sonnet-4-5-20250929", 8000, {"type": "enabled", "budget_tokens": 8000}),
        ("claude-sonnet-4-20250514", 90_000, {"type": "enabled", "budget_tokens": 31_999}),
        ("us.anthropic.claude-3-7-sonnet-v1", 10, {"type": "enabled", "budget_tokens": 1024}),
    ],
)
def test_the_form_that_a_model_takes(model: str, tokens: int, expected: Mapping[str, Any] | None) -> None:
    assert thinking_of(model, tokens, 32_000) == expected


@pytest.mark.anyio
@pytest.mark.spec("CTX-5", "FK-1")
@pytest.mark.parametrize("for_agents", [False, True])
async def test_who_thinks(tmp_path: Path, for_agents: bool) -> None:
    async with opened(tmp_path, {"MAX_THINKING_TOKENS": "8000"}, thinkingForAgents=for_agents) as shop:
        shop.script(
            child("x", say("found")),
            forked("f", say("forked")),
            conversation(
                say(job("x"), fork("f", run_in_background=False)), say("done"), first_user="main", name="main"
            ),
        )
        info = await shop.runtime.run_main(SpawnRequest("main", shop.folder))
        await shop.ended(info)
        assert shop.asked(0, "main")["thinking"] == ADAPTIVE
        assert shop.asked(0, "f")["thinking"] == ADAPTIVE
        assert shop.asked(0, "x").get("thinking") == (ADAPTIVE if for_agents else None)

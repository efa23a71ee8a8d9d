"""Which new prefixes are worth a wait, and whose are the same."""

from __future__ import annotations

import pytest
from attrs import evolve

from agent_core.messages import Message, TextBlock, ToolResultBlock, ToolUseBlock
from agent_core.model.prompt import Prompt
from agent_core.stagger import new_prefix


def text(role: str, said: str) -> Message:
    return Message("m", "user" if role == "user" else "assistant", (TextBlock(said),))


def fork_of(parent: Prompt, results: int, directive: str) -> Prompt:
    placeholders = (ToolResultBlock(f"toolu_{number}", (TextBlock("It works. " * 10),)) for number in range(results))
    first = Message("m", "user", (*placeholders, TextBlock(directive)))
    shared = (len(parent.messages), results - 1) if results else None
    return evolve(parent.append(first), shared=shared)


def parent_of(calls: int, size: int = 10) -> Prompt:
    """Its last turn launches so many forks, each by a prompt of that size."""
    blocks = tuple(ToolUseBlock(f"toolu_{n}", "Agent", {"prompt": "x" * size}) for n in range(calls))
    return Prompt((), ()).append(text("user", "go"), Message("m", "assistant", blocks))


@pytest.mark.spec("FK-9")
def test_placeholders_count_as_much_as_the_turn_that_launches_the_forks() -> None:
    assert new_prefix("m", fork_of(parent_of(3), 3, "one"), fork=True) is None, "nothing of that size is worth a wait"
    many = parent_of(20)
    assert len(str(many.messages[-1])) < 4096
    assert new_prefix("m", fork_of(many, 20, "one"), fork=True) is not None
    assert new_prefix("m", fork_of(parent_of(3, size=4096), 3, "one"), fork=True) is not None


@pytest.mark.spec("FK-9")
def test_the_directive_is_no_part_of_it() -> None:
    parent = parent_of(5, size=2000)
    one, other = (new_prefix("m", fork_of(parent, 5, directive), fork=True) for directive in ("one", "other" * 2000))
    assert one is not None and one == other
    assert new_prefix("n", fork_of(parent, 5, "one"), fork=True) != one, "each model has its own cache"
    assert new_prefix("m", fork_of(parent_of(5, size=2001), 5, "one"), fork=True) != one


def test_a_fork_that_shares_nothing_new_waits_for_nobody() -> None:
    assert new_prefix("m", fork_of(parent_of(0), 0, "x" * 5000), fork=True) is None

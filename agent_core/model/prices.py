"""What requests cost, by the prices that the setting `prices` names. Pure.

Prices change, and differ between providers: none is built in, and without one nothing is said of cost.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from agent_core.messages import Usage

_MILLION = 1_000_000


@frozen
class Price:
    """US dollars for a million tokens."""

    input: float
    output: float
    cache_read: float
    cache_write: float

    def of(self, usage: Usage) -> float:
        tokens = (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_read_tokens * self.cache_read
            + usage.cache_creation_tokens * self.cache_write
        )
        return tokens / _MILLION


def cost(model: str, usage: Usage, prices: Mapping[str, Price]) -> float:
    """By the longest name that is a part of the model's id; 0 when none is."""
    names = [name for name in prices if name in model]
    return prices[max(names, key=len)].of(usage) if names else 0.0

"""`budgetUsd`: what an agent and all that it launched may cost together."""

from __future__ import annotations

from agent_core.agent import Agent
from agent_core.engine import Engine
from agent_core.errors import LimitReached


def check_budget(agent: Agent, engine: Engine) -> None:
    """LimitReached when it is used up: nothing is launched any more, and what runs ends with that reason."""
    budget = agent.project.configuration.settings.budget_usd
    if budget is None:
        return
    root = agent.log.state.info.root_id
    infos = (each.log.state.info for each in engine.agents.values())
    spent = sum(info.usage.cost_usd for info in infos if info.root_id == root)
    if spent >= budget:
        raise LimitReached(f"the budget of {budget:g} USD is used up (setting budgetUsd): {spent:.4f} USD were spent")

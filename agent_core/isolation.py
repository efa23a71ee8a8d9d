"""An agent's worktree over its runs: made for the first, locked again for later ones, settled at each end (WT-3)."""

from __future__ import annotations

from pathlib import Path

import anyio

from agent_core import worktree as worktrees
from agent_core.agent import Agent
from agent_core.engine import Engine
from agent_core.errors import AgentError
from agent_core.events import StatusChanged, WorktreeInfo
from agent_core.repository import find_repository
from agent_core.task import TaskStatus
from agent_core.tool import Place
from agent_core.worktree import Worktree

SETTLE_SECONDS = 5.0


async def isolate(agent: Agent, engine: Engine) -> None:
    """WorktreeFailed says what git could not do; a worktree that is gone is never silently replaced (TR-4)."""
    if agent.isolation != "worktree":
        return
    if agent.worktree is not None:
        await worktrees.lock(engine.git, agent.worktree)
        return
    repository = await find_repository(engine.git, agent.place.cwd)
    base = agent.project.configuration.settings.worktree_base
    made = await worktrees.create(engine.git, repository, agent.id, agent.project.worktrees, base)
    agent.worktree, agent.place = made, place_in(made, agent.place.cwd, repository.toplevel)
    info = WorktreeInfo(made.path, made.branch, made.base_commit)
    agent.record(StatusChanged(TaskStatus.RUNNING, agent.background, worktree=info))


def place_in(worktree: Worktree, cwd: Path, toplevel: Path | None) -> Place:
    """The folder of the worktree that stands for `cwd` of the checkout, its top where that has none."""
    inside = worktree.path / cwd.resolve().relative_to(toplevel) if toplevel else worktree.path
    return Place(inside if inside.is_dir() else worktree.path, worktree.path, worktree.forbidden)


async def settle(agent: Agent, engine: Engine) -> str | None:
    """Removed when provably unchanged, else kept; what people must be told of it, if anything."""
    if agent.worktree is None:
        return None
    kept = f"The worktree {agent.worktree.path} was kept"
    try:
        with anyio.fail_after(SETTLE_SECONDS, shield=True):
            settled = await worktrees.settle(engine.git, agent.worktree)
    except TimeoutError:
        return f"{kept}: git did not answer within {SETTLE_SECONDS:g} s."
    except (AgentError, OSError) as error:
        return f"{kept}: {error}"
    if settled.kept:
        return None
    agent.worktree = None
    agent.place = Place(agent.log.state.info.cwd)
    return None

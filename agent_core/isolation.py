"""An agent's worktree over its runs: made for the first, locked again for later ones, settled at each end (WT-3)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import anyio
from attrs import evolve

from agent_core import worktree as worktrees
from agent_core import worktree_settling as settling
from agent_core.agent import Agent
from agent_core.bases import choose
from agent_core.engine import Engine
from agent_core.errors import AgentError
from agent_core.events import StatusChanged, WorktreeInfo
from agent_core.furnishing import INCLUDE, environment, is_furnished
from agent_core.hooked_isolation import create_by_hook, reopened_place, replaces_git
from agent_core.loading.configuration import Configuration
from agent_core.repository import Repository
from agent_core.settings import Furnishing
from agent_core.task import TaskStatus
from agent_core.tool import Place
from agent_core.worktree import Worktree, sparse_options

SETTLE_SECONDS = 5.0


async def isolate(agent: Agent, engine: Engine) -> None:
    """WorktreeFailed says what git could not do; a worktree that is gone is never silently replaced (TR-4)."""
    if agent.isolation != "worktree":
        return
    if agent.worktree is not None:
        await worktrees.lock(engine.git, agent.worktree)
        engine.checkouts.go_on(agent.worktree)
        return
    own = agent.log.state.info.worktree
    if own is not None and own.by_hook:
        agent.place = await reopened_place(engine, own, agent.log.state.info.cwd)
        return
    if replaces_git(agent.project, engine):
        info, agent.place = await create_by_hook(agent, engine)
        agent.record(StatusChanged(TaskStatus.RUNNING, agent.background, worktree=info))
        return
    configuration = agent.project.configuration
    kind = configuration.settings.worktree_base
    repository = await engine.checkouts.repository(agent.place.cwd, unborn=kind == "snapshot")
    unsaved = await engine.files.unsaved(repository.toplevel) if kind == "snapshot" and repository.toplevel else {}
    base = await choose(engine.git, repository, kind, unsaved, may_fetch=configuration.trusted)
    registered = await worktrees.register(
        engine.git, repository, agent.id, agent.project.worktrees, base.commit or "head"
    )
    made = registered.worktree
    inside = agent.place.cwd.resolve().relative_to(repository.toplevel) if repository.toplevel else Path()
    wanted = _furnishing(repository, configuration)
    agent.worktree = made
    agent.place = Place(
        made.path / inside, made.path, made.forbidden, environment(made, sparse=bool(wanted.sparse)) if wanted else {}
    )
    note = _joined(base.note, *_empty_submodules(repository, wanted))
    info = WorktreeInfo(made.path, made.branch, made.base_commit, base=kind, note=note)
    agent.record(StatusChanged(TaskStatus.RUNNING, agent.background, worktree=info))

    def tell(faults: list[str]) -> None:
        told = evolve(info, note=_joined(note, *faults))
        agent.record(StatusChanged(agent.status, agent.background, worktree=told))

    engine.checkouts.begin(made, registered, wanted, tell)


def _furnishing(repository: Repository, configuration: Configuration) -> Furnishing | None:
    """None where there is nothing to do; files of a folder that is not trusted say nothing."""
    wanted, top = configuration.settings.furnishing, repository.toplevel
    include = top is not None and (top / INCLUDE).is_file()
    if not configuration.trusted or not (wanted.linked or wanted.submodules or wanted.sparse or include):
        return None
    return evolve(wanted, include=include)


def _joined(*notes: str | None) -> str | None:
    return "; ".join(note for note in notes if note) or None


def _empty_submodules(repository: Repository, wanted: Furnishing | None) -> list[str]:
    """C13. Whether there are any costs no call of git."""
    top = repository.toplevel
    if (wanted and wanted.submodules) or top is None or not (top / ".gitmodules").exists():
        return []
    return ["its submodules are empty: set worktree.submodules, or run `git submodule update --init` in it"]


def place_in(worktree: Worktree, cwd: Path, toplevel: Path | None) -> Place:
    """The folder of the worktree that stands for `cwd` of the checkout, its top where that has none."""
    inside = worktree.path / cwd.resolve().relative_to(toplevel) if toplevel else worktree.path
    own = environment(worktree, sparse=bool(sparse_options(worktree))) if is_furnished(worktree) else {}
    return Place(inside if inside.is_dir() else worktree.path, worktree.path, worktree.forbidden, own)


async def settle(agent: Agent, engine: Engine) -> str | None:
    """Removed when provably unchanged and not in use any more, else kept; what people must be told, if anything."""
    if agent.worktree is None:
        await _leave(agent, engine)
        return None
    if _others_in(agent.worktree.path, agent, engine):
        return None  # its children go on there; their end wakes it, or `_leave` unlocks it
    kept = f"The worktree {agent.worktree.path} was kept"
    try:
        with anyio.fail_after(SETTLE_SECONDS, shield=True):
            if await engine.checkouts.take_back(agent.worktree.path):
                agent.worktree, agent.place = None, Place(agent.log.state.info.cwd)
                return None
            settled = await settling.settle(engine.git, agent.worktree)
    except TimeoutError:
        return f"{kept}: git did not answer within {SETTLE_SECONDS:g} s."
    except (AgentError, OSError) as error:
        return f"{kept}: {error}"
    if settled.kept:
        return None
    agent.worktree = None
    agent.place = Place(agent.log.state.info.cwd)
    return None


def _others_in(path: Path, agent: Agent, engine: Engine) -> bool:
    """Children in the background, and forks, work where their parent works, also after its end."""
    others = (each for each in engine.agents.values() if each is not agent and not each.idle.is_set())
    return any(each.place.worktree == path for each in others)


async def _leave(agent: Agent, engine: Engine) -> None:
    """The last one who worked in the worktree of an agent that has ended: it is not in use any more, and kept."""
    path = agent.place.worktree
    if path is None or _others_in(path, agent, engine):
        return
    for owner in engine.agents.values():
        if owner.worktree is not None and owner.worktree.path == path and owner.idle.is_set():
            with anyio.move_on_after(SETTLE_SECONDS, shield=True), suppress(AgentError, OSError):
                await worktrees.release(engine.git, owner.worktree)

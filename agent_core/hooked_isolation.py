"""Isolation that hooks make in place of git, for other version control systems (WT-5, features 14).

The folder belongs to whoever made it: it is never locked, settled or removed here (WT-3). Its WorktreeRemove hooks run
when a person discards everything.
"""

from __future__ import annotations

from pathlib import Path

from anyio import to_thread

from agent_core.agent import Agent
from agent_core.engine import Engine
from agent_core.errors import WorktreeFailed
from agent_core.events import WorktreeInfo
from agent_core.hooks.dispatch import dispatch, runs_here
from agent_core.hooks.moments import Moment
from agent_core.project import ProjectState
from agent_core.repository import Repository, find_repository
from agent_core.tool import Place

_KEPT = "it was left as it is"


def replaces_git(project: ProjectState, engine: Engine) -> bool:
    """Hooks make the isolation of this folder's agents, so that no git is needed."""
    configuration = project.configuration
    return any(
        hook.event == "WorktreeCreate" and runs_here(hook, configuration, engine) for hook in configuration.hooks.active
    )


async def create_by_hook(agent: Agent, engine: Engine) -> tuple[WorktreeInfo, Place]:
    """WorktreeFailed when a hook fails or names a folder that cannot be one: never a run in place (C7)."""
    said = await dispatch(agent, engine, Moment("WorktreeCreate", "", {"name": f"agent-{agent.id[:8]}"}))
    wrong = said.blocked or said.stop or next(iter(said.failures), None)
    if wrong is not None:
        raise WorktreeFailed(f"a WorktreeCreate hook failed: {wrong}")
    if said.path is None:
        raise WorktreeFailed("no WorktreeCreate hook named a folder; its last line of output must be an absolute path")
    path = await to_thread.run_sync(_checked, said.path)
    taken = (each.log.state.info.worktree for each in engine.agents.values() if each is not agent)
    if any(other is not None and other.path == path for other in taken):
        raise WorktreeFailed(f"a WorktreeCreate hook named {path}, where another agent works; {_KEPT}")
    ours = await _repository(engine, agent.place.cwd)
    for other in (forbidden := _forbidden(ours, agent.place.cwd)):
        if path.is_relative_to(other) or other.is_relative_to(path):
            raise WorktreeFailed(f"a WorktreeCreate hook named {path}, which is, holds or is inside {other}; {_KEPT}")
    info = WorktreeInfo(path, *await _as_git_sees_it(engine, path, ours), by_hook=True)
    return info, _place(info, agent.place.cwd, forbidden)


def _place(info: WorktreeInfo, cwd: Path, forbidden: tuple[Path, ...]) -> Place:
    """WorktreeFailed when the folder is gone: it is never silently replaced."""
    if info.path.is_symlink() or not info.path.is_dir():
        raise WorktreeFailed(f"the folder {info.path} that a hook made for this agent is gone")
    inside = info.path / cwd.resolve().relative_to(forbidden[0])
    return Place(inside if inside.is_dir() else info.path, info.path, forbidden)


def _forbidden(ours: Repository | None, cwd: Path) -> tuple[Path, ...]:
    """What the agent must not write to (WT-2), the user's own checkout or folder first."""
    if ours is None:
        return (cwd.resolve(),)
    return tuple(dict.fromkeys((ours.toplevel or cwd.resolve(), ours.common_dir, ours.git_dir)))


async def reopened_place(engine: Engine, info: WorktreeInfo, cwd: Path) -> Place:
    """For a further run. WorktreeFailed as above."""
    return _place(info, cwd, _forbidden(await _repository(engine, cwd), cwd))


async def remove_by_hook(agent: Agent, engine: Engine, path: Path) -> None:
    await dispatch(agent, engine, Moment("WorktreeRemove", "", {"worktree_path": str(path)}))


def _checked(text: str) -> Path:
    path = Path(text)
    if not path.is_absolute() or {".", ".."} & set(text.split("/")) or "\0" in text:
        raise WorktreeFailed(f"a WorktreeCreate hook named {text!r}; it must be an absolute path without . and ..")
    if not path.is_dir():
        raise WorktreeFailed(f"a WorktreeCreate hook named {path}, which is no folder")
    if path.resolve() != path:
        raise WorktreeFailed(f"a WorktreeCreate hook named {path}, which leads over a link; use {path.resolve()}")
    return path


async def _repository(engine: Engine, folder: Path) -> Repository | None:
    """None where there is no git, or none that works."""
    try:
        return await find_repository(engine.git, folder)
    except WorktreeFailed:
        return None


async def _as_git_sees_it(engine: Engine, path: Path, ours: Repository | None) -> tuple[str, str]:
    """Branch and base commit, when it is a worktree of our repository and can be reviewed as any other; else empty."""
    theirs = await _repository(engine, path)
    if ours is None or theirs is None or theirs.common_dir != ours.common_dir or theirs.toplevel != path:
        return "", ""
    return (theirs.branch, theirs.head) if theirs.branch and theirs.head else ("", "")

"""Agents of an earlier process, live again: from their transcripts, with the same bytes to the model (TR-2, TR-4)."""

from __future__ import annotations

from pathlib import Path

import anyio
from attrs import evolve

from agent_core.agent import Agent
from agent_core.agent_listing import with_guidance
from agent_core.definitions import AgentDefinition
from agent_core.engine import Engine
from agent_core.errors import OwnedElsewhere, TranscriptFailed
from agent_core.event_log import EventLog
from agent_core.events import AgentInfo, ForkBase, Notified, Started
from agent_core.guidance.builtin_agents import main_definition
from agent_core.hooked_isolation import reopened_place
from agent_core.isolation import place_in
from agent_core.model.prompt import Prompt
from agent_core.permissions.modes import resumed_mode
from agent_core.permissions.types import PermissionMode
from agent_core.project import ProjectState
from agent_core.repository import find_repository
from agent_core.spawning import new_prompt, select, tools_for
from agent_core.state import AgentState, apply
from agent_core.tool import Place, Tool
from agent_core.tool_pool import assemble
from agent_core.transcript.index import find_transcript
from agent_core.transcript.reading import load
from agent_core.transcript.repair import Recovered, closing, earlier_results
from agent_core.transcript.writer import TranscriptFiles
from agent_core.worktree import Worktree, check_there, reopen

MAIN_TYPE = "main"


async def revive(engine: Engine, project: ProjectState, path: Path, parent: Agent | None) -> Agent:
    """The agent whose transcript that is, idle, with `parent` as its parent. It keeps its model, depth, working folder
    and worktree, and its mode as far as that may come back (PM-3); what was open is withdrawn, and its run ended as
    interrupted.

    OwnedElsewhere when another process runs it, TranscriptFailed when too little can be read, WorktreeFailed when its
    worktree is gone, UnknownAgentType and AgentDenied as for a new one. Then nothing is changed.
    """
    files = TranscriptFiles(path, path.with_suffix(".md"))
    if not await engine.writer.claim(files):
        raise OwnedElsewhere(f"the agent of {path.name} runs in another process; use the editor that started it")
    try:
        return await _revive(engine, project, files, parent)
    except BaseException:
        engine.writer.release(None, files)
        raise


async def _revive(engine: Engine, project: ProjectState, files: TranscriptFiles, parent: Agent | None) -> Agent:
    found = await load(files.transcript)
    if found.state is None or not isinstance(started := found.events[0].body, Started):
        raise TranscriptFailed(f"the transcript {files.transcript} is damaged from its beginning: {found.fault}")
    info = found.state.info
    definition = _definition(project, info, parent)
    worktree, place = await _where(engine, info)
    offered = parent.tools.values() if info.fork and parent else tools_for(project, info.depth, engine)
    prompt, tools = await _prompt(engine, project, definition, files, started, {tool.name: tool for tool in offered})
    if started.base is not None:
        prompt = await _inherited(prompt, project, started.base, found.state)
    if found.fault is not None:
        await anyio.to_thread.run_sync(_cut, files.transcript, found.good_bytes)
    mode = _mode(project, info, parent)
    agent = Agent(
        log=_log(engine, files, found, evolve(found.state, info=evolve(info, permission_mode=mode))),
        files=files,
        grants=project.grants_of(info.conversation_id),
        project=project,
        definition=definition,
        tools=tools,
        prompt=prompt,
        place=place,
        mode=mode,
        model=info.model,
        isolation=info.isolation,
        max_turns=definition.max_turns,
        background=info.background,
        fork=info.fork,
        parent=parent,
        worktree=worktree,
        forgotten=True,
        task=started.task,
        earlier=earlier_results(found.events, found.state),
        told_of={event.body.from_agent_id for event in found.events if isinstance(event.body, Notified)},
    )
    agent.idle.set()
    agent.finished.set()
    agent.forget()
    for body in closing(found.events, found.state, engine.clock.now()):
        agent.record(body)
    return agent


def _definition(project: ProjectState, info: AgentInfo, parent: Agent | None) -> AgentDefinition:
    if info.fork and parent is not None:
        return parent.definition
    return main_definition() if info.agent_type == MAIN_TYPE else select(project, info.agent_type)


def _mode(project: ProjectState, info: AgentInfo, parent: Agent | None) -> PermissionMode:
    allowed = not project.configuration.settings.policy.bypass_disabled
    bypass = allowed and parent is not None and parent.mode is PermissionMode.BYPASS
    main = info.agent_type == MAIN_TYPE
    mode = resumed_mode(info.permission_mode, parent.mode if parent else None, main=main, bypass=bypass)
    if mode is info.permission_mode or not main:
        return mode
    start = project.configuration.settings.default_mode
    return mode if start in (None, PermissionMode.BYPASS) else start or mode


async def _where(engine: Engine, info: AgentInfo) -> tuple[Worktree | None, Place]:
    if info.worktree is None:
        return None, Place(info.cwd)
    kept = info.worktree
    if kept.by_hook:
        return None, await reopened_place(engine, kept, info.cwd)
    repository = await find_repository(engine.git, info.cwd)
    worktree = await reopen(engine.git, repository, kept.path, kept.branch, kept.base_commit)
    check_there(worktree)
    return worktree, place_in(worktree, info.cwd, repository.toplevel)


async def _prompt(
    engine: Engine,
    project: ProjectState,
    definition: AgentDefinition,
    files: TranscriptFiles,
    started: Started,
    offered: dict[str, Tool],
) -> tuple[Prompt, dict[str, Tool]]:
    """With the very bytes that it had; where they are lost, as a new agent of its type would have them."""
    try:
        assert started.head is not None
        prompt = Prompt.of_head(await anyio.Path(files.head(started.head)).read_bytes())
    except (OSError, ValueError, AssertionError):
        pool = assemble(definition, offered.values(), project.configuration.settings.rules)
        pool = with_guidance(pool, engine, project, definition, started.info.depth)
        return new_prompt(definition, pool), pool
    names = [tool["name"] for tool in prompt.tools]
    return prompt, {name: offered[name] for name in names if name in offered}


async def _inherited(prompt: Prompt, project: ProjectState, base: ForkBase, own: AgentState) -> Prompt:
    """A fork's history is a reference into the transcript of its parent (TR-5)."""
    path = find_transcript(project.sessions, base.agent_id)
    events = (await load(path)).events[: base.seq] if path else ()
    state: AgentState | None = None
    for event in events:
        state = apply(state, event)
    if state is None or len(events) < base.seq:
        raise TranscriptFailed(f"the conversation that this fork began with is lost: the transcript of {base.agent_id}")
    inherited = prompt.append(*state.messages).without_results(state.cleared)
    return inherited.forked_by(own.messages[0]) if own.messages else inherited


def _log(engine: Engine, files: TranscriptFiles, found: Recovered, state: AgentState) -> EventLog:
    """It goes on where the transcript ends, and holds nothing of what that holds."""

    async def source() -> tuple[object, ...]:
        return (await load(files.transcript)).events

    count = len(found.events)
    log = EventLog(
        state.info.id,
        engine.clock,
        lambda event: engine.writer.put(log, files, event),
        forgotten=count,
        source=source,  # type: ignore[arg-type]
        bare=True,
        state=evolve(state, messages=()),
        written=count,
    )
    return log


def _cut(path: Path, length: int) -> None:
    """A torn end is cut off, so that what follows can be read; it is kept beside the transcript (TR-3)."""
    with path.open("r+b") as file:
        file.seek(length)
        torn = file.read()
        path.with_suffix(".torn").write_bytes(torn)
        file.truncate(length)

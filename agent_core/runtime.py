"""The façade: owns the root task group, the projects and the agents. It knows no connection.

Editor sessions attach and detach; what they see is replayed from the logs.
"""

from __future__ import annotations

import asyncio
import builtins
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import anyio
from anyio.abc import TaskGroup
from attrs import define, evolve, field, frozen

from agent_core.agent import STOP_SECONDS, Agent, Incoming, user_message
from agent_core.applying import Applied, AppliedFile, Selection
from agent_core.background import NOTIFICATION, background_disabled, notification, summary
from agent_core.checkouts import Checkouts
from agent_core.clock import SystemClock
from agent_core.conversations import Conversation, group, is_main
from agent_core.definitions import Definitions, Problem
from agent_core.disk import write_atomically
from agent_core.engine import Engine
from agent_core.errors import (
    AgentError,
    AlreadyTerminal,
    InvalidParams,
    NotAllowed,
    NotReviewable,
    OwnedElsewhere,
    TranscriptFailed,
    UnknownAgent,
)
from agent_core.event_log import EventLog
from agent_core.events import AgentInfo, Event, Notified
from agent_core.finishing import FinishAs, Finished
from agent_core.forking import prepare_fork
from agent_core.hooked_isolation import remove_by_hook
from agent_core.hooks.dispatch import close_transcript
from agent_core.hooks.occasions import end_sessions, has_ended
from agent_core.hooks.runner import HookRunner
from agent_core.ids import MAIN, RequestId, new_conversation_id
from agent_core.loading.configuration import state_dir
from agent_core.loading.layers import Layer
from agent_core.loading.trust import remember
from agent_core.messages import TextBlock
from agent_core.model.messages_api import MessagesApi
from agent_core.model.providers import Credentials, credentials
from agent_core.permissions.broker import PermissionBroker
from agent_core.permissions.types import PermissionAnswer, PermissionRequest
from agent_core.ports import Asker, FileSystem, Git, Processes, ReviewTarget
from agent_core.project import ProjectState, find_project
from agent_core.repository import find_repository
from agent_core.restoring import Restored
from agent_core.result_limits import room_left
from agent_core.review import Review
from agent_core.reviews import Reviews, Round, Subject
from agent_core.reviving import revive
from agent_core.slots import Slots
from agent_core.spawning import SpawnRequest, check_cwd, prepare_main, prepare_root, refuse_denied
from agent_core.stagger import Stagger
from agent_core.subagents import run
from agent_core.task import TERMINAL, TaskStatus
from agent_core.transcript.index import find_transcript, first_words
from agent_core.transcript.reading import read_page
from agent_core.transcript.writer import TranscriptWriter
from agent_core.worktree import Worktree, check_there, reopen
from agent_core.worktree_leftovers import settle_leftovers

logger = logging.getLogger(__name__)

StopScope = Literal["turn", "agent", "tree"]


@frozen
class Page:
    """A part of a transcript; `next_seq` is what to pass as `after` for the next part."""

    events: tuple[Event, ...]
    next_seq: int
    complete: bool


@define(eq=False)
class Runtime:
    """`client_settings`, `trusted` and `api_key` are the editor's; they may change at any time."""

    env: Mapping[str, str]
    folders: tuple[Path, ...]
    client_settings: Mapping[str, Any] = field(factory=dict)
    trusted: bool | None = None
    api_key: str | None = None
    cli_agents: Mapping[str, Any] = field(factory=dict)
    cli_settings: Layer | None = None
    interactive: bool = True
    on_read: list[Callable[[], None]] = field(factory=list)
    """Called whenever the configuration of a folder was read anew."""
    _engine: Engine | None = None
    _reviews: Reviews | None = None
    _group: TaskGroup | None = None
    _projects: dict[Path, ProjectState] = field(factory=dict)
    _agents: dict[str, Agent] = field(factory=dict)
    _main: dict[Path, Agent] = field(factory=dict)
    _main_lock: anyio.Lock = field(factory=anyio.Lock)
    _reviving: anyio.Lock = field(factory=anyio.Lock)
    _watchers: list[Callable[[EventLog], None]] = field(factory=list)
    _base_url: str | None = None
    _provider: str = "environment"
    _said: dict[Path, tuple[Mapping[str, Any], bool | None]] = field(factory=dict)

    # What an editor asks for

    async def spawn(self, request: SpawnRequest) -> AgentInfo:
        """Register and start a root agent; returns once it is registered (protocol.md, agent/spawn)."""
        check_cwd(request.cwd, self.folders)
        project = await self.project(request.cwd)
        self.credentials()
        if request.fork or request.parent_id:
            agent = await self._prepare_child(request)
        else:
            agent = await prepare_root(self.engine, project, request)
        self.begin(agent, request.task)
        return agent.log.state.info

    async def run_main(self, request: SpawnRequest) -> AgentInfo:
        """Start the main thread with options of its own, for one that nobody has started yet."""
        project = await self.project(request.cwd)
        self.credentials()
        agent = await prepare_main(self.engine, project, request)
        self._main[request.cwd] = agent
        self.begin(agent, request.prompt)
        return agent.log.state.info

    async def send(self, to: str, message: str) -> AgentInfo:
        """To a running agent at its next turn; to one that ended as its next run."""
        agent = await self._reachable(to)
        if agent.idle.is_set():
            await self._check_again(agent)
        if agent.idle.is_set():
            self._start(agent, message, background=agent.background)
        else:
            agent.tell(message)
        return agent.log.state.info

    async def resume(self, agent_id: str, message: str | None) -> AgentInfo:
        """Go on with an agent that was interrupted or has ended, of an earlier process too (agent/resume)."""
        agent = await self._reachable(agent_id)
        if message is not None:
            return await self.send(agent.id, message)
        if not agent.idle.is_set():
            raise NotAllowed(f"agent {agent_id} runs already; send it a message with agent/send")
        if agent.status is TaskStatus.COMPLETED:
            raise InvalidParams("message", "is missing: the agent has finished; say what it shall do next")
        await self._check_again(agent)
        if agent.idle.is_set():
            self._start(agent, None, background=agent.background)
        return agent.log.state.info

    async def stop(self, agent_id: str, scope: StopScope = "agent") -> AgentInfo:
        """Returns after the processes are gone. AlreadyTerminal when nothing of it runs.

        Foreground children end with the agent that waits for them. Those in the background end with the scope `tree`.
        """
        agent = await self._known(agent_id)
        ending = [agent, *(self._descendants(agent) if scope == "tree" else ())]
        ending = [each for each in ending if not each.idle.is_set()]
        if not ending:
            raise AlreadyTerminal(f"agent {agent_id} does not run: it is {agent.status}")
        for each in ending:
            each.stop()
        with anyio.move_on_after(STOP_SECONDS):
            for each in ending:
                await each.idle.wait()
        return agent.log.state.info

    async def background(self, agent_id: str) -> AgentInfo:
        """Whoever waits for the agent waits no longer; the run is untouched (RUN-4). AlreadyTerminal after its end."""
        agent = await self._known(agent_id)
        if background_disabled(self.env):
            raise NotAllowed("background agents are switched off by CLAUDE_CODE_DISABLE_BACKGROUND_TASKS")
        if agent.idle.is_set():
            raise AlreadyTerminal(f"agent {agent_id} does not run: it is {agent.status}")
        agent.to_background()
        return agent.log.state.info

    async def wait(self, agent_id: str) -> AgentInfo:
        agent = self._agents.get(agent_id)
        if agent is None:
            return await self.info(agent_id)
        await agent.idle.wait()
        return agent.log.state.info

    async def list(self) -> list[AgentInfo]:
        """Of the workspace: live agents and those of earlier processes, the newest first."""
        live = {agent.id: agent.log.state.info for agent in self._agents.values()}
        infos = {info.id: info for info in live.values() if self._holds(info.cwd)}
        for folder in self.folders:
            project = await self.project(folder)
            for info in await anyio.to_thread.run_sync(project.index.read):
                infos.setdefault(info.id, live.get(info.id, info))
        return sorted(infos.values(), key=lambda info: info.started_at, reverse=True)

    async def conversations(self) -> builtins.list[Conversation]:
        """Of all folders, the newest first (protocol.md, agent/conversations)."""
        infos = await self.list()
        titles = {info.id: await self._first_words(info) for info in infos if is_main(info)}
        return group(infos, titles)

    async def conversation(self, id: str | None) -> Conversation:
        """Make it the one of the main thread; None: a new one. Agents of the one before go on."""
        project = await self.project(self.folders[0])
        found = None if id is None else next((each for each in await self.conversations() if each.id == id), None)
        if id is not None and found is None:
            raise InvalidParams(
                "id", f"there is no conversation {id!r} in this workspace; agent/conversations names them"
            )
        main = await self._reachable(found.main) if found is not None and found.main else None
        async with self._main_lock:
            project.conversation = found.id if found is not None else new_conversation_id()
            self._main.pop(self.folders[0], None)
            if main is not None:
                self._main[self.folders[0]] = main
        return found or Conversation(project.conversation, "", self.engine.clock.now(), 0, None)

    async def _first_words(self, info: AgentInfo) -> str:
        _, path = await self._transcript_of(info.id)
        return await anyio.to_thread.run_sync(first_words, path)

    async def info(self, agent_id: str) -> AgentInfo:
        if agent := self._agents.get(agent_id):
            return agent.log.state.info
        found = next((info for info in await self.list() if info.id == agent_id), None)
        if found is None:
            _, path = await self._transcript_of(agent_id)
            raise TranscriptFailed(f"the transcript {path} is damaged from its beginning: its agent is in no list")
        return found

    async def transcript(self, agent_id: str, after: int = 0, limit: int | None = None) -> Page:
        """What is in memory comes from there, everything else from the file, of which no more is read than is shown."""
        agent = self._agents.get(agent_id)
        if agent is not None and after >= agent.log.forgotten:
            ended, events = agent.idle.is_set(), agent.log.kept(after)
            page, more = events[:limit], limit is not None and len(events) > limit
        else:
            ended = agent is None or agent.idle.is_set()
            path = agent.files.transcript if agent is not None else (await self._transcript_of(agent_id))[1]
            page, more = await read_page(path, after, limit)
        return Page(tuple(page), page[-1].seq if page else after, ended and not more)

    async def definitions(self) -> tuple[Definitions, tuple[Problem, ...]]:
        """Of the first folder: agent files are looked for from a working folder upwards."""
        configuration = (await self.project(self.folders[0])).configuration
        return configuration.definitions, configuration.problems

    async def review(self, agent_id: str, round: Round = "all") -> Review:
        """NotReviewable when the agent has no worktree."""
        return await self.reviews.review(await self._subject(agent_id), round)

    async def apply(self, agent_id: str, selection: Sequence[Selection] | None, dry_run: bool) -> Applied:
        """Of what the last review showed; `selection` None is everything."""
        return await self.reviews.apply(await self._subject(agent_id), selection, dry_run)

    async def discard(
        self, agent_id: str, selection: Sequence[Selection] | None
    ) -> tuple[tuple[AppliedFile, ...], str]:
        info = await self.info(agent_id)
        if selection is not None or info.worktree is None or not info.worktree.by_hook:
            return await self.reviews.discard(await self._subject(agent_id), selection)
        discarded = ((), "") if not info.worktree.branch else await self._discard_open(agent_id)
        agent = await self._reachable(agent_id)
        await remove_by_hook(agent, self.engine, info.worktree.path)
        close_transcript(agent, self.engine)
        return discarded

    async def _discard_open(self, agent_id: str) -> tuple[tuple[AppliedFile, ...], str]:
        """Where everything was decided on already there is nothing to keep readable."""
        try:
            return await self.reviews.discard(await self._subject(agent_id), None)
        except NotReviewable:
            return (), ""

    async def restore(self, agent_id: str, ref: str, paths: Sequence[str] | None) -> Restored:
        return await self.reviews.restore(await self._subject(agent_id), ref, paths)

    async def comment(self, agent_id: str, text: str) -> AgentInfo:
        """Send a review's comments to the agent; the next `new` round starts here."""
        subject = await self._subject(agent_id)
        info = await self.send(agent_id, text)  # a refusal must not end the round
        await self.reviews.end_round(subject)
        return info

    async def finish(self, agent_id: str, how: FinishAs, message: str | None, branch: str | None) -> Finished:
        """NotAllowed while the agent, or one that works in its worktree, is at work."""
        subject, info = await self._subject(agent_id), await self.info(agent_id)
        if any(
            each.place.worktree == subject.worktree.path and not each.idle.is_set() for each in self._agents.values()
        ):
            raise NotAllowed(f"agent {agent_id} is at work; stop it or wait for its end")
        text = message or f"{info.description}\n\nMade by the agent {info.agent_type} ({info.id})."
        unsaved = await self.engine.files.unsaved(subject.worktree.repository)
        base = info.worktree.base if info.worktree else "head"
        return await self.reviews.finish(subject, how, base, text, branch, unsaved)

    async def content(self, agent_id: str, side: Literal["base", "worktree"], path: str) -> bytes:
        return await self.reviews.content(await self._subject(agent_id), side, path)

    async def checkout(self, agent_id: str) -> Path:
        """Where an agent's reviewed changes go."""
        return (await self._worktree(agent_id)).repository

    def write_review(self, agent_id: str, diff: str) -> Path:
        """The diff as a file, for editors that can only open files."""
        path = state_dir(self.env) / "reviews" / f"{agent_id}.diff"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(path, diff.encode("utf-8", "replace"))
        return path

    def pending_permissions(self) -> tuple[PermissionRequest, ...]:
        return self.engine.broker.pending

    def answer(self, request_id: str, answer: PermissionAnswer) -> str | None:
        """None when accepted, else why not."""
        return self.engine.broker.answer(RequestId(request_id), answer)

    # What a session does

    def attach(self, asker: Asker) -> None:
        self.engine.broker.attach(asker)

    def detach(self, asker: Asker) -> None:
        self.engine.broker.detach(asker)

    def open_folder(self, folder: Path, settings: Mapping[str, Any], trusted: bool | None) -> None:
        """An editor works in `folder`; its settings and its trust hold there and nowhere else."""
        self._said[folder] = (settings, trusted)
        if folder not in self.folders:
            self.folders = (*self.folders, folder)

    async def trust(self, folder: Path, trusted: bool) -> None:
        """The person's word on a folder, kept for later; what its files want counts from now on, or no more. OSError
        when it cannot be kept."""
        project = await self.project(folder)
        await anyio.to_thread.run_sync(remember, project.project.main, state_dir(self.env), trusted)
        if folder in self._said:
            self._said[folder] = (self._said[folder][0], trusted)
        await self.project(folder)

    def close_folder(self, folder: Path) -> None:
        """The editor has taken `folder` out of its workspace; agents that work there go on."""
        self._said.pop(folder, None)
        self.folders = tuple(each for each in self.folders if each != folder)

    def unwatch(self, watcher: Callable[[EventLog], None]) -> None:
        self._watchers.remove(watcher)

    def watch(self, watcher: Callable[[EventLog], None]) -> None:
        """`watcher` gets the log of every agent of this process, those that exist first."""
        self._watchers.append(watcher)
        for agent in self._agents.values():
            watcher(agent.log)

    async def project(self, cwd: Path) -> ProjectState:
        """The folder of the workspace that holds `cwd`, with its configuration as the files are now."""
        inside = [folder for folder in self.folders if cwd.resolve().is_relative_to(folder.resolve())]
        root = max(inside, key=lambda folder: len(folder.parts)) if inside else cwd
        is_new = root not in self._projects
        if is_new:
            self._projects[root] = ProjectState(
                find_project(root), state_dir(self.env), self.env, on_read=self._was_read
            )
        project = self._projects[root]
        project.client, project.trusted = self._said.get(root, (self.client_settings, self.trusted))
        project.cli_agents, project.cli_settings = self.cli_agents, self.cli_settings
        configuration = await project.refresh()
        self._base_url, self._provider = configuration.settings.base_url, configuration.settings.provider
        if is_new and self._group is not None:
            self._group.start_soon(self._settle_leftovers, project)
        return project

    def credentials(self) -> Credentials:
        """MissingCredentials says what to set."""
        return credentials(self.env, api_key=self.api_key, base_url=self._base_url, provider=self._provider)

    @property
    def engine(self) -> Engine:
        assert self._engine is not None, "the runtime is not open"
        return self._engine

    @property
    def reviews(self) -> Reviews:
        assert self._reviews is not None, "the runtime is not open"
        return self._reviews

    def begin(self, agent: Agent, task: str) -> None:
        """Make an agent known and start its run."""
        self._register(agent)
        self._start(agent, task, background=agent.background)

    # Inside

    async def _settle_leftovers(self, project: ProjectState) -> None:
        """Of worktrees, once for each folder; nobody waits for it."""
        known: dict[Path, datetime | None] = {}
        for info in await anyio.to_thread.run_sync(project.index.read):
            if info.worktree is not None:
                known[info.worktree.path] = None if is_live(info) else info.ended_at
        days = timedelta(days=project.configuration.settings.cleanup_days)
        try:
            before = self.engine.clock.now() - days
            left = await settle_leftovers(self.engine.git, project.worktrees, known, before)
        except (AgentError, OSError) as error:
            logger.warning("worktrees that earlier processes left were not looked through: %s", error)
            return
        for each in left:
            logger.warning("the worktree %s, which no agent is known for, was %s", each.path, each.reason)

    def _was_read(self) -> None:
        for listener in self.on_read:
            listener()

    def _holds(self, cwd: Path) -> bool:
        """A folder that was taken out of the workspace is in none of it, unless it lies in one that is left."""
        if any(cwd.is_relative_to(folder) for folder in self.folders):
            return True
        return any(cwd.resolve().is_relative_to(folder.resolve()) for folder in self.folders)

    async def _prepare_child(self, request: SpawnRequest) -> Agent:
        """A person's own child, or fork, of an agent: nobody waits for it, so that agent is told of its end."""
        parent = await self._reachable(request.parent_id or MAIN)
        request = evolve(request, background=not background_disabled(self.env))
        if not request.fork:
            return await prepare_root(self.engine, parent.project, request, parent)
        await parent.recall()
        try:
            return await prepare_fork(self.engine, parent, request)
        finally:
            if parent.idle.is_set():
                parent.forget()

    def _register(self, agent: Agent) -> None:
        self._agents[agent.id] = agent
        for watcher in self._watchers:
            watcher(agent.log)

    def _start(self, agent: Agent, text: str | None, background: bool) -> None:
        """`text` None: what is in the inbox is its task."""
        assert self._group is not None
        agent.begin_run(background)
        self._group.start_soon(run, agent, self.engine, None if text is None else user_message(TextBlock(text)))

    def _ended(self, agent: Agent) -> None:
        """RUN-6, RUN-8: the parent of a background agent is told at its next turn, and woken when it is idle. What the
        user stopped is no reason to wake anybody, and who was stopped or failed is left alone. Who stops an agent by
        TaskStop has its answer already."""
        has_ended(agent, self.engine)
        parent, info = agent.parent, agent.log.state.info
        if parent is None or not info.background or agent.parent_stopped_it:
            return
        wakes = self._tell(parent, info, agent.tool_use_id)
        if wakes and parent.idle.is_set() and (parent.status is TaskStatus.COMPLETED or parent in self._main.values()):
            self._start(parent, None, background=parent.parent is not None)

    def _tell(self, parent: Agent, info: AgentInfo, tool_use_id: str | None) -> bool:
        """Whether the news wants an answer."""
        waiting = sum(len(each.message.text) for each in parent.inbox)
        text = notification(info, tool_use_id, room_left(self.env, waiting))
        told = Notified(info.id, info.status, summary(info))
        wakes = info.status in (TaskStatus.COMPLETED, TaskStatus.FAILED)
        parent.inbox.append(Incoming(user_message(TextBlock(text), meta=NOTIFICATION), told, wakes))
        return wakes

    async def _check_again(self, agent: Agent) -> None:
        """What the first run was checked for, as the settings are now. The main thread is nobody's sub-agent."""
        await self.project(agent.project.project.root)
        if agent not in self._main.values():
            refuse_denied(agent.project, agent.definition.name)
        if agent.worktree is not None:
            check_there(agent.worktree)
        if not self.engine.writer.is_ours(agent.files):
            raise OwnedElsewhere(f"another process has gone on with agent {agent.id}; use the editor that did")
        self.credentials()

    def _descendants(self, agent: Agent) -> tuple[Agent, ...]:
        children = tuple(each for each in self._agents.values() if each.parent is agent)
        return sum((self._descendants(child) for child in children), children)

    async def _known(self, to: str) -> Agent:
        return await self._main_agent() if to == MAIN else await self._live(to)

    async def _live(self, agent_id: str) -> Agent:
        """By id, or by the name that was given last. OwnedElsewhere when another process runs it, AlreadyTerminal when
        it ended with an earlier one."""
        if agent := self._here(agent_id):
            return agent
        if is_live(await self.info(agent_id)):
            raise OwnedElsewhere(f"agent {agent_id} runs in another process; use the editor that started it")
        raise AlreadyTerminal(f"agent {agent_id} does not run: it ended with an earlier process")

    def _here(self, agent_id: str) -> Agent | None:
        named = [agent for agent in self._agents.values() if agent.log.state.info.name == agent_id]
        return self._agents.get(agent_id) or (named[-1] if named else None)

    async def _reachable(self, to: str) -> Agent:
        """As `_known`, and agents of earlier processes are brought back. What cannot be brought back says why."""
        if to == MAIN:
            return await self._main_agent()
        async with self._reviving:
            return await self._revived(to)

    async def _revived(self, agent_id: str) -> Agent:
        if agent := self._here(agent_id):
            return agent
        project, path = await self._transcript_of(agent_id)
        info = await self.info(agent_id)
        parent = await self._revived(info.parent_id) if info.parent_id else None
        agent = await revive(self.engine, project, path, parent)
        self._register(agent)
        for child in reversed(await self.list()):
            if child.parent_id == agent.id and child.background and child.id not in {*agent.told_of, *self._agents}:
                self._tell(agent, child, None)  # it ended when nobody was there to be told
        return agent

    async def _main_agent(self) -> Agent:
        folder = self.folders[0]
        async with self._main_lock:
            if folder not in self._main:
                project = await self.project(folder)
                self.credentials()  # before anything is registered: a refusal leaves nothing behind
                request = SpawnRequest(prompt="", cwd=folder)
                agent = await prepare_main(self.engine, project, request)
                self._main[folder] = agent
                self._register(agent)
        return self._main[folder]

    async def _subject(self, agent_id: str) -> Subject:
        worktree, info = await self._worktree(agent_id), await self.info(agent_id)
        self.engine.checkouts.go_on(worktree)
        await self.engine.checkouts.ready(worktree.path)
        return Subject(info.id, worktree, info.output_file.with_suffix(".review.json"))

    async def _worktree(self, agent_id: str) -> Worktree:
        agent = self._agents.get(agent_id)
        if agent is not None and agent.worktree is not None:
            return agent.worktree
        info = await self.info(agent_id)
        if info.worktree is None:
            why = "it made no changes" if info.isolation == "worktree" else "it worked in place, without isolation"
            raise NotReviewable(f"agent {agent_id} has no worktree to review: {why}")
        kept = info.worktree
        if not kept.branch:
            raise NotReviewable(f"{kept.path} was made by a hook and is no git worktree of this repository; look there")
        repository = await find_repository(self.engine.git, info.cwd)
        return await reopen(self.engine.git, repository, kept.path, kept.branch, kept.base_commit)

    async def _transcript_of(self, agent_id: str) -> tuple[ProjectState, Path]:
        for folder in self.folders:
            project = await self.project(folder)
            if path := await anyio.to_thread.run_sync(find_transcript, project.sessions, agent_id):
                return project, path
        raise UnknownAgent(f"there is no agent {agent_id!r} in this workspace; agent/list names them")

    def _limit(self) -> int:
        limits = [p.configuration.settings.max_concurrent_agents for p in self._projects.values() if p.loaded]
        return min(limits) if limits else 1


@asynccontextmanager
async def open_runtime(
    runtime: Runtime, *, files: FileSystem, target: ReviewTarget, processes: Processes, git: Git
) -> AsyncIterator[Runtime]:
    """Enter before the first message is read; leaving ends every run (bounded) and writes what is left to write."""
    clock = SystemClock()
    writer = TranscriptWriter(asyncio.get_running_loop())
    client = MessagesApi(runtime.credentials)
    writer.start()
    try:
        async with anyio.create_task_group() as group:
            runtime._group = group
            runtime._reviews = Reviews(git, target)
            runtime._engine = Engine(
                env=runtime.env,
                clock=clock,
                client=client,
                files=files,
                processes=processes,
                git=git,
                checkouts=Checkouts(git, group),
                broker=PermissionBroker(group),
                slots=Slots(runtime._limit),
                writer=writer,
                stagger=Stagger(clock),
                hooks=HookRunner(),
                interactive=runtime.interactive,
                begin=runtime.begin,
                agents=runtime._agents,
                resume=runtime._start,
                reach=runtime._reachable,
                ended=runtime._ended,
            )
            try:
                yield runtime
            finally:
                await end_sessions(runtime.engine)
                group.cancel_scope.cancel()
    finally:
        processes.kill_all()
        with anyio.CancelScope(shield=True):
            await client.aclose()
            await anyio.to_thread.run_sync(writer.close)


def is_live(info: AgentInfo) -> bool:
    return info.status not in TERMINAL


__all__ = ["OwnedElsewhere", "Page", "Runtime", "SpawnRequest", "StopScope", "is_live", "open_runtime"]

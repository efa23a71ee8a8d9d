"""One live agent: its log, its prompt, and what it may use. The only mutable thing per agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
from attrs import define, evolve, field, frozen

from agent_core.definitions import AgentDefinition, Isolation
from agent_core.event_log import EventLog
from agent_core.events import AgentInfo, Event, EventBody, MessageAdded, Notified, StatusChanged, UsageReported
from agent_core.ids import AgentId, new_message_id
from agent_core.messages import Block, Message, ModelReply, TextBlock, ToolResultBlock, Usage
from agent_core.model.aliases import context_limit
from agent_core.model.prices import cost
from agent_core.model.prompt import Prompt
from agent_core.permissions.grants import SessionGrants
from agent_core.permissions.types import ChainLink, PermissionMode
from agent_core.project import ProjectState
from agent_core.slots import Slot
from agent_core.task import TERMINAL, TaskStatus
from agent_core.tool import Place, ReadFiles, Tool
from agent_core.transcript.reading import load
from agent_core.transcript.writer import TranscriptFiles
from agent_core.worktree import Worktree

STOP_SECONDS = 10.0
"""Nobody waits longer for the processes of a run that was stopped."""


@frozen
class Incoming:
    """A message that waits for the next turn. One that does not wake leaves an idle agent alone; `after_stop`: it came
    when a stop was under way already."""

    message: Message
    notified: Notified | None = None
    wakes: bool = True
    after_stop: bool = False


@define(eq=False)
class Agent:
    """`scope` is that of the run under way, None between runs; `idle` is set whenever there is none.

    `finished` is set before `idle`, as soon as `final` holds how the run ended; `released` when whoever waits for a
    foreground agent shall wait no longer. `background`: nobody waits for the run. `tool_use_id`: of the Agent call.
    """

    log: EventLog
    files: TranscriptFiles
    grants: SessionGrants
    project: ProjectState
    definition: AgentDefinition
    tools: Mapping[str, Tool]
    prompt: Prompt
    place: Place
    mode: PermissionMode
    model: str
    isolation: Isolation
    max_turns: int | None
    background: bool = False
    fork: bool = False
    parent: Agent | None = None
    worktree: Worktree | None = None
    read_files: ReadFiles = field(factory=ReadFiles)
    inbox: list[Incoming] = field(factory=list)
    scope: anyio.CancelScope | None = None
    slot: Slot | None = None
    idle: anyio.Event = field(factory=anyio.Event)
    finished: anyio.Event = field(factory=anyio.Event)
    released: anyio.Event = field(factory=anyio.Event)
    final: AgentInfo | None = None
    tool_use_id: str | None = None
    task: str | None = None
    """What it was launched for."""
    stop_asked: bool = False
    stopped_by_model: bool = False
    ended_by_hook: str | None = None
    """The reason that a hook gave for ending the run."""
    parent_stopped_it: bool = False
    told_of: set[AgentId] = field(factory=set)
    """Agents whose end has reached this conversation."""
    withdrawn: set[str] = field(factory=set)
    """Calls of this run that waited for an answer when it ended."""
    earlier: dict[str, ToolResultBlock] = field(factory=dict)
    """What became of open calls that an earlier process had begun."""
    addressed: dict[str, AgentId] = field(factory=dict)
    """Which agent each name has reached from here first."""
    detached: set[anyio.CancelScope] = field(factory=set)
    """Hooks that nobody waits for; a stop ends them."""
    open_asks: int = 0
    forgotten: bool = False
    """Between runs: the conversation is in the transcript, not here."""

    @property
    def id(self) -> AgentId:
        return self.log.agent_id

    @property
    def depth(self) -> int:
        """0 for roots and the main thread; a fork has its parent's (TL-4)."""
        return self.parent.depth + (not self.fork) if self.parent else 0

    @property
    def status(self) -> TaskStatus:
        return self.log.state.info.status

    @property
    def chain(self) -> tuple[ChainLink, ...]:
        """The ancestors, the nearest first."""
        links: list[ChainLink] = []
        agent = self.parent
        while agent is not None:
            info = agent.log.state.info
            links.append(ChainLink(agent.id, info.agent_type, info.description))
            agent = agent.parent
        return tuple(links)

    def tell(self, text: str, *, meta: str | None = None) -> None:
        """Put a user message into the inbox; the loop takes it before its next model request."""
        self.inbox.append(Incoming(user_message(TextBlock(text), meta=meta), after_stop=self.stop_asked))

    @property
    def woken(self) -> bool:
        """Something in the inbox wants an answer."""
        return any(each.wakes for each in self.inbox)

    def take_inbox(self, *, only_before_stop: bool = False) -> None:
        taken = [each for each in self.inbox if not (only_before_stop and each.after_stop)]
        self.inbox = [each for each in self.inbox if each not in taken]
        for each in taken:
            self.add(each.message)
            if each.notified is not None:
                self.record(each.notified)
                self.told_of.add(each.notified.from_agent_id)

    def begin_run(self, background: bool) -> None:
        """Before the run is started, so that whoever waits from now on waits for this one."""
        self.background = background
        self.idle, self.finished, self.released = anyio.Event(), anyio.Event(), anyio.Event()
        self.final, self.ended_by_hook = None, None
        self.stopped_by_model, self.parent_stopped_it = False, False
        self.withdrawn.clear()

    def to_background(self) -> None:
        """Whoever waits for it waits no longer; the run itself is untouched (RUN-4)."""
        if not self.background and self.status not in TERMINAL:
            self.background = True
            self.log.append(StatusChanged(self.status, background=True))
        self.released.set()

    def add(self, message: Message, stop_reason: str | None = None) -> None:
        assert not self.forgotten, "recall the conversation before going on with it"
        self.prompt = self.prompt.append(message)
        self.log.append(MessageAdded(message, stop_reason))

    def add_forked(self, message: Message) -> None:
        """A fork's own first message; what its siblings share of it gets a breakpoint."""
        self.prompt = self.prompt.forked_by(message).append(message)
        self.log.append(MessageAdded(message))

    def add_reply(self, reply: ModelReply) -> None:
        self.add(reply.message, reply.stop_reason)
        spent = cost(self.model, reply.usage, self.project.configuration.settings.prices)
        used = reply.usage + Usage(tool_uses=len(reply.message.tool_uses), cost_usd=spent)
        context = reply.usage.total_tokens
        self.log.append(UsageReported(self.log.state.info.usage + used, context, context_limit(self.model)))

    def forget(self) -> None:
        """At the end of a run: what it read and said leaves memory as soon as the transcript has it (CTX-9)."""
        if not self.forgotten:
            own = sum(1 for message in self.log.state.messages if message.content)
            inherited = len(self.prompt.messages) - own
            self.prompt = evolve(self.prompt, messages=self.prompt.messages[:inherited])
            self.forgotten = True
        self.log.forget(self._recorded)

    async def recall(self) -> None:
        """Bring the conversation back for a further run; nothing to do for the first. TranscriptFailed."""
        if self.forgotten:
            messages = await self.log.recall()
            if self.forgotten:  # nobody else has done it meanwhile
                self.prompt = self.prompt.append(*messages).without_results(self.log.state.cleared)
                self.forgotten = False

    async def _recorded(self) -> Sequence[Event]:
        return (await load(self.files.transcript)).events

    def record(self, body: EventBody) -> None:
        self.log.append(body)

    def move(self, status: TaskStatus, *, queue_position: int | None = None) -> None:
        """Change the live status. Does nothing after the end of the run: a late answer must not revive an agent."""
        info = self.log.state.info
        if info.status not in TERMINAL and (status is not info.status or queue_position is not None):
            self.log.append(StatusChanged(status, self.background, queue_position))

    def ask_opened(self) -> None:
        self.open_asks += 1
        self.move(TaskStatus.WAITING)

    def ask_closed(self) -> None:
        self.open_asks -= 1
        if self.open_asks == 0:
            self.move(TaskStatus.RUNNING)

    def stop(self, *, by_model: bool = False) -> None:
        """End the run under way; harmless when there is none. `by_model`: by TaskStop; a person's stop outranks it."""
        self.stopped_by_model = by_model and (self.stopped_by_model or not self.stop_asked)
        self.stop_asked = True
        if self.scope is not None:
            self.scope.cancel()
        for scope in self.detached:
            scope.cancel()

    def end_by_hook(self, reason: str) -> None:
        """A stop that nobody else has asked for."""
        if not self.stop_asked:
            self.ended_by_hook = reason
        self.stop()


def user_message(*blocks: Block, meta: str | None = None) -> Message:
    return Message(new_message_id(), "user", blocks, meta)


def locations(input: Mapping[str, Any]) -> str | None:
    """The file that a call names, by the parameter names that all file tools share."""
    path = input.get("file_path") or input.get("path")
    return path if isinstance(path, str) else None

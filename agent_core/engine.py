"""What every run needs from outside the agent itself, in one value that is passed first and explicitly."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from attrs import define

from agent_core.checkouts import Checkouts
from agent_core.permissions.broker import PermissionBroker
from agent_core.ports import Clock, FileSystem, Git, ModelClient, Processes
from agent_core.slots import Slots
from agent_core.stagger import Stagger
from agent_core.transcript.writer import TranscriptWriter

if TYPE_CHECKING:
    from agent_core.agent import Agent
    from agent_core.hooks.runner import HookRunner


@define(eq=False)
class Engine:
    env: Mapping[str, str]
    clock: Clock
    client: ModelClient
    files: FileSystem
    processes: Processes
    git: Git
    checkouts: Checkouts
    broker: PermissionBroker
    slots: Slots
    writer: TranscriptWriter
    stagger: Stagger
    hooks: HookRunner
    interactive: bool
    """A person is there, who can be asked and told."""
    begin: Callable[[Agent, str], None]
    """Register an agent with the runtime and start its run with this task."""
    agents: Mapping[str, Agent]
    """All of this process, by id."""
    reach: Callable[[str], Awaitable[Agent]]
    """By id, of an earlier process too. UserErrors say why it cannot be had."""
    resume: Callable[[Agent, str, bool], None]
    """A further run of an idle agent with this message, in the background or not."""
    ended: Callable[[Agent], None]
    """A run has ended: a parent that did not wait for it is told."""

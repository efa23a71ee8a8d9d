"""What every run needs from outside the agent itself, in one value that is passed first and explicitly."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from agent_core.permissions.broker import PermissionBroker
from agent_core.ports import Clock, FileSystem, Git, ModelClient, Processes
from agent_core.slots import Slots
from agent_core.transcript.writer import TranscriptWriter


@define(eq=False)
class Engine:
    env: Mapping[str, str]
    clock: Clock
    client: ModelClient
    files: FileSystem
    processes: Processes
    git: Git
    broker: PermissionBroker
    slots: Slots
    writer: TranscriptWriter

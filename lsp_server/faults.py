"""Faults of agent and settings files as diagnostics of those files, for every client (M1).

They are told once after `initialized` and whenever the files were read again with other faults; what was mended is
cleared. Files are read again when an agent is launched, and here as soon as the editor says that one has changed.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from attrs import define, field
from lsprotocol import types

from agent_core.definitions import Problem
from agent_core.loading.configuration import config_dir
from agent_core.runtime import Runtime
from lsp_server.capabilities import NAME
from lsp_server.client_support import ClientSupport
from lsp_server.rpc import AgentProtocol

logger = logging.getLogger(__name__)

AGENTS, SETTINGS = "agents/**/*.md", ("settings.json", "settings.local.json")


@define(eq=False)
class ShownFaults:
    """What one editor was told. Looking is done by one task at a time; a change meanwhile makes it look again."""

    rpc: AgentProtocol
    runtime: Runtime
    _shown: dict[str, list[types.Diagnostic]] = field(factory=dict)
    _folders: tuple[Path, ...] = ()
    _looking: bool = False
    _again: bool = False

    async def show(self, folders: tuple[Path, ...]) -> None:
        self._folders, self._again = folders, True
        if self._looking:
            return
        self._looking = True
        try:
            while self._again:
                self._again = False
                self._tell(await self._found())
        except Exception:
            logger.exception("the faults of agent and settings files cannot be shown")
        finally:
            self._looking = False

    async def _found(self) -> dict[str, list[types.Diagnostic]]:
        found: dict[str, list[types.Diagnostic]] = {}
        for folder in self._folders:
            for problem in (await self.runtime.project(folder)).configuration.problems:
                if problem.path.is_absolute():  # others are about the editor's settings or the command line
                    faults = found.setdefault(problem.path.as_uri(), [])
                    if (fault := _diagnostic(problem)) not in faults:
                        faults.append(fault)
        return found

    def _tell(self, found: dict[str, list[types.Diagnostic]]) -> None:
        for uri in [*self._shown, *(uri for uri in found if uri not in self._shown)]:
            if (faults := found.get(uri, [])) != self._shown.get(uri):
                params = types.PublishDiagnosticsParams(uri=uri, diagnostics=faults)
                self.rpc.notify(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, params)
        self._shown = found


def _diagnostic(problem: Problem) -> types.Diagnostic:
    line = types.Range(types.Position(problem.line, 0), types.Position(problem.line + 1, 0))
    return types.Diagnostic(line, problem.message, types.DiagnosticSeverity(problem.severity), source=NAME)


def is_configuration(path: Path, runtime: Runtime) -> bool:
    """By its name alone: a file that may define an agent, or hold settings."""
    home = config_dir(runtime.env)
    if ".claude" not in path.parts and not path.is_relative_to(home):
        return False
    return path.suffix == ".md" or path.name in SETTINGS


async def watch_files(rpc: AgentProtocol, support: ClientSupport, runtime: Runtime, folders: tuple[Path, ...]) -> None:
    """Ask the editor to tell of changes, where it can; what it saves itself it tells anyway."""
    if not support.watched_files:
        return
    names = (AGENTS, *SETTINGS)
    watchers: list[Any] = [{"globPattern": f"**/.claude/{name}"} for name in names]
    if support.relative_patterns:
        projects = [(await runtime.project(folder)).project for folder in folders]
        outside = {project.top / ".claude" for project in projects if project.top != project.root}
        for base in sorted({config_dir(runtime.env), *outside}):
            watchers += [{"globPattern": {"baseUri": base.as_uri(), "pattern": name}} for name in names]
    method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
    registration = {"id": f"{NAME}-files", "method": method, "registerOptions": {"watchers": watchers}}
    try:
        await rpc.call(types.CLIENT_REGISTER_CAPABILITY, {"registrations": [registration]})
    except Exception as error:  # noqa: BLE001 - then changes show at the next save or use
        logger.warning("the editor does not watch the files of agents: %s", error)

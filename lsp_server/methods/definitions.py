"""agent/definitions: the agents that can be launched, and the faults of the files that define them."""

from __future__ import annotations

from lsp_server import convert
from lsp_server import protocol as wire
from lsp_server.session import EditorSession


async def handle(session: EditorSession, params: wire.DefinitionsParams) -> wire.DefinitionsResult:
    found, problems = await session.runtime.definitions()
    agents = [convert.definition(each, overridden=False) for each in found.active]
    agents += [convert.definition(each, overridden=True) for each in found.overridden]
    return wire.DefinitionsResult(agents, [convert.problem(each) for each in problems])

"""The Asker that speaks to one editor: `agent/permission`, or `window/showMessageRequest` to a plain client (ED-2).

Null, a dismissed question or `cancelled` is no decision: the ask stays open for `agent/answer`. An error, or an
unknown method, means that this client cannot answer; with nobody left the broker denies.
"""

from __future__ import annotations

import logging

import anyio
from attrs import define
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from agent_core.permissions.shell.visible import visible
from agent_core.permissions.types import PermissionAnswer, PermissionRequest
from lsp_server import convert
from lsp_server.outbound import EditorClient

logger = logging.getLogger(__name__)

_DIFF_LINES = 40
_LONGEST = 200


@define(eq=False)
class EditorAsker:
    client: EditorClient

    async def ask(self, request: PermissionRequest) -> PermissionAnswer | None:
        try:
            if self.client.support.permission:
                params = convert.permission(request, self.client.support.encoding)
                answer = convert.answer(await self.client.permission(params))
            else:
                answer = await self._message_request(request)
        except JsonRpcException as error:
            logger.warning("the editor could not answer a permission request: %s", error.message)
            return None
        if answer is None:
            await anyio.sleep_forever()
        return answer

    async def _message_request(self, request: PermissionRequest) -> PermissionAnswer | None:
        labels = [option.label for option in request.options]
        label = await self.client.choose(question(request), labels, types.MessageType.Warning)
        chosen = next((option for option in request.options if option.label == label), None)
        return PermissionAnswer(chosen.id) if chosen else None


def question(request: PermissionRequest) -> str:
    """Who asks, what for, and what would happen (PM-6), as text for a message box. What a model has written stays on
    one line of its own, so that it cannot look like an ask (A16)."""
    chain = "".join(f", for {_who(link.agent_type, link.description)}" for link in request.chain)
    asker = _who(request.agent_type, request.description)
    lines = [f"{asker}{chain} asks: {_one_line(request.title)}", visible(request.reason)]
    facts = request.facts
    if facts.command is not None:
        lines += [f"Command: {visible(facts.command)}", f"Directory: {visible(str(facts.cwd))}"]
    if facts.diff:
        diff = visible(facts.diff).splitlines()
        lines += diff[:_DIFF_LINES]
        if len(diff) > _DIFF_LINES:
            lines.append(f"... and {len(diff) - _DIFF_LINES} more lines")
    return "\n".join(lines)


def _who(agent_type: str, description: str) -> str:
    return f"{_one_line(agent_type)} ({_one_line(description)})"


def _one_line(text: str) -> str:
    line = visible(text).replace("\n", "\\n")
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."

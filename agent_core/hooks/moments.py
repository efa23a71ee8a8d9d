"""What each event tells its hooks: the fields of features 14, in the names that scripts know."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from agent_core.conversations import is_main
from agent_core.permissions.types import PermissionRequest, PermissionRule
from agent_core.task import TERMINAL
from agent_core.tool import Place, ToolResult
from agent_core.tools.paths import resolve

if TYPE_CHECKING:
    from agent_core.agent import Agent
    from agent_core.engine import Engine

_PATHS = ("file_path", "path", "notebook_path")


async def _always(rule: PermissionRule) -> bool:
    return True


@frozen
class Moment:
    """`subject` is what matchers are about, `speaks` whether a hook's `if` is about this call."""

    event: str
    subject: str = ""
    fields: Mapping[str, Any] = field(factory=dict)
    speaks: Callable[[PermissionRule], Awaitable[bool]] = _always

    def payload(self, agent: Agent) -> dict[str, Any]:
        return {**_common(agent), "hook_event_name": self.event, **self.fields}


def _common(agent: Agent) -> dict[str, Any]:
    """The transcript is that of the conversation's first agent; the main thread has no agent_id."""
    root = agent
    while root.parent is not None:
        root = root.parent
    info = agent.log.state.info
    common = {
        "session_id": info.conversation_id,
        "transcript_path": str(root.files.transcript),
        "cwd": str(agent.place.cwd),
        "permission_mode": agent.mode.value,
    }
    return common if is_main(info) else {**common, "agent_id": agent.id, "agent_type": info.agent_type}


def absolute(input: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """Paths as the tool will understand them, so that no hook has to know where the agent works."""
    found = {name: input[name] for name in _PATHS if isinstance(input.get(name), str) and "\0" not in input[name]}
    return {**input, **{name: str(resolve(text, place)) for name, text in found.items() if text.strip()}}


def tool_moment(
    event: str,
    agent: Agent,
    tool: str,
    use_id: str,
    input: Mapping[str, Any],
    speaks: Callable[[PermissionRule], Awaitable[bool]],
    **more: Any,
) -> Moment:
    fields = {"tool_name": tool, "tool_input": absolute(input, agent.place), "tool_use_id": use_id, **more}
    return Moment(event, tool, fields, speaks)


def permission_moment(
    agent: Agent, request: PermissionRequest, speaks: Callable[[PermissionRule], Awaitable[bool]]
) -> Moment:
    suggestions = [
        {
            "type": "addRules",
            "rules": [_rule(text) for text in option.rules],
            "behavior": "allow",
            "destination": option.destination,
        }
        for option in request.options
        if option.rules and option.kind.allows
    ]
    fields = {"tool_name": request.tool_name, "tool_input": absolute(request.input, agent.place)}
    return Moment("PermissionRequest", request.tool_name, {**fields, "permission_suggestions": suggestions}, speaks)


def _rule(text: str) -> dict[str, str]:
    tool, _, rest = text.partition("(")
    return {"toolName": tool, "ruleContent": rest.removesuffix(")")} if rest else {"toolName": tool}


def response(result: ToolResult) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": result.text}], "is_error": result.is_error}


def stop_moment(agent: Agent, engine: Engine, *, again: bool) -> Moment:
    """`again`: an earlier answer of this run has kept it going already."""
    info = agent.log.state.info
    said = [message.text for message in agent.log.state.messages if message.role == "assistant"]
    fields: dict[str, Any] = {
        "stop_hook_active": again,
        "last_assistant_message": said[-1] if said else "",
        "background_tasks": _working(agent, engine),
        "session_crons": [],
    }
    if is_main(info):
        return Moment("Stop", "", fields)
    own: Path = agent.files.transcript
    return Moment("SubagentStop", info.agent_type, {**fields, "agent_transcript_path": str(own)})


def _working(agent: Agent, engine: Engine) -> list[dict[str, Any]]:
    children = (each.log.state.info for each in engine.agents.values() if each.parent is agent and each.background)
    return [
        {"id": info.id, "type": "agent", "status": info.status.value, "description": info.description}
        for info in children
        if info.status not in TERMINAL
    ]

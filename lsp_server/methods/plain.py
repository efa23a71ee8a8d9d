"""The whole path for a client without our plugin: `workspace/executeCommand` and code actions (ED-4).

`agent.<name>` takes the params of `agent/<name>` as its first argument. What is missing is asked for, or takes the
obvious default: clients such as Helix send no arguments at all. Faults are shown too, because many clients drop the
error of a command.
"""

from __future__ import annotations

from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from agent_core.errors import InvalidParams, UserError
from agent_core.events import AgentInfo
from agent_core.runtime import is_live
from agent_core.task import TaskStatus
from lsp_server import protocol as wire
from lsp_server.capabilities import COMMANDS
from lsp_server.convert import permission
from lsp_server.prompts import question
from lsp_server.session import EditorSession
from lsp_server.wire import from_wire, to_wire

_MANY = 12
"""Agents offered in one message request, the newest first."""


def register_plain(session: EditorSession) -> None:
    async def command(params: Any) -> Any:
        return await execute(session, params)

    async def actions(params: Any) -> Any:
        return await code_actions(session, params)

    session.rpc.serve(types.WORKSPACE_EXECUTE_COMMAND, command)
    session.rpc.serve(types.TEXT_DOCUMENT_CODE_ACTION, actions)
    session.rpc.listeners[types.WINDOW_WORK_DONE_PROGRESS_CANCEL] = session.plain.cancel


async def execute(session: EditorSession, params: Any) -> Any:
    name = params.get("command") if isinstance(params, dict) else None
    if name not in COMMANDS:
        raise InvalidParams("command", f"must be one of {', '.join(COMMANDS)}, not {name!r}")
    arguments = params.get("arguments") or [{}]
    given = arguments[0] if isinstance(arguments[0], dict) else {}
    method = f"agent/{name.removeprefix('agent.')}"
    try:
        return await _run(session, method, given)
    except UserError as error:
        session.client.message(str(error), types.MessageType.Error)
        raise


async def _run(session: EditorSession, method: str, given: dict[str, Any]) -> Any:
    from lsp_server.methods.table import TABLE

    if method == "agent/answer" and "optionId" not in given:
        return await _ask_again(session, given.get("requestId"))
    if method in _NEEDS_AGENT and "agentId" not in given:
        given = {**given, "agentId": await _choose_agent(session, method)}
    if method == "agent/finish" and "as" not in given:
        given = {**given, "as": await _choose_end(session)}
    result = await TABLE[method](session, from_wire(given, wire.INBOUND[method][0]))
    if isinstance(result, wire.Review):
        await _show_review(session, result)
    elif isinstance(result, wire.ApplyResult):
        session.client.message(_applied(result))
    elif isinstance(result, wire.FinishResult):
        session.client.message(_finished(result))
    elif method == "agent/transcript":
        await _show_transcript(session, given["agentId"])
    return to_wire(result)


_REVIEWING = ("agent/review", "agent/apply", "agent/discard", "agent/restore", "agent/finish")
_NEEDS_AGENT = {"agent/stop", "agent/background", "agent/resume", "agent/wait", "agent/transcript", *_REVIEWING}


async def _choose_agent(session: EditorSession, method: str) -> str:
    """The only agent that fits, else the one chosen; InvalidParams when there is none or nobody chose."""
    fitting = [info for info in await session.runtime.list() if _fits(method, info)][:_MANY]
    if not fitting:
        raise InvalidParams("agentId", f"is missing, and there is no agent that {method} could be meant for")
    if len(fitting) == 1:
        return fitting[0].id
    labels: dict[str, str] = {
        f"{info.agent_type}: {info.description} ({info.status}, {info.id[:8]})": info.id for info in fitting
    }
    return await _choose(session, "agentId", "Which agent?", labels)


def _label(info: AgentInfo) -> str:
    return f"{info.agent_type}: {info.description} ({info.status}, {info.id[:8]})"


_ENDS = {"One commit on a new branch": "commit", "The agent's own branch": "branch", "Merge into my branch": "merge"}


async def _choose_end(session: EditorSession) -> str:
    return await _choose(session, "as", "How shall the agent's work be kept?", _ENDS)


async def _choose(session: EditorSession, field: str, question: str, labels: dict[str, str]) -> str:
    """What the chosen label stands for. InvalidParams names `field` when nobody chose."""
    try:
        label = await session.client.choose(question, list(labels), types.MessageType.Info)
    except JsonRpcException as error:
        raise InvalidParams(field, f"is missing, and the editor could not ask: {error.message}") from error
    if label not in labels:
        raise InvalidParams(field, "is missing, and nothing was chosen")
    return labels[label]


def _fits(method: str, info: AgentInfo) -> bool:
    if method in ("agent/stop", "agent/background", "agent/wait"):
        return is_live(info)
    if method == "agent/resume":
        return info.status in (TaskStatus.INTERRUPTED, TaskStatus.STOPPED, TaskStatus.FAILED)
    return info.worktree is not None if method in _REVIEWING else True


async def _ask_again(session: EditorSession, request_id: str | None) -> Any:
    """Put a pending question that was dismissed once more."""
    pending = [each for each in session.runtime.pending_permissions() if request_id in (None, each.id)]
    if not pending:
        raise InvalidParams("requestId", "there is no open permission request")
    request = pending[0]
    labels = {option.label: option.id for option in request.options}
    try:
        label = await session.client.choose(question(request), list(labels), types.MessageType.Warning)
    except JsonRpcException as error:
        raise InvalidParams("optionId", f"is missing, and the editor could not ask: {error.message}") from error
    if label not in labels:
        return to_wire(wire.AnswerResult(False, "the question was dismissed; the request stays open"))
    given = from_wire({"requestId": request.id, "optionId": labels[label]}, wire.AnswerParams)
    from lsp_server.methods import answer

    return to_wire(await answer.handle(session, given))


async def _show_review(session: EditorSession, review: wire.Review) -> None:
    """The diff as a document where the editor can show one, else its summary."""
    diff = "".join(f"--- {file.path}\n+++ {file.path}\n" + "".join(h.text for h in file.hunks) for file in review.files)
    path = session.runtime.write_review(review.agent_id, diff)
    names = ", ".join(f"{file.path} ({file.status})" for file in review.files) or "no changes"
    if not await session.client.show(path.as_uri()):
        session.client.message(f"{names}. The diff is in {path}; agent.apply takes the changes over.")


async def _show_transcript(session: EditorSession, agent_id: str) -> None:
    info = await session.runtime.info(agent_id)
    if not await session.client.show(info.output_file.as_uri()):
        session.client.message(f"The transcript of {info.description} is in {info.output_file}")


def _applied(result: wire.ApplyResult) -> str:
    done = f"{len(result.applied)} files were changed, {result.remaining} changes are left to review"
    conflicts = "".join(f"; {each.path}: {each.reason}" for each in result.conflicts)
    return f"{done}{conflicts}{f'; {result.failure_reason}' if result.failure_reason else ''}"


def _finished(result: wire.FinishResult) -> str:
    if result.conflicts:
        return "Nothing was made: " + "; ".join(f"{each.path}: {each.reason}" for each in result.conflicts)
    return f"The agent's work is commit {str(result.commit)[:12]} on the branch {result.branch}"


async def code_actions(session: EditorSession, params: Any) -> list[dict[str, Any]]:
    """Start an agent on what the cursor is at, answer what waits, review what has ended."""
    context = {"uri": params["textDocument"]["uri"], "range": params["range"]}
    found = params.get("context", {}).get("diagnostics", [])
    actions = [
        _spawn(f"Agent: fix “{each.get('message', '')[:60]}”", f"Fix this: {each.get('message', '')}", context, [each])
        for each in found
    ]
    actions.append(_spawn("Agent: explain this", "Explain this code.", context, [], agentType="Explore"))
    for request in session.runtime.pending_permissions():
        shown = permission(request, session.support.encoding)
        actions.append(_action(f"Agent: answer “{shown.title[:60]}”", "agent.answer", {"requestId": shown.request_id}))
    for info in [each for each in await session.runtime.list() if each.worktree is not None][:_MANY]:
        actions.append(_action(f"Agent: review “{info.description}”", "agent.review", {"agentId": info.id}))
        actions.append(_action(f"Agent: apply “{info.description}”", "agent.apply", {"agentId": info.id}))
    return actions


def _spawn(title: str, prompt: str, context: dict[str, Any], diagnostics: list[Any], **more: Any) -> dict[str, Any]:
    argument = {"prompt": prompt, "context": {**context, "diagnostics": diagnostics}, **more}
    return _action(title, "agent.spawn", argument)


def _action(title: str, command: str, argument: dict[str, Any]) -> dict[str, Any]:
    return {"title": title, "command": {"title": title, "command": command, "arguments": [argument]}}

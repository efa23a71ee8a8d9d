"""One pipeline for every call of every agent (A25): facts, decision, ask, and the decision again on changed input."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from attrs import frozen

from agent_core.errors import ToolError
from agent_core.events import Outcome, PermissionAsked, PermissionSettled
from agent_core.ids import new_request_id
from agent_core.permissions.broker import NOBODY, Settled, is_stop
from agent_core.permissions.grants import store_rules
from agent_core.permissions.options import options_for
from agent_core.permissions.policy import Call, PolicyContext, decide
from agent_core.permissions.rules import Match, MatchContext, match
from agent_core.permissions.types import (
    Allow,
    Ask,
    Deny,
    Destination,
    OptionKind,
    PermissionFacts,
    PermissionOption,
    PermissionRequest,
    PermissionRule,
)
from agent_core.tool_input import invalid

if TYPE_CHECKING:
    from agent_core.agent import Agent
    from agent_core.engine import Engine
    from agent_core.tool import Tool, ToolContext

logger = logging.getLogger(__name__)

HOW_TO_GO_ON = "Don't look for another way to do the same: go on without it, or say what you need and why."


@frozen
class Permitted:
    """`input` is what was allowed; `edited` when a person changed it."""

    input: Mapping[str, Any]
    comment: str | None = None
    edited: bool = False


async def permit(
    agent: Agent, engine: Engine, tool: Tool, use_id: str, input: Mapping[str, Any], context: ToolContext
) -> Permitted:
    """ToolError with a reason for the model when the call may not run."""
    facts = await tool.facts(input, context)
    match decide(_call(tool, facts), policy_context(agent)):
        case Allow():
            return Permitted(input)
        case Deny(_, reason):
            raise ToolError(f"Not permitted: {reason}. {HOW_TO_GO_ON}")
        case Ask(reason):
            request = _request(agent, engine, tool, use_id, input, facts, reason)
            return await _permit_by_asking(agent, engine, tool, request, context)


async def _permit_by_asking(
    agent: Agent, engine: Engine, tool: Tool, request: PermissionRequest, context: ToolContext
) -> Permitted:
    settled = await _ask(agent, engine, request, tool)
    if not settled.allowed:
        raise ToolError(_refusal(settled, request.reason))
    answer = settled.answer
    assert answer is not None
    if answer.updated_input is None:
        return Permitted(request.input, answer.comment)
    return await _recheck(agent, tool, answer.updated_input, answer.comment, context)


def policy_context(agent: Agent) -> PolicyContext:
    project, place = agent.project, agent.place
    roots = (place.worktree,) if place.worktree else (place.cwd, project.project.root)
    bases = dict.fromkeys([place.cwd, *roots, project.project.root, project.project.top])
    return PolicyContext(
        mode=agent.mode,
        rules=_rules(agent),
        working_dirs=tuple(root.resolve() for root in roots),
        worktree=place.worktree.resolve() if place.worktree else None,
        matching=MatchContext(tuple(bases), project.home),
    )


def hidden_files(agent: Agent) -> Callable[[Path], bool]:
    """Which files the deny rules of reading hide, for searches that come upon them from a folder above."""
    rules = [rule for rule in _rules(agent) if rule.behavior == "deny" and rule.tool == "Read" and rule.specifier]
    if not rules:
        return lambda path: False
    matching = policy_context(agent).matching

    def denied(path: Path) -> bool:
        facts = PermissionFacts(reads=(path,))
        return any(match(rule, "Read", facts, "", matching) is Match.YES for rule in rules)

    return denied


def _rules(agent: Agent) -> tuple[PermissionRule, ...]:
    return (*agent.grants.rules, *agent.project.configuration.settings.rules)


async def _recheck(
    agent: Agent, tool: Tool, input: Mapping[str, Any], comment: str | None, context: ToolContext
) -> Permitted:
    """What a person edited is what they approved; rules that deny still hold on it (B10)."""
    if problem := invalid(tool, input):
        raise ToolError(f"The user changed the input, but it cannot run: {problem}")
    decision = decide(_call(tool, await tool.facts(input, context)), policy_context(agent))
    if isinstance(decision, Deny):
        raise ToolError(f"The user changed the input, but {decision.reason}. {HOW_TO_GO_ON}")
    return Permitted(input, comment, edited=True)


async def _ask(agent: Agent, engine: Engine, request: PermissionRequest, tool: Tool) -> Settled:
    agent.record(PermissionAsked(request.id, request.title, request.tool_use_id))
    agent.ask_opened()
    settled = Settled(Outcome.WITHDRAWN, "none")
    try:
        await agent.log.written()
        settled = await engine.broker.ask(request, partial(invalid, tool))
        await _store(agent, settled)
    finally:
        if settled.outcome == Outcome.WITHDRAWN:
            agent.withdrawn.add(request.tool_use_id)
        comment = settled.answer.comment if settled.answer else None
        agent.record(PermissionSettled(request.id, request.title, settled.outcome, settled.decided_by, comment))
        agent.ask_closed()
    if is_stop(settled):
        agent.stop()
    return settled


async def _store(agent: Agent, settled: Settled) -> None:
    """A lasting answer holds for the whole session; "always" is written too, and read back with the next change. What
    was allowed runs also when it cannot be written."""
    option = settled.option
    if option is None or not option.rules:
        return
    if settled.answer is not None and settled.answer.updated_input is not None:
        return  # the rule names the input that the person has just replaced
    agent.grants.add(option, agent.project.project.root)
    await _stored(agent.grants.save, option)
    if option.kind in (OptionKind.ALLOW_ALWAYS, OptionKind.REJECT_ALWAYS):
        await _stored(partial(store_rules, agent.project.local_settings, option), option)


async def _stored(store: Callable[[], None], option: PermissionOption) -> None:
    try:
        await anyio.to_thread.run_sync(store)
    except (OSError, ValueError) as error:
        logger.warning("%s: holds for this session only, it could not be stored: %s", ", ".join(option.rules), error)


def _request(
    agent: Agent,
    engine: Engine,
    tool: Tool,
    use_id: str,
    input: Mapping[str, Any],
    facts: PermissionFacts,
    reason: str,
) -> PermissionRequest:
    info = agent.log.state.info
    # An allow rule of a project file waits for trust, so without it "always" would be written and never read (B4).
    persistent: Destination | None = "localSettings" if agent.project.configuration.trusted else None
    return PermissionRequest(
        id=new_request_id(),
        agent_id=agent.id,
        root_id=info.root_id,
        agent_type=info.agent_type,
        description=info.description,
        chain=agent.chain,
        tool_name=tool.name,
        tool_kind=tool.kind,
        tool_use_id=use_id,
        title=tool.title(input),
        input=input,
        reason=reason,
        facts=facts,
        options=options_for(tool.name, facts, persistent),
        created_at=engine.clock.now(),
    )


def _call(tool: Tool, facts: PermissionFacts) -> Call:
    return Call(tool.name, tool.kind, tool.read_only, facts, facts.agent or "")


def _refusal(settled: Settled, reason: str) -> str:
    if settled == NOBODY:
        return f"Not permitted: {reason}, and there is nobody who could be asked. Report this. {HOW_TO_GO_ON}"
    comment = settled.answer.comment if settled.answer else None
    said = f" and says: {comment}" if comment else ""
    return f"The user refused this call{said}. {HOW_TO_GO_ON}"

"""One pipeline for every call of every agent (A25): facts, decision, ask, and the decision again on changed input."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from attrs import evolve, frozen

from agent_core.errors import ToolError
from agent_core.events import Outcome, PermissionAsked, PermissionSettled
from agent_core.ids import new_request_id
from agent_core.permissions.broker import NOBODY, Settled, is_stop
from agent_core.permissions.decision import decide
from agent_core.permissions.grants import store_rules
from agent_core.permissions.modes import under_policy
from agent_core.permissions.options import options_for
from agent_core.permissions.path_rules import ignores_case
from agent_core.permissions.policy import Call, PolicyContext
from agent_core.permissions.rules import Match, MatchContext, Subject, judge
from agent_core.permissions.types import (
    Allow,
    Ask,
    Deny,
    Destination,
    PermissionFacts,
    PermissionMode,
    PermissionOption,
    PermissionRequest,
    PermissionRule,
)
from agent_core.tool_input import invalid

if TYPE_CHECKING:
    from agent_core.agent import Agent
    from agent_core.engine import Engine
    from agent_core.project import ProjectState
    from agent_core.settings import Settings
    from agent_core.tool import Place, Tool, ToolContext

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
    await agent.project.refresh_settings()
    facts = await _facts(tool, input, context)
    match decide(_call(tool, facts), policy_context(agent)):
        case Allow():
            return Permitted(input)
        case Deny(_, reason):
            raise ToolError(f"Not permitted: {reason}. {HOW_TO_GO_ON}")
        case Ask(reason):
            request = _request(agent, engine, tool, use_id, input, facts, reason)
            return await _permit_by_asking(agent, engine, tool, request, context)


async def _facts(tool: Tool, input: Mapping[str, Any], context: ToolContext) -> PermissionFacts:
    return evolve(await tool.facts(input, context), input=input)


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
    return context_of(agent.project, agent.place, agent.mode, agent.grants.rules)


def context_of(
    project: ProjectState, place: Place, mode: PermissionMode, session: tuple[PermissionRule, ...] = ()
) -> PolicyContext:
    """For an agent in `place`; `session` are the answers of its conversation. What an isolated agent writes in folders
    beside its worktree would pass review by, so that there it may only read unasked."""
    settings, where = project.configuration.settings, project.project
    roots = (place.worktree,) if place.worktree else (place.cwd, where.root, *settings.additional_directories)
    bases = tuple(dict.fromkeys([place.cwd, *roots, where.root, where.top]))
    return PolicyContext(
        mode=under_policy(mode, bypass_disabled=settings.policy.bypass_disabled),
        rules=(*_session_rules(session, settings), *settings.rules),
        working_dirs=tuple(root.resolve() for root in roots),
        worktree=place.worktree.resolve() if place.worktree else None,
        matching=MatchContext(bases, project.home, ignores_case(place.cwd)),
        readable_dirs=tuple(each.resolve() for each in settings.additional_directories) if place.worktree else (),
    )


def _session_rules(session: tuple[PermissionRule, ...], settings: Settings) -> tuple[PermissionRule, ...]:
    if not settings.policy.managed_rules_only:
        return session
    return tuple(rule for rule in session if rule.behavior != "allow")


def hidden_files(agent: Agent) -> Callable[[Path], bool]:
    """Which files the deny rules of reading hide, for searches that come upon them from a folder above."""
    context = policy_context(agent)
    rules = [rule for rule in context.rules if rule.behavior == "deny" and rule.tool == "Read" and rule.specifier]
    if not rules:
        return lambda path: False
    matching = context.matching

    def denied(path: Path) -> bool:
        subject = Subject("Read", PermissionFacts(reads=(path,)), "", matching)
        return any(judge(rule, subject) is Match.YES for rule in rules)

    return denied


async def _recheck(
    agent: Agent, tool: Tool, input: Mapping[str, Any], comment: str | None, context: ToolContext
) -> Permitted:
    """What a person edited is what they approved; rules that deny still hold on it (B10)."""
    if problem := invalid(tool, input):
        raise ToolError(f"The user changed the input, but it cannot run: {problem}")
    decision = decide(_call(tool, await _facts(tool, input, context)), policy_context(agent))
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
    """A lasting answer holds for the whole session; one for a file is written too, and read back with the next change.
    What was allowed runs also when it cannot be written."""
    option = settled.option
    if option is None or not option.rules:
        return
    if settled.answer is not None and settled.answer.updated_input is not None:
        return  # the rule names the input that the person has just replaced
    agent.grants.add(option, agent.project.project.root)
    await _stored(agent.grants.save, option)
    destination = (settled.answer.destination if settled.answer else None) or option.destination
    if (path := agent.project.settings_file(destination)) is not None:
        await _stored(partial(store_rules, path, option), option)


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
    places = agent.project.destinations
    persistent: Destination | None = "localSettings" if "localSettings" in places else None
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
        options=_in_force(
            options_for(_call(tool, facts), policy_context(agent), persistent), agent.project.configuration.settings
        ),
        created_at=engine.clock.now(),
        destinations=places,
    )


def _in_force(options: tuple[PermissionOption, ...], settings: Settings) -> tuple[PermissionOption, ...]:
    """Where policy takes allow rules from managed settings alone, a lasting allow would be stored and never count."""
    if not settings.policy.managed_rules_only:
        return options
    return tuple(option for option in options if not (option.kind.allows and option.rules))


def _call(tool: Tool, facts: PermissionFacts) -> Call:
    return Call(tool.name, tool.kind, tool.read_only, facts, facts.agent or "")


def _refusal(settled: Settled, reason: str) -> str:
    if settled == NOBODY:
        return f"Not permitted: {reason}, and there is nobody who could be asked. Report this. {HOW_TO_GO_ON}"
    comment = settled.answer.comment if settled.answer else None
    said = f" and says: {comment}" if comment else ""
    return f"The user refused this call{said}. {HOW_TO_GO_ON}"

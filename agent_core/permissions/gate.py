"""One pipeline for every call of every agent (A25), and the decision again on whatever input comes out of it (B10).

PreToolUse hooks, deny rules, ask rules, mode, allow rules, PermissionRequest hooks, a person. What a hook allows is
allowed as by a rule of settings: rules that deny or ask, and what only a person decides, stand above it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from attrs import evolve, frozen

from agent_core.errors import ToolError
from agent_core.events import Outcome, PermissionAsked, PermissionSettled
from agent_core.hooks.dispatch import dispatch, hooks_of, observe
from agent_core.hooks.matching import NOTHING, Verdict
from agent_core.hooks.moments import Moment, permission_moment, tool_moment
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
    OptionKind,
    PermissionDecision,
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

NOTIFY_SECONDS = 6.0
"""How long an ask is open before Notification hooks are called."""
HOW_TO_GO_ON = "Don't look for another way to do the same: go on without it, or say what you need and why."


@frozen
class Permitted:
    """`input` is what was allowed; `edited` when a person changed it. `notes` of hooks are for the model."""

    input: Mapping[str, Any]
    comment: str | None = None
    edited: bool = False
    notes: tuple[str, ...] = ()


async def permit(
    agent: Agent, engine: Engine, tool: Tool, use_id: str, input: Mapping[str, Any], context: ToolContext
) -> Permitted:
    """ToolError with a reason for the model when the call may not run."""
    await agent.project.refresh_settings()
    if not hooks_of(agent, engine, "PreToolUse"):
        return await _decided(agent, engine, tool, use_id, input, context, NOTHING)
    speaks = speaks_of(agent, tool, input, context)
    said = await dispatch(agent, engine, tool_moment("PreToolUse", agent, tool.name, use_id, input, speaks))
    _check_stopped(said)
    if said.decision == "deny":
        raise ToolError(f"A PreToolUse hook refused this call{_because(said)}. {HOW_TO_GO_ON}")
    if said.input is not None and (problem := invalid(tool, said.input)):
        raise ToolError(f"A PreToolUse hook changed the input, but it cannot run: {problem}")
    final = input if said.input is None else said.input
    permitted = await _decided(agent, engine, tool, use_id, final, context, said)
    return evolve(permitted, notes=_notes(said))


async def _decided(
    agent: Agent, engine: Engine, tool: Tool, use_id: str, input: Mapping[str, Any], context: ToolContext, said: Verdict
) -> Permitted:
    facts = await _facts(tool, input, context)
    match _decide(agent, _call(tool, facts), said):
        case Allow():
            return Permitted(input)
        case Deny(_, reason):
            raise ToolError(f"Not permitted: {reason}. {HOW_TO_GO_ON}")
        case Ask(reason):
            request = _request(agent, engine, tool, use_id, input, facts, reason)
            by_hook = await _permit_by_hook(agent, engine, tool, request, context, said)
            if isinstance(by_hook, Permitted):
                return by_hook
            return await _permit_by_asking(agent, engine, tool, by_hook, context)


def _decide(agent: Agent, call: Call, said: Verdict) -> PermissionDecision:
    context = policy_context(agent)
    if said.decision == "allow":
        return decide(call, _allowing(context, call.tool))
    decision = decide(call, context)
    if said.decision != "ask" or not isinstance(decision, Allow):
        return decision
    reason = f"a PreToolUse hook asks{_because(said)}"
    if agent.mode is PermissionMode.DONT_ASK:
        return Deny("hook", f"the mode dontAsk never asks, and {reason}")
    return Ask(reason)


def _allowing(context: PolicyContext, tool: str) -> PolicyContext:
    """With what a hook allows, as a rule of its own: so it can be no stronger than one."""
    return evolve(context, rules=(*context.rules, PermissionRule(tool, None, "allow", "a hook")))


async def _permit_by_hook(
    agent: Agent, engine: Engine, tool: Tool, request: PermissionRequest, context: ToolContext, before: Verdict
) -> Permitted | PermissionRequest:
    """What PermissionRequest hooks decide in place of a person (CTX-3), else the request that a person must answer."""
    speaks = speaks_of(agent, tool, request.input, context)
    said = await dispatch(agent, engine, permission_moment(agent, request, speaks))
    _check_stopped(said)
    if said.decision == "deny":
        _settled_by_hook(agent, request, OptionKind.REJECT_ONCE, said)
        if said.interrupt:
            agent.end_by_hook(said.reason or "it refused a call")
        raise ToolError(f"A PermissionRequest hook refused this call{_because(said)}. {HOW_TO_GO_ON}")
    if said.decision != "allow" or before.decision == "ask":
        return request
    input = request.input if said.input is None else said.input
    if problem := invalid(tool, input):
        raise ToolError(f"A PermissionRequest hook changed the input, but it cannot run: {problem}")
    facts = await _facts(tool, input, context)
    match _decide(agent, _call(tool, facts), said):
        case Allow():
            await _store_grants(agent, said)
            _settled_by_hook(agent, request, OptionKind.ALLOW_ONCE, said)
            return Permitted(input)
        case Deny(_, reason):
            raise ToolError(f"A PermissionRequest hook changed the input, but {reason}. {HOW_TO_GO_ON}")
        case Ask(reason):
            return _request(agent, engine, tool, request.tool_use_id, input, facts, reason)


def _settled_by_hook(agent: Agent, request: PermissionRequest, outcome: OptionKind, said: Verdict) -> None:
    agent.record(PermissionAsked(request.id, request.title, request.tool_use_id))
    agent.record(PermissionSettled(request.id, request.title, outcome, "hook", said.reason or None))


def _check_stopped(said: Verdict) -> None:
    """`continue: false` ends the run, and the call that it was asked about does not begin."""
    if said.stop is not None:
        raise ToolError(f"A hook has ended the run: {said.stop}")


def _because(said: Verdict) -> str:
    return f": {said.reason}" if said.reason else ""


def _notes(said: Verdict) -> tuple[str, ...]:
    changed = (f"A PreToolUse hook changed the input of the call to: {dict(said.input)}",) if said.input else ()
    return (*changed, *(f"A PreToolUse hook adds:\n{text}" for text in said.context))


def speaks_of(
    agent: Agent, tool: Tool, input: Mapping[str, Any], context: ToolContext
) -> Callable[[PermissionRule], Awaitable[bool]]:
    """Whether a hook's `if` is about this call. Where that cannot be told the hook runs: it may be a guard."""

    async def speaks(rule: PermissionRule) -> bool:
        try:
            facts = await _facts(tool, input, context)
        except (ToolError, OSError):
            return True
        subject = Subject(tool.name, facts, facts.agent or "", policy_context(agent).matching)
        return judge(rule, subject) is not Match.NO

    return speaks


async def is_free(agent: Agent, tool: Tool, input: Mapping[str, Any], context: ToolContext) -> bool:
    """Whether the agent could make this call without anybody being asked."""
    return isinstance(decide(_call(tool, await _facts(tool, input, context)), policy_context(agent)), Allow)


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
    every = (*agent.grants.rules, *agent.project.configuration.settings.rules)
    rules = [rule for rule in every if rule.behavior == "deny" and rule.tool == "Read" and rule.specifier]
    if not rules:
        return lambda path: False
    matching = policy_context(agent).matching

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
        async with _told_of(agent, engine, request):
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


@asynccontextmanager
async def _told_of(agent: Agent, engine: Engine, request: PermissionRequest) -> AsyncIterator[None]:
    """Notification hooks learn of an ask that stays open for a while."""
    if not hooks_of(agent, engine, "Notification"):
        yield
        return
    fields = {"message": f"{request.agent_type} asks: {request.title}", "notification_type": "permission_prompt"}
    async with anyio.create_task_group() as group:
        group.start_soon(_notify, agent, engine, Moment("Notification", "permission_prompt", fields))
        yield
        group.cancel_scope.cancel()


async def _notify(agent: Agent, engine: Engine, moment: Moment) -> None:
    await anyio.sleep(NOTIFY_SECONDS)
    observe(agent, engine, moment)


async def _store(agent: Agent, settled: Settled) -> None:
    """A lasting answer holds for the whole session; one for a file is written too, and read back with the next change.
    What was allowed runs also when it cannot be written."""
    option = settled.option
    if option is None or not option.rules:
        return
    if settled.answer is not None and settled.answer.updated_input is not None:
        return  # the rule names the input that the person has just replaced
    await _keep(agent, option, (settled.answer.destination if settled.answer else None) or option.destination)


async def _store_grants(agent: Agent, said: Verdict) -> None:
    """What a PermissionRequest hook adds holds like a lasting answer; none widens what policy has closed."""
    closed = agent.project.configuration.settings.policy.managed_rules_only
    for grant in said.grants:
        if grant.behavior == "allow" and closed:
            continue
        kind = OptionKind.ALLOW_ALWAYS if grant.behavior == "allow" else OptionKind.REJECT_ALWAYS
        await _keep(agent, PermissionOption("hook", kind, "by a hook", grant.rules), grant.destination)


async def _keep(agent: Agent, option: PermissionOption, destination: Destination | None) -> None:
    agent.grants.add(option, agent.project.project.root)
    await _stored(agent.grants.save, option)
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
        destination_files={each: path for each in places if (path := agent.project.settings_file(each)) is not None},
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

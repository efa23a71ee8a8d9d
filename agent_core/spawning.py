"""From a request to a registered agent: choose, check, assemble. Nothing runs here; a refusal leaves nothing behind.

The order is that of the spec's section 1: kind, denied agents, tool pool, isolation.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from agent_core.agent import Agent
from agent_core.agent_listing import allowed_agents, with_guidance
from agent_core.background import background_disabled, forced, no_forks
from agent_core.conversations import MAIN_THREAD
from agent_core.definitions import FORK, AgentDefinition, Isolation
from agent_core.engine import Engine
from agent_core.errors import AgentDenied, InvalidParams, LimitReached, NotAllowed, UnknownAgentType
from agent_core.event_log import EventLog
from agent_core.events import AgentInfo, ForkBase, Started
from agent_core.guidance.builtin_agents import main_definition
from agent_core.hooked_isolation import replaces_git
from agent_core.ids import AgentId, ConversationId, new_agent_id
from agent_core.messages import Usage
from agent_core.model.aliases import exact_id, resolve_model, thinking_of
from agent_core.model.prompt import Json, Prompt
from agent_core.permissions.modes import child_mode, under_policy, wider_than_default
from agent_core.permissions.rules import names_tool
from agent_core.permissions.types import PermissionMode
from agent_core.project import ProjectState
from agent_core.settings import Settings
from agent_core.task import TaskStatus
from agent_core.text import shortened
from agent_core.tool import Place, Tool
from agent_core.tool_pool import assemble, for_child, render_tools
from agent_core.tools.agent import Agent as AgentTool
from agent_core.tools.builtin import builtin_tools
from agent_core.tools.talking import talking_tools
from agent_core.tools.tasks import TASKS


@frozen
class SpawnRequest:
    """One launch from an editor; `context` is text about what the user looks at, for the first message."""

    prompt: str
    cwd: Path
    description: str | None = None
    agent_type: str | None = None
    model: str | None = None
    permission_mode: PermissionMode | None = None
    isolation: Isolation | None = None
    background: bool = False
    fork: bool = False
    parent_id: str | None = None
    name: str | None = None
    max_turns: int | None = None
    context: str | None = None

    @property
    def task(self) -> str:
        """What the agent is told first."""
        return f"{self.context}\n\n{self.prompt}" if self.context else self.prompt


async def prepare_root(
    engine: Engine, project: ProjectState, request: SpawnRequest, parent: Agent | None = None
) -> Agent:
    """An agent of an editor, a root without `parent`, registered and not started. UserErrors name the field and what is
    allowed."""
    if parent is not None:
        refuse_too_deep(parent)
    definition = select(project, request.agent_type or "general-purpose")
    isolation = request.isolation or definition.isolation or "none"
    asked = request.permission_mode or definition_mode(project, definition) or PermissionMode.BUBBLE
    mode = _person_mode(engine, project, asked)
    await check_isolation(engine, project, isolation, request.cwd)
    return build(engine, project, definition, request, isolation, mode, parent)


def build(
    engine: Engine,
    project: ProjectState,
    definition: AgentDefinition,
    request: SpawnRequest,
    isolation: Isolation,
    mode: PermissionMode,
    parent: Agent | None = None,
    model: str | None = None,
    main: bool = False,
) -> Agent:
    """`model` is an exact id, where it is settled already."""
    settings = project.configuration.settings
    depth = parent.depth + 1 if parent else 0
    planning = mode is PermissionMode.PLAN
    tools = tools_for(project, depth, engine)
    if parent is not None:
        tools = for_child(tools, background=request.background, planning=planning)
    pool = with_guidance(assemble(definition, tools, settings.rules), engine, project, definition, depth)
    above = parent.model if parent else exact_id(settings.model, engine.env, planning=planning)
    if model is None:
        model = resolve_model(
            env=engine.env, call=request.model, definition=definition.model, parent=above, planning=planning
        )
    return register(
        engine,
        request,
        project=project,
        definition=definition,
        tools=pool,
        prompt=new_prompt(definition, pool, thinking(model, settings, main=main)),
        place=evolve(parent.place, cwd=request.cwd) if parent else Place(request.cwd),
        mode=mode,
        model=model,
        isolation=isolation,
        max_turns=request.max_turns or definition.max_turns,
        parent=parent,
    )


async def check_isolation(engine: Engine, project: ProjectState, isolation: Isolation, cwd: Path) -> None:
    """WorktreeFailed before anything is registered, when no worktree can be made of the checkout that `cwd` is in."""
    if isolation == "worktree" and not replaces_git(project, engine):
        await engine.checkouts.repository(cwd, unborn=project.configuration.settings.worktree_base == "snapshot")


def new_prompt(definition: AgentDefinition, pool: Mapping[str, Tool], thinking: Json | None = None) -> Prompt:
    system = {"type": "text", "text": definition.prompt or definition.description}
    return Prompt(render_tools(pool), (system,), thinking=thinking)


def thinking(model: str, settings: Settings, *, main: bool) -> Json | None:
    """CTX-5: of agents only when the setting says so; a fork has its parent's."""
    wanted = main or settings.thinking_for_agents
    return thinking_of(model, settings.thinking_tokens, settings.max_output_tokens) if wanted else None


def register(engine: Engine, request: SpawnRequest, **parts: Any) -> Agent:
    """`parts` are fields of Agent. The log's first event is the agent's `Started`."""
    agent_id = new_agent_id()
    project, parent = parts["project"], parts.get("parent")
    conversation = parent.log.state.info.conversation_id if parent else project.conversation
    files = project.files_of(agent_id, conversation)
    log = EventLog(agent_id, engine.clock, lambda event: engine.writer.put(log, files, event))
    agent = Agent(
        log=log,
        files=files,
        grants=project.grants_of(conversation),
        background=request.background,
        task=request.task,
        **parts,
    )
    agent.idle.set()
    head = keep_head(engine, agent)
    base = ForkBase(agent.parent.id, agent.parent.log.seq) if agent.fork and agent.parent else None
    log.append(Started(_info(agent, agent_id, request, conversation), head, base, request.task))
    return agent


def keep_head(engine: Engine, agent: Agent) -> str:
    """Tools and system prompt, stored once for all agents that have the same, so that a resumed agent sends the same
    bytes (TR-5, FK-3). The name of what is stored."""
    head, data = agent.prompt.head()
    engine.writer.store(agent.log, agent.files.head(head), data)
    return head


def build_child(
    engine: Engine, parent: Agent, definition: AgentDefinition, request: SpawnRequest, isolation: Isolation
) -> tuple[Agent, bool]:
    """The agent of an Agent call, and whether its mode was capped (PM-3). It shares nothing mutable (CTX-1)."""
    configuration = parent.project.configuration
    # What people have not trusted gets no agent that is freer than the one that they are talking to.
    default = configuration.settings.default_permission_mode if configuration.trusted else "inherit"
    above = under_policy(parent.mode, bypass_disabled=configuration.settings.policy.bypass_disabled)
    mode, capped = child_mode(above, request.permission_mode, definition_mode(parent.project, definition), default)
    return build(engine, parent.project, definition, request, isolation, mode, parent), capped


async def prepare_main(engine: Engine, project: ProjectState, request: SpawnRequest) -> Agent:
    """The main thread of a conversation, itself an agent (SEL-10: it may be a named one)."""
    settings = project.configuration.settings
    definition = select(project, settings.agent) if settings.agent else main_definition()
    asked = request.permission_mode or settings.default_mode or definition_mode(project, definition)
    isolation = request.isolation or definition.isolation or "none"
    await check_isolation(engine, project, isolation, request.cwd)
    mode = _person_mode(engine, project, asked or PermissionMode.DEFAULT)
    planning = mode is PermissionMode.PLAN
    model = exact_id(request.model or settings.model, engine.env, planning=planning)  # MD-1 speaks of sub-agents
    named = evolve(request, description=MAIN_THREAD)
    return build(engine, project, definition, named, isolation, mode, model=model, main=True)


def select(project: ProjectState, name: str) -> AgentDefinition:
    """SEL-3: the definition of that name, when no rule denies it."""
    refuse_denied(project, name)
    known = project.configuration.definitions
    definition = known.get(name)
    if definition is None:
        names = [each.name for each in known.active]
        nearest = difflib.get_close_matches(name, names, 1)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else "."
        raise UnknownAgentType(f"there is no agent type {name!r}{hint} Known are: {', '.join(names)}")
    return definition


def refuse_denied(project: ProjectState, name: str) -> None:
    """SEL-5: the one check for every way to start an agent, a further run included, so that none passes it by (B11)."""
    for rule in project.configuration.settings.rules:
        if rule.behavior == "deny" and names_tool(rule, "Agent") and rule.specifier in (None, name):
            raise AgentDenied(f"the agent {name!r} is denied by the rule {rule.text} in {rule.source}")


def select_for(parent: Agent, name: str) -> AgentDefinition:
    """As `select`, within the `Agent(a, b)` list of the direct caller where it is the main thread (SEL-10, B13)."""
    refuse_too_deep(parent)
    refuse_unlisted(parent, name)
    return select(parent.project, name)


def refuse_too_deep(parent: Agent) -> None:
    if parent.depth >= parent.project.configuration.settings.max_depth:
        raise LimitReached(f"agents at depth {parent.depth} launch no others (setting maxDepth)")


def refuse_unlisted(parent: Agent, name: str) -> None:
    """`Agent(a, b)` among the tools of the main thread limits what it, and its forks, may launch."""
    allowed = allowed_agents(parent.definition, parent.depth)
    if allowed is not None and name not in allowed:
        raise AgentDenied(f"{parent.definition.name} may launch {', '.join(allowed) or 'no agents'}, not {name!r}")


def tools_for(project: ProjectState, depth: int, engine: Engine) -> tuple[Tool, ...]:
    """TL-4: the Agent tool is there only above the depth limit."""
    own = (*builtin_tools(), *TASKS)
    if depth >= project.configuration.settings.max_depth:
        return own
    talking = talking_tools(background=not background_disabled(engine.env))
    return (AgentTool(absent=_absent(project, engine)), *own, *talking)


def _absent(project: ProjectState, engine: Engine) -> frozenset[str]:
    """IN-12: fields of the Agent tool whose feature is off here."""
    settings = project.configuration.settings
    off = {
        "isolation": not (project.project.top / ".git").exists(),
        "run_in_background": background_disabled(engine.env)
        or forced(settings, interactive=engine.interactive) is not None,
        "fork": no_forks(settings) is not None,
    }
    return frozenset(name for name, is_off in off.items() if is_off)


def definition_mode(project: ProjectState, definition: AgentDefinition) -> PermissionMode | None:
    """What the definition says; a folder that is not trusted cannot make its agents freer than `default`, and none gets
    what policy forbids (M4)."""
    mode = definition.permission_mode
    if mode is PermissionMode.BYPASS and project.configuration.settings.policy.bypass_disabled:
        return None
    if mode is None or definition.source != "project" or project.configuration.trusted or not wider_than_default(mode):
        return mode
    return PermissionMode.DEFAULT


def _person_mode(engine: Engine, project: ProjectState, mode: PermissionMode) -> PermissionMode:
    import os

    if mode is PermissionMode.BYPASS and project.configuration.settings.policy.bypass_disabled:
        raise NotAllowed(
            "permissionMode: bypassPermissions is forbidden by the setting permissions.disableBypassPermissionsMode; "
            "choose acceptEdits"
        )

    root = hasattr(os, "geteuid") and os.geteuid() == 0
    if mode is PermissionMode.BYPASS and root and engine.env.get("IS_SANDBOX") != "1":
        raise NotAllowed(
            "permissionMode: bypassPermissions is refused for the root user; set IS_SANDBOX=1 if this machine is a "
            "sandbox, or choose acceptEdits"
        )
    return mode


def _info(agent: Agent, agent_id: AgentId, request: SpawnRequest, conversation: ConversationId) -> AgentInfo:
    return AgentInfo(
        id=agent_id,
        root_id=agent.parent.log.state.info.root_id if agent.parent else agent_id,
        parent_id=agent.parent.id if agent.parent else None,
        depth=agent.depth,
        name=request.name,
        agent_type=FORK if agent.fork else agent.definition.name,
        description=request.description or shortened(request.prompt),
        status=TaskStatus.PENDING,
        stop_reason=None,
        background=request.background,
        fork=agent.fork,
        isolation=agent.isolation,
        worktree=None,
        model=agent.model,
        permission_mode=agent.mode,
        cwd=request.cwd,
        started_at=agent.log.clock.now(),
        ended_at=None,
        usage=Usage(),
        output_file=agent.files.output,
        pending_permissions=0,
        last_tool=None,
        result=None,
        error=None,
        conversation_id=conversation,
    )


def check_cwd(cwd: Path, folders: tuple[Path, ...]) -> Path:
    """`cwd` as given, when it is a folder inside one of the workspace's (IN-11)."""
    if not cwd.is_absolute():
        raise InvalidParams("cwd", f"must be an absolute path, not {str(cwd)!r}")
    if not cwd.is_dir():
        raise InvalidParams("cwd", f"{str(cwd)!r} is no folder")
    if not any(cwd.resolve().is_relative_to(folder.resolve()) for folder in folders):
        allowed = ", ".join(str(folder) for folder in folders) or "none"
        raise InvalidParams("cwd", f"{str(cwd)!r} is outside the folders of the workspace: {allowed}")
    return cwd

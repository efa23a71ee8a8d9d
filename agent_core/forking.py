"""Forks: agents that start with the whole conversation of their parent, and share its cached prefix (FK-1 to FK-8).

The identical prefix holds by construction: a fork takes over its parent's prompt fragments as they are, and says what
is its own (task, worktree) in the last block of one further message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from attrs import evolve

from agent_core.agent import Agent, user_message
from agent_core.background import no_forks
from agent_core.definitions import FORK, Isolation
from agent_core.engine import Engine
from agent_core.errors import InvalidParams, NotAllowed
from agent_core.guidance.builtin_agents import text
from agent_core.guidance.environment import starts_from
from agent_core.messages import Message, TextBlock, ToolResultBlock
from agent_core.model.prompt import Json
from agent_core.permissions.types import PermissionMode
from agent_core.spawning import SpawnRequest, check_isolation, refuse_denied, refuse_unlisted, register

PLACEHOLDER = "Fork started — processing in background"
TAG = "fork-boilerplate"
Kind = Literal["fork", "named"]


def kind_of(input: Mapping[str, Any], parent: Agent, engine: Engine) -> Kind:
    """SEL-2, SEL-4. NotAllowed and InvalidParams say why an explicit fork cannot be had."""
    settings = parent.project.configuration.settings
    named = input.get("subagent_type")
    if input.get("fork") or named == FORK:
        if why := no_forks(settings):
            raise NotAllowed(f"{why}; name an agent type")
        _refuse_fields(input)
        return "fork"
    omitted = named is None and input.get("fork") is None
    allowed = settings.forking == "on" and not no_forks(settings) and engine.interactive
    return "fork" if omitted and allowed and not is_fork(parent) else "named"


def _refuse_fields(input: Mapping[str, Any]) -> None:
    for field, what in (("model", "runs its parent's model"), ("cwd", "works where its parent works")):
        if field in input:
            raise InvalidParams(field, f"a fork {what}; leave {field} out")
    if input.get("subagent_type") not in (None, FORK):
        raise InvalidParams("subagent_type", "a fork is no other agent; leave subagent_type out, or fork")


def is_fork(agent: Agent) -> bool:
    """Two guards (FK-6): what it was started as, which survives a compaction, and the mark in its messages."""
    mark = f"<{TAG}>"
    return agent.fork or any(mark in block.get("text", "") for block in _texts(agent.prompt.messages))


def _texts(messages: tuple[Json, ...]) -> list[Json]:
    return [block for message in messages if message["role"] == "user" for block in message["content"]]


async def build_fork(engine: Engine, parent: Agent, request: SpawnRequest, isolation: Isolation) -> Agent:
    """Registered and not started. When it begins, it gets its own message (`first_message`)."""
    if is_fork(parent):
        raise NotAllowed("a fork starts no further fork; do the task yourself, or name an agent type")
    refuse_unlisted(parent, FORK)
    refuse_denied(parent.project, FORK)
    await check_isolation(engine, parent.project, isolation, parent.place.cwd)
    fork = register(
        engine,
        request,
        project=parent.project,
        definition=parent.definition,
        tools=parent.tools,
        prompt=parent.prompt,
        place=parent.place,
        mode=_mode(parent.mode),
        model=parent.model,
        isolation=isolation,
        max_turns=request.max_turns,
        fork=True,
        parent=parent,
    )
    fork.read_files = parent.read_files.copy()
    return fork


async def prepare_fork(engine: Engine, parent: Agent, request: SpawnRequest) -> Agent:
    """A fork that a person starts (protocol.md, agent/spawn), registered and not started."""
    if why := no_forks(parent.project.configuration.settings):
        raise NotAllowed(f"fork: {why}; leave fork out")
    given = {"model": request.model, "permissionMode": request.permission_mode}
    given["agentType"] = None if request.agent_type == FORK else request.agent_type
    for field, value in given.items():
        if value:
            raise InvalidParams(field, f"a fork takes it from its parent; leave {field} out")
    if not any(message["role"] == "assistant" for message in parent.prompt.messages):
        raise InvalidParams("parentId", "names an agent without a turn; send it a message first, or leave fork out")
    return await build_fork(engine, parent, evolve(request, cwd=parent.place.cwd), request.isolation or "none")


def _mode(parent: PermissionMode) -> PermissionMode:
    """FK-5; what the user has restricted stays restricted below (PM-3)."""
    return parent if parent in (PermissionMode.PLAN, PermissionMode.DONT_ASK) else PermissionMode.BUBBLE


def first_message(agent: Agent, task: str, today: str) -> Message:
    """A placeholder for each call of the parent's last turn, then the task, in the one block that no sibling shares."""
    calls = _open_calls(agent.prompt.messages)
    results = tuple(ToolResultBlock(call["id"], (TextBlock(PLACEHOLDER),)) for call in calls)
    parts = [text("fork"), *_notices(agent, today), f"Your task:\n{task}"]
    return user_message(*results, TextBlock(f"<{TAG}>\n" + "\n\n".join(parts) + f"\n</{TAG}>"))


def _open_calls(messages: tuple[Json, ...]) -> list[Json]:
    last = messages[-1]
    return [block for block in last["content"] if block["type"] == "tool_use"] if last["role"] == "assistant" else []


def _notices(agent: Agent, today: str) -> list[str]:
    """What is not as it was for the parent: told here, at the tail, never edited in (FK-7, CTX-4)."""
    notices = [f"Date: {today}"]
    if (own := agent.log.state.info.worktree) is not None and agent.parent is not None:
        before, now = agent.parent.place.cwd, agent.place.cwd
        notices.append(
            f"You work in your own worktree, {own.path}{f' (branch {own.branch})' if own.branch else ''}. Paths in the "
            f"conversation above that begin with {before} are now below {now}. Read a file again there before you "
            "change it. The user's checkout must not be written to."
        )
        if not own.by_hook:
            notices.append(starts_from(own))
    return notices

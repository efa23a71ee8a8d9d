"""The demo as a person lives it: start the real server, launch an agent in a worktree, answer its question, review,
apply. `scripted` brings its own project and model; `live` uses the person's."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from lsp_server.demo.checks import Checks, DemoFailed
from lsp_server.demo.connection import Connection
from lsp_server.demo.project import FIRST_ALONE
from lsp_server.demo.screen import NoAnswer, Screen

CAPABILITIES = {
    "general": {"positionEncodings": ["utf-16"]},
    "workspace": {"workspaceFolders": True},
    "experimental": {
        "agent": {
            "version": 1,
            "progress": True,
            "textDeltas": True,
            "permission": True,
            "question": True,
            "review": True,
        }
    },
}
NEEDED = ("agent/spawn", "agent/review", "agent/apply")


@frozen
class Task:
    """What the agent gets; `spawn` are further params of agent/spawn."""

    prompt: str
    description: str
    spawn: Mapping[str, Any] = field(factory=dict)


@define(eq=False)
class Demo:
    """One agent from its launch to the applied change. `checks` is None where nothing is known beforehand."""

    connection: Connection
    screen: Screen
    folder: Path
    yes: bool
    checks: Checks | None = None
    _root: str | None = None
    _names: dict[str, str] = field(factory=dict)
    _ended: asyncio.Future[Mapping[str, Any]] = field(factory=lambda: asyncio.get_running_loop().create_future())
    _early: list[Mapping[str, Any]] = field(factory=list)
    _one_question: asyncio.Lock = field(factory=asyncio.Lock)

    async def run(self, task: Task) -> None:
        """DemoFailed, NoAnswer, RequestFailed, ServerEnded."""
        if self.checks:
            await self.checks.before()
        await self._negotiate()
        agent = await self._work(task)
        if self.checks:
            self.checks.ended(agent)
        elif agent["status"] != "completed":
            raise DemoFailed(f"the agent ended as {agent['status']}: {agent.get('error') or agent.get('stopReason')}")
        applied = await self._review(agent["id"])
        if self.checks:
            await self.checks.after(applied)
        self.screen.show_sum(agent["usage"])

    # The server

    async def _negotiate(self) -> None:
        self.connection.notifications["agent/progress"] = self._progress
        self.connection.requests["agent/permission"] = self._permission
        self.connection.requests["agent/question"] = self._question
        folder = {"uri": self.folder.as_uri(), "name": self.folder.name}
        params = {
            "processId": os.getpid(),
            "rootUri": folder["uri"],
            "workspaceFolders": [folder],
            "capabilities": CAPABILITIES,
        }
        result = await self.connection.request("initialize", params)
        offered = (result["capabilities"].get("experimental") or {}).get("agent") or {}
        if offered.get("version") != 1:
            raise DemoFailed(f"the server offers version {offered.get('version')} of experimental.agent, expected 1")
        if missing := [method for method in NEEDED if method not in offered["methods"]]:
            raise DemoFailed(f"the server does not offer {', '.join(missing)}")
        self.connection.notify("initialized", {})

    async def _work(self, task: Task) -> Mapping[str, Any]:
        """The AgentInfo at the end of the agent's run."""
        params = {"prompt": task.prompt, "description": task.description, "isolation": "worktree", **task.spawn}
        agent = (await self.connection.request("agent/spawn", params))["agent"]
        self._root = agent["id"]
        for early in self._early:
            self._progress(early)
        place = f" in {agent['worktree']['path']}" if "worktree" in agent else ""
        self.screen.say(f"Agent {agent['agentType']} ({agent['model']}) works{place}", "dim")
        dead = asyncio.ensure_future(self.connection.ended())
        try:
            with self.screen:
                await asyncio.wait((self._ended, dead), return_when=asyncio.FIRST_COMPLETED)
            return self._ended.result() if self._ended.done() else dead.result()
        finally:
            dead.cancel()

    def _progress(self, params: Any) -> None:
        if self._root is None:  # the first events may come before the answer to agent/spawn
            self._early.append(params)
            return
        event, agent = params["event"], params["agentId"]
        if event["kind"] == "started" and agent != self._root:
            self._names[agent] = event["agent"]["agentType"]
        self.screen.show(event, self._names.get(agent, ""))
        if self.checks:
            self.checks.saw(event)
        if event["kind"] == "ended" and agent == self._root and not self._ended.done():
            self._ended.set_result(event["agent"])

    # Questions of the agent

    async def _permission(self, params: Any) -> Any:
        try:
            async with self._one_question:
                return await self._decide(params)
        except (DemoFailed, NoAnswer) as error:
            if not self._ended.done():
                self._ended.set_exception(error)
            return {"cancelled": True}

    async def _decide(self, params: Any) -> Any:
        options = params["options"]
        self.screen.show_request(params)
        if self.checks:
            await self.checks.before_answer(params)
        if self.yes:
            chosen = next((option for option in options if option["kind"] == "allowOnce"), None)
            if chosen is None:
                raise DemoFailed("the permission request has no option of kind allowOnce")
        else:
            chosen = options[await self.screen.choose("Your answer", [option["label"] for option in options])]
        if self.checks:
            self.checks.answered(params, chosen["kind"])
        self.screen.say(f"→ {chosen['label']}", "yellow")
        return {"optionId": chosen["id"]}

    async def _question(self, params: Any) -> Any:
        """Each question is answered by a choice; the last choice is not to answer."""
        answers = []
        async with self._one_question:
            for question in params["questions"]:
                labels = [option["label"] for option in question["options"]]
                chosen = await self.screen.choose(question["question"], [*labels, "No answer"])
                if chosen == len(labels):
                    return {"cancelled": True}
                answers.append([labels[chosen]])
        return {"answers": answers}

    # Review and apply

    async def _review(self, agent_id: str) -> list[str]:
        """Paths that were applied."""
        review = await self.connection.request("agent/review", {"agentId": agent_id})
        files = review["files"]
        if self.checks:
            self.checks.review(files)
        for change in files:
            self.screen.show_file(change)
        if not files:
            self.screen.say("The agent changed nothing.")
        done: list[str] = []
        for paths in await self._chosen([change["path"] for change in files]):
            await self._apply(agent_id, paths)
            done += paths
            if self.checks:
                self.checks.applied(done)
        return done

    async def _chosen(self, paths: Sequence[str]) -> list[list[str]]:
        """Which paths to apply, in steps."""
        if not paths:
            return []
        if self.yes:
            return [[FIRST_ALONE], [path for path in paths if path != FIRST_ALONE]]
        self.screen.say("")
        how = await self.screen.choose("Apply to your checkout", ["All files", "File by file", "Nothing"])
        if how != 1:
            return [list(paths)] if how == 0 else []
        return [[path] for path in paths if await self.screen.choose(f"Apply {path}", ["Yes", "No"]) == 0]

    async def _apply(self, agent_id: str, paths: list[str]) -> None:
        params = {"agentId": agent_id, "files": [{"path": path} for path in paths]}
        result = await self.connection.request("agent/apply", params)
        if result["conflicts"] or result.get("failureReason"):
            reasons = [f"{c['path']}: {c['reason']}" for c in result["conflicts"]] or [result["failureReason"]]
            raise DemoFailed(f"not applied: {'; '.join(reasons)}")
        done = sorted(item["path"] for item in result["applied"])
        if done != sorted(paths):
            raise DemoFailed(f"asked to apply {', '.join(sorted(paths))}, applied was {', '.join(done) or 'nothing'}")
        recover = f"; to undo it: git ref {result['recoverRef']}" if result.get("recoverRef") else ""
        self.screen.say(f"✓ applied {', '.join(done)}; open hunks left: {result['remaining']}{recover}", "green")

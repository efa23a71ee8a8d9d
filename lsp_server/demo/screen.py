"""What a person sees during the demo: progress while the agent works, questions, diffs, the sum at the end."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from lsp_server.demo.lines import Lines

MARKS = {"added": "A", "deleted": "D", "modified": "M", "renamed": "R", "copied": "C", "typechange": "T", "mode": "X"}
STYLES = {"+": "green", "-": "red", "@": "cyan"}


class NoAnswer(Exception):
    """Standard input ended while a question was open."""


class Screen:
    def __init__(self, console: Console, lines: Lines) -> None:
        self.console = console
        self._lines = lines
        self._started = time.monotonic()
        self._status = "starting"
        self._writing = ""
        self._calls: dict[str, Mapping[str, Any]] = {}
        self._active = False
        self._spinner = Spinner("dots")
        self._live = Live(console=console, get_renderable=self._now, refresh_per_second=8, transient=True)

    @property
    def elapsed(self) -> float:
        """Seconds since this object was made."""
        return time.monotonic() - self._started

    def _now(self) -> RenderableType:
        self._spinner.update(text=Text(f" {self._status} · {self.elapsed:.0f} s", style="dim"))
        return Group(Text(visible(self._writing)[-600:]), self._spinner) if self._writing else self._spinner

    def __enter__(self) -> Screen:
        """Within the block the present state and the elapsed time are shown at the bottom of a terminal."""
        self._active = self.console.is_terminal
        self._resume()
        return self

    def __exit__(self, *_: object) -> None:
        self._active = False
        self._live.stop()

    def _resume(self) -> None:
        if self._active:
            self._live.start()

    def say(self, text: str, style: str = "") -> None:
        self.console.print(Text(text, style=style))

    # Progress

    def show(self, event: Mapping[str, Any], name: str) -> None:
        """One event of agent/progress; `name` says whose it is, empty for the agent of the demo."""
        prefix = f"[{name}] " if name else ""
        match event:
            case {"kind": "text" | "thinking", "delta": delta}:
                self._writing += delta
            case {"kind": "message", "role": "assistant", "content": content}:
                self._writing = ""
                for text in [b["text"] for b in content if b["type"] == "text" and b["text"].strip()]:
                    self.say(f"{prefix}{visible(text)}")
            case {"kind": "status", "status": status}:
                self._status = f"{prefix}{status}"
            case {"kind": "toolCall", "title": title}:
                self._calls[event["toolCallId"]] = event
                self._status = f"{prefix}{visible(title)}"
                self.say(f"{prefix}● {visible(title)}", "bold")
            case {"kind": "toolUpdate", "status": "completed" | "failed" as status}:
                self._call_ended(event, self._calls.pop(event["toolCallId"], {}), status)
            case {"kind": "retry", "attempt": attempt, "reason": reason}:
                self.say(f"{prefix}retry {attempt}: {visible(reason)}", "yellow")
            case _:
                pass

    def _call_ended(self, event: Mapping[str, Any], call: Mapping[str, Any], status: str) -> None:
        """The output is of interest where something ran or failed."""
        took = f" ({event['durationMs']} ms)" if "durationMs" in event else ""
        mark, style = ("✓", "green") if status == "completed" else ("✗", "red")
        self.say(f"  {mark} {visible(call.get('title', status))}{took}", style)
        if status == "failed" or call.get("toolKind") == "execute":
            for line in visible(str(event.get("output") or "")).strip().splitlines()[-5:]:
                self.say(f"    {line[:110]}", "dim")

    # Questions

    async def choose(self, question: str, choices: Sequence[str]) -> int:
        """Index of the chosen one; no choice is the default, it asks until there is an answer. NoAnswer."""
        self._live.stop()
        for number, choice in enumerate(choices, 1):
            self.say(f"  {number}  {visible(choice)}")
        answer = ""
        while not (answer.isdecimal() and 1 <= int(answer) <= len(choices)):
            answer = await self.read(f"{question} [1-{len(choices)}]: ")
        self._resume()
        return int(answer) - 1

    async def read(self, prompt: str) -> str:
        """A line. NoAnswer when standard input has ended."""
        self.console.print(Text(prompt, style="bold"), end="")
        line = await self._lines.next()
        if line is None:
            self.console.print()
            raise NoAnswer("standard input ended before the question was answered")
        return line

    def show_request(self, params: Mapping[str, Any]) -> None:
        """A permission request: who asks, what would happen and where."""
        agent, detail = params["agent"], params.get("detail") or {}
        table = Table.grid(padding=(0, 1))
        table.add_column()
        table.add_column(overflow="fold")
        rows = {
            "agent": f"{agent['agentType']} ({agent['description']})",
            "tool": params["title"],
            "command": detail.get("command"),
            "directory": detail.get("cwd"),
            "address": detail.get("url"),
            "reason": params["reason"],
        }
        for name, value in rows.items():
            if value:
                table.add_row(Text(name, style="dim"), Text(visible(value)))
        self._live.stop()
        self.console.print(Panel(table, title="Permission", border_style="yellow", expand=False))
        self.show_diff(str(detail.get("diff") or ""))
        self._resume()

    # Review

    def show_diff(self, text: str) -> None:
        for line in text.splitlines():
            self.say(visible(line), STYLES.get(line[:1], "dim"))

    def show_file(self, change: Mapping[str, Any]) -> None:
        """One FileChange of a review with its coloured hunks."""
        name = f"{change['oldPath']} → {change['path']}" if change.get("oldPath") else change["path"]
        self.say(f"\n{MARKS.get(change['status'], '?')} {visible(name)}  ({change['status']})", "bold")
        for note in change["notes"]:
            self.say(f"  {visible(note)}", "yellow")
        if change.get("conflict"):
            self.say(f"  conflict: {visible(change['conflict']['reason'])}", "red")
        for hunk in change["hunks"]:
            self.say(visible(hunk["header"]), "cyan")
            self.show_diff("\n".join(line for line in hunk["text"].splitlines() if not line.startswith("@@")))

    def show_sum(self, usage: Mapping[str, Any]) -> None:
        read = usage["cacheReadTokens"]
        whole = usage["inputTokens"] + read + usage["cacheCreationTokens"]
        share = f"{100 * read / whole:.0f} %" if whole else "-"
        cost = f", {usage['costUsd']:.4f} USD" if "costUsd" in usage else ""
        self.say(
            f"\n{usage['turns']} turns, {usage['toolUses']} tool uses, {whole} tokens in ({share} from the cache), "
            f"{usage['outputTokens']} tokens out{cost}; {self.elapsed:.1f} s",
            "dim",
        )


def visible(text: str) -> str:
    """Characters that a terminal would hide, reorder or obey are written out."""
    return "".join(char if char.isprintable() or char in "\n\t" else f"\\u{ord(char):04x}" for char in text)

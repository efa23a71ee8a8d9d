"""A real Neovim with the plugin, as a person uses it: keys and commands in, the screen out. The server is the real one,
found on PATH as the plugin's default says; the model is scripted.

    editor.command("Agent spawn go")
    editor.wait_for("NEEDS YOU")            # on the screen
    editor.keys("1")
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pynvim
from attrs import define, field

from lsp_server.demo.model_server import ModelServer
from lsp_server.demo.script import Conversation, Script
from tests.editors.nvim_screen import Screen

PLUGIN = Path(__file__).parents[2] / "editors" / "nvim"
NVIM = Path(sys.executable).parent / "nvim"
SIZE = (100, 30)
PATIENCE = 60.0
"""Seconds that anything may take; the machine may be busy."""
PICTURES = os.environ.get("AGENT_LS_PICTURES")
"""A folder into which `picture` writes screens, to be looked at."""


class Model:
    """The scripted model in a thread of its own: the tests and Neovim's client block."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.server: ModelServer = self._run(self._open())

    async def _open(self) -> ModelServer:
        return await ModelServer(Script(())).__aenter__()

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    def says(self, *conversations: Conversation) -> None:
        async def put() -> None:
            self.server.set_script(Script(conversations), reset=True)

        self._run(put())

    def release(self, gate: str) -> None:
        self._loop.call_soon_threadsafe(lambda: self.server.gate(gate).set())

    @property
    def url(self) -> str:
        return self.server.url

    def told(self) -> str:
        """Everything that was ever sent to the model."""
        return "\n".join(entry.body.decode() for entry in self.server.requests())

    def close(self) -> list[str]:
        self._run(self.server.__aexit__())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
        return self.server.problems


@define(eq=False)
class Editor:
    nvim: Any
    process: int
    screen_now: Screen = field(factory=Screen)
    quitted: bool = False

    @classmethod
    def start(
        cls,
        env: Mapping[str, str],
        cwd: Path,
        size: tuple[int, int] = SIZE,
        *files: str,
        before: tuple[str, ...] = (),
    ) -> Editor:
        variables = [f"{name}={value}" for name, value in env.items()]
        commands = [part for command in (f"set rtp^={PLUGIN}", *before) for part in ("--cmd", command)]
        nvim_command = [str(NVIM), "--embed", "--headless", "--clean", "-n", *commands, *files]
        nvim = pynvim.attach("child", argv=["env", "-i", "-C", str(cwd), *variables, *nvim_command])
        nvim.ui_attach(*size, rgb=True, ext_linegrid=True)
        return cls(nvim, int(nvim.funcs.getpid()))

    def reset(self, cwd: Path) -> None:
        """As if just started in that folder, but for the server."""
        self.nvim.input("<C-\\><C-n>")
        self.nvim.ui_try_resize(*SIZE)
        for command in ("fclose!", "tabonly!", "only!", "%bwipeout!", "messages clear", f"cd {cwd}"):
            self.nvim.command(f"silent! {command}")
        self.lua("require('agent_ls').setup()")

    def stop_all(self) -> None:
        """Ends what still runs."""
        self.lua("""
            local agents, client = require("agent_ls.agents"), require("agent_ls.client")
            if not client.running() then return end
            for _, info in ipairs(agents.all(agents.is_live)) do
                client.request("stop", { agentId = info.id }, function() end, function() end)
            end
            vim.wait(10000, function() return #agents.all(agents.is_live) == 0 end, 20)
        """)

    def resize(self, width: int, height: int) -> None:
        self.nvim.ui_try_resize(width, height)

    # In

    def command(self, text: str) -> None:
        self.nvim.command(text)

    def keys(self, text: str, settle: float = 0.0) -> None:
        """As typed; `settle` seconds are waited first, as a person who reads does."""
        time.sleep(settle)
        self.nvim.input(text)

    @contextlib.contextmanager
    def too_early(self) -> Iterator[None]:
        """In here every key comes within the guard time, however slow the machine is."""
        self.lua("require('agent_ls').setup({ guard_ms = 1000000 })")
        yield
        self.lua("require('agent_ls').setup()")

    def answer(self, key: str) -> None:
        """A key for the question that is open: after its guard time."""
        self.keys(key, settle=0.55)

    def lua(self, code: str, *args: Any) -> Any:
        return self.nvim.exec_lua(code, *args)

    def edit(self, path: str) -> int:
        self.nvim.command(f"edit {path}")
        return int(self.nvim.current.buffer.number)

    # Out

    @property
    def buffer(self) -> list[str]:
        """The lines of the current buffer."""
        return list(self.nvim.current.buffer[:])

    def lines(self, number: int) -> list[str]:
        return list(self.nvim.buffers[number][:])

    @property
    def mode(self) -> str:
        return str(self.nvim.api.get_mode()["mode"])

    @property
    def where(self) -> tuple[int, int, tuple[int, int]]:
        """Tab, window and cursor: what must not move by itself."""
        nvim = self.nvim
        window = nvim.current.window
        return nvim.current.tabpage.number, window.handle, tuple(window.cursor)

    def screen(self) -> Screen:
        channel = self.nvim.channel_id
        self.nvim.lua.vim.cmd("redraw")
        self.nvim.call("rpcnotify", channel, "drawn")
        while (message := self.nvim.next_message())[1] != "drawn":
            if message[1] == "redraw":
                self.screen_now.feed(message[2])
        return self.screen_now

    @property
    def text(self) -> str:
        return self.screen().text

    def wait_until(self, holds: Callable[[], Any], what: str = "", timeout: float = PATIENCE) -> Any:
        end = time.monotonic() + timeout
        while not (found := holds()):
            if time.monotonic() > end:
                messages = self.nvim.command_output("messages")
                raise AssertionError(f"not in {timeout:g} s: {what}\n{self.text}\nmessages:\n{messages}")
            time.sleep(0.02)
        return found

    def wait_for(self, *texts: str, timeout: float = PATIENCE) -> str:
        """The screen, once it shows all these texts."""
        self.wait_until(lambda: all(text in self.text for text in texts), f"{texts} on the screen", timeout)
        return self.screen_now.text

    def wait_gone(self, text: str, timeout: float = PATIENCE) -> str:
        self.wait_until(lambda: text not in self.text, f"{text} still on the screen", timeout)
        return self.screen_now.text

    def messages(self) -> str:
        return str(self.nvim.command_output("messages"))

    def picture(self, name: str) -> None:
        if not PICTURES:
            return
        screen = self.screen()
        kept = {
            "cells": screen.cells,
            "highlights": screen.highlights,
            "colors": screen.colors,
            "cursor": screen.cursor,
        }
        Path(PICTURES, f"{name}.json").write_text(json.dumps(kept), encoding="utf-8")

    def agents(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.lua("return require('agent_ls.agents').all()")
        return found

    def status(self) -> str:
        return str(self.lua("return require('agent_ls').statusline()"))

    def quit(self) -> None:
        """Its server ends with it."""
        if self.quitted:
            return
        self.quitted = True
        with contextlib.suppress(OSError, EOFError):  # the answer is the end of the process
            self.nvim.command("qall!")
        self.nvim.close()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)
        with contextlib.suppress(OSError, EOFError, AssertionError):  # pynvim must notice, or leaves pipes open
            self.nvim.command("echo")
        self.nvim.close()

    @contextlib.contextmanager
    def limited(self, seconds: float) -> Iterator[None]:
        """A Neovim that waits for Enter answers nothing: after that time it is killed, and the call fails."""
        timer = threading.Timer(seconds, os.kill, (self.process, signal.SIGKILL))
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()

"""The real VS Code with the packed extension, as a person uses it: its own server and web workbench, in Chromium.

    window = code.open(folder)
    window.command("Agent: Launch…")
    window.row("needs you")                # waits for a row of a tree
    window.sees(locator)                   # is all of it there, within the window and under nothing else?

Nothing sleeps: all waits for what the person would see. A click on what is drawn anew in that moment is lost; what a
person would then do again is done again, and only that. A missing editor or browser fails.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import define, field
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Playwright, expect
from playwright.sync_api import Error as Unreached

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "editors" / "vscode"
VERSION = "1.139.1"
HOME = ROOT / ".tools" / f"vscode-{VERSION}"
NODE = HOME / "node_modules" / ".bin" / "node"
MAIN = HOME / "server" / "out" / "server-main.js"
PICTURES = os.environ.get("AGENT_LS_PICTURES")
"""A folder into which `picture` writes screens, to be looked at."""
SIZE = (1280, 800)
PATIENCE = 60_000
"""Milliseconds that anything may take; the machine may be busy."""
AGAIN = 5_000
"""Milliseconds after which a person would click again."""
expect.set_options(timeout=PATIENCE)

_SETTINGS = {
    "workbench.startupEditor": "none",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.reduceMotion": "on",
    "workbench.tips.enabled": False,
    "chat.disableAIFeatures": True,
    "security.workspace.trust.enabled": False,
    "telemetry.telemetryLevel": "off",
    "extensions.autoUpdate": False,
    "extensions.autoCheckUpdates": False,
    "remote.autoForwardPorts": False,
    "files.autoSave": "off",
    "window.commandCenter": False,
    "git.openRepositoryInParentFolders": "never",
    "git.autofetch": False,
    "editor.quickSuggestions": {"other": "off", "comments": "off", "strings": "off"},
    "editor.acceptSuggestionOnEnter": "off",
    # Not by PATH: VS Code takes that from a login shell.
    "agentLs.command": [str(Path(sys.executable).parent / "agent-ls"), "serve"],
}
_BROWSER = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# What is wrong with how an element is seen; empty when nothing is.
_SEEN = """element => {
  const box = element.getBoundingClientRect();
  const faults = [];
  if (box.width < 1 || box.height < 1) return ["it has no size"];
  const within = (left, top, right, bottom) =>
    box.left >= left - 1 && box.top >= top - 1 && box.right <= right + 1 && box.bottom <= bottom + 1;
  if (!within(0, 0, innerWidth, innerHeight)) faults.push("it reaches out of the window");
  if (element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).overflowX !== "visible")
    faults.push("its text is cut off");
  for (let up = element.parentElement; up && up !== document.body; up = up.parentElement) {
    const style = getComputedStyle(up), outer = up.getBoundingClientRect();
    if (style.overflowX === "visible" && style.overflowY === "visible" || !outer.width) continue;
    if (!within(outer.left, outer.top, outer.right, outer.bottom))
      faults.push(`it is cut off by ${up.className}`);
  }
  for (const [x, y] of [[0.5, 0.5], [0.02, 0.5], [0.98, 0.5]]) {
    const top = document.elementFromPoint(box.left + box.width * x, box.top + box.height * y);
    if (!top || !(element.contains(top) || top.contains(element)))
      faults.push(`something lies over it: ${top && top.className}`);
  }
  return faults;
}"""
_LINES = """() => [...document.querySelectorAll(".editor-group-container.active .editor-instance .view-line")]
  .map(line => [line.getBoundingClientRect().top, line.textContent])"""


def missing() -> str | None:
    """What the tests need and do not find."""
    if not MAIN.exists() or not NODE.exists():
        return f"VS Code {VERSION} is not installed: run `make system`"
    return None if shutil.which("chromium") else "chromium is not installed: run `make system`"


def package(place: Path) -> Path:
    """The extension as `make vsix` makes it."""
    found = place / "agent-language-server.vsix"
    command = ["npm", "run", "--silent", "vsix", "--", "--out", str(found)]
    done = subprocess.run(command, cwd=EXTENSION, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return found


@define(eq=False)
class Code:
    """One server for many windows, each in a folder of its own."""

    place: Path
    env: Mapping[str, str]
    playwright: Playwright
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    browser: Browser | None = None
    context: BrowserContext | None = None
    windows: list[Window] = field(factory=list)

    def start(self, vsix: Path) -> None:
        assert missing() is None, missing()
        self.settings()
        done = self._run("--install-extension", str(vsix))
        assert done.returncode == 0, done.stdout + done.stderr
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        options = ["--host", "127.0.0.1", "--port", str(self.port), "--without-connection-token"]
        options += ["--telemetry-level", "off", "--reconnection-grace-time", "2"]
        with (self.place / "code.log").open("wb") as log:
            self.process = subprocess.Popen(
                [*self._command(), *options],
                env=self.env,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        until(self._listens, "VS Code listens")
        self.browser = self.playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(_BROWSER))
        # One for all windows: the second one finds VS Code's code in the cache.
        self.context = self.browser.new_context(reduced_motion="reduce", device_scale_factor=1)
        self.context.set_default_timeout(PATIENCE)

    def settings(self, changed: Mapping[str, Any] | None = None) -> None:
        """Those of the person and of the machine: the server's command is one of the latter."""
        for path in (self.place / "user" / "User", self.place / "user" / "Machine"):
            path.mkdir(parents=True, exist_ok=True)
            # At once: VS Code must not read half of it.
            whole = path / "settings.new"
            whole.write_text(json.dumps({**_SETTINGS, **(changed or {})}), encoding="utf-8")
            whole.replace(path / "settings.json")

    def _command(self) -> list[str]:
        folders = {"user-data-dir": "user", "server-data-dir": "server", "extensions-dir": "extensions"}
        options = [part for name, folder in folders.items() for part in (f"--{name}", str(self.place / folder))]
        return [str(NODE), str(MAIN), *options, "--accept-server-license-terms"]

    def _run(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*self._command(), *args], env=self.env, capture_output=True, text=True, check=False)

    def _listens(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.place / "code.log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def open(self, folder: Path, size: tuple[int, int] = SIZE) -> Window:
        assert self.context is not None
        window = Window(self.context.new_page(), folder)
        window.page.set_viewport_size({"width": size[0], "height": size[1]})
        self.windows.append(window)
        window.page.goto(f"http://127.0.0.1:{self.port}/?folder={folder}")
        window.status.wait_for()
        return window

    def close_windows(self, keep: int = 0) -> None:
        while len(self.windows) > keep:
            self.windows.pop().page.close()

    def close(self) -> None:
        self.close_windows()
        if self.browser is not None:
            self.browser.close()
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(10)


@define(eq=False)
class Window:
    page: Page
    folder: Path

    # In

    @property
    def entry(self) -> Locator:
        """Where one types in the palette, and in the boxes that ask for something."""
        return self.page.locator(".quick-input-widget input").first

    def offered(self, text: str) -> Locator:
        """A row of the palette, or of another list to pick from."""
        return self.page.locator(".quick-input-list .monaco-list-row").filter(has_text=text).first

    def asks(self, title: str) -> Locator:
        """The input box of that title."""
        return self.page.locator(".quick-input-widget").filter(has_text=title)

    def command(self, title: str, effect: Locator | None = None) -> None:
        """By the palette, which knows only the commands that were there when it opened: so it may be opened again.

        With an `effect` to be seen it is also given again when that does not come.
        """
        self._quick("F1", f">{title}", title, effect)

    def _quick(self, key: str, text: str, choice: str, effect: Locator | None = None) -> None:
        def choose() -> None:
            if self.entry.is_visible():
                self.page.keyboard.press("Escape")
            self.page.keyboard.press(key)
            self.entry.fill(text, timeout=AGAIN)
            self.offered(choice).click(timeout=AGAIN)

        def chosen() -> bool:
            gone = not (self.entry.is_visible() and self.entry.input_value(timeout=AGAIN) == text)
            return gone and (effect is None or effect.is_visible())

        again(choose, chosen, lambda: f"{choice!r} from {key}")

    def fill(self, title: str, text: str) -> None:
        box = self.asks(title)

        def write() -> None:
            if box.is_visible():
                box.locator("input").first.fill(text, timeout=AGAIN)
                box.locator("input").first.press("Enter", timeout=AGAIN)

        expect(box).to_be_visible()
        again(write, lambda: not box.is_visible(), f"{title!r} takes {text!r}")

    def pick(self, text: str) -> None:
        row = self.offered(text)
        expect(row).to_be_visible()
        again(lambda: row.click(timeout=AGAIN), lambda: not row.is_visible(), f"{text!r} is picked")

    def launch(self, prompt: str, where: str = "In a worktree of its own") -> None:
        self.command("Agent: Launch…", self.asks("Launch an agent"))
        self.fill("Launch an agent", prompt)
        self.pick(where)

    def edit(self, path: str) -> None:
        """Opens a file, and has the focus in it."""
        self._quick("Control+p", path, path, self.tab(path))
        expect(self.focused).to_be_visible()

    def goto_line(self, line: int) -> None:
        place = self.page.locator(".statusbar-item").filter(has_text=f"Ln {line}, Col 1").first
        self._quick("Control+g", f":{line}", f"line {line}", place)
        expect(self.focused).to_be_visible()

    def to_tab(self, name: str) -> None:
        tab = self.page.locator(".editor-group-container.active .tab.active").filter(has_text=name).first
        again(lambda: self.tab(name).click(timeout=AGAIN), tab.is_visible, f"the tab {name!r} is in front")

    def show_agents(self) -> None:
        """The view; a second click would hide it again."""
        view = self.view("Agents")

        def show() -> None:
            if not view.is_visible():
                self.page.locator('.activitybar [aria-label^="Agents"]').first.click(timeout=AGAIN)

        again(show, view.is_visible, "the view of agents")

    def action(self, row: Locator, title: str, effect: Locator) -> None:
        """An inline action of a row, shown when the pointer is on it, until its `effect` is seen."""

        def act() -> None:
            row.hover(timeout=AGAIN)
            row.locator(f'.action-label[aria-label^="{title}"]').first.click(timeout=AGAIN)

        again(act, effect.is_visible, lambda: f"{title!r} has its effect; the tree shows {self.rows()}")

    def opens(self, row: Locator, *texts: str) -> None:
        """A click on a row, which shows these texts in the editor."""
        again(
            lambda: row.click(timeout=AGAIN),
            lambda: self.shows(*texts),
            lambda: f"{texts} in the editor, which shows\n{self.text()}",
        )

    def answer(self, text: str) -> None:
        """A link of the open question, clicked until another question, or none, is open. It appears when it counts."""
        expect(self.lens(text)).to_be_visible()
        asked = self.question()

        def click() -> None:
            if self.question() == asked:  # never the link of the next one
                self.lens(text).click(timeout=AGAIN)

        again(click, lambda: self.question() != asked, lambda: f"{text!r} answers\n{self.text()}")

    def comment(self, path: str, line: int, text: str) -> None:
        """On a line of the agent's side, in the view of all changes."""
        side = self.page.locator(".multiDiffEntry").filter(has_text=path).locator(".editor.modified")
        number = self.page.locator(".line-numbers").filter(has_text=re.compile(f"^{line}$"))
        margin = side.locator(".margin-view-overlays > div").filter(has=number)
        plus = margin.locator(".comment-range-glyph").first
        form = self.page.locator(".review-widget .comment-form-container.expand").first

        def begin() -> None:
            if not form.is_visible():
                margin.hover(timeout=AGAIN)
                plus.click(timeout=AGAIN)

        def write() -> None:
            if form.is_visible():
                form.locator(".monaco-editor").click(timeout=AGAIN)
                self.page.keyboard.press("Control+a")
                self.page.keyboard.type(text)
                form.get_by_text("Add Comment", exact=True).click(timeout=AGAIN)

        again(begin, form.is_visible, f"a comment on line {line} of {path} begins")
        added = self.page.locator(".review-widget .review-comment").filter(has_text=text).first
        again(write, added.is_visible, f"{text!r} is a comment")

    def toast(self, text: str, button: str, effect: Locator) -> None:
        """A button of a message. One that has gone by itself is among all messages."""

        def press() -> None:
            place = self.page.locator(".notification-toast, .notifications-center").filter(has_text=text)
            if not place.first.is_visible():
                self.command("Notifications: Show Notifications")
            row = self.page.locator(".notification-list-item").filter(has_text=text).first
            row.get_by_text(button, exact=True).click(timeout=AGAIN)

        again(press, effect.is_visible, f"{button!r} of the message {text!r}")

    # Out

    @property
    def focused(self) -> Locator:
        """The active editor, when keys go to it."""
        return self.page.locator(".editor-group-container.active .monaco-editor.focused").first

    @property
    def status(self) -> Locator:
        return self.page.locator(".statusbar-item").filter(has_text=re.compile("Agents")).first

    def status_is(self, text: str) -> None:
        expect(self.status).to_contain_text(text, timeout=PATIENCE)

    def view(self, title: str) -> Locator:
        return self.page.locator(".pane").filter(has=self.page.locator(f'.pane-header[aria-label^="{title}"]'))

    def row(self, *texts: str) -> Locator:
        found = self.page.locator(".pane-body .monaco-list-row")
        for text in texts:
            found = found.filter(has_text=text)
        return found

    def tab(self, name: str) -> Locator:
        return self.page.locator(".tab").filter(has_text=name).first

    def lens(self, text: str) -> Locator:
        return self.page.locator(".codelens-decoration a").filter(has_text=text).first

    @property
    def badge(self) -> Locator:
        return self.page.locator('.activitybar .action-item:has([aria-label^="Agents"]) .badge-content').first

    def text(self) -> str:
        """The lines of the active editor that are in sight."""
        lines: list[tuple[float, str]] = self.page.evaluate(_LINES)
        shown = (
            text.replace("\u00a0", " ").replace("\u200b", "") for _, text in sorted(lines, key=lambda line: line[0])
        )
        return "\n".join(shown)

    def question(self) -> str:
        """What the open question asks, without how many there are."""
        return self.text().partition("Your answer:")[0].partition("\n")[2]

    def rows(self) -> list[str]:
        """The rows of the trees that are in sight."""
        return self.row().all_inner_texts()

    def shows(self, *texts: str) -> bool:
        found = self.text()
        return all(text in found for text in texts)

    def wait_text(self, *texts: str, seconds: float = PATIENCE / 1000) -> str:
        until(
            lambda: self.shows(*texts),
            lambda: f"{texts} in the editor, which shows\n{self.text()}",
            seconds,
        )
        return self.text()

    def sees(self, element: Locator) -> None:
        """All of it is in sight: within the window, not cut off, and nothing lies over it."""
        expect(element).to_be_visible(timeout=PATIENCE)
        faults: list[str] = []

        def seen() -> bool:
            faults[:] = element.evaluate(_SEEN)
            return not faults

        until(seen, lambda: f"{element}: {faults}", 10)

    def apart(self, *elements: Locator) -> None:
        """No two of them lie over one another."""
        boxes: list[Any] = []

        def placed() -> bool:
            boxes[:] = [element.bounding_box() for element in elements]
            return None not in boxes

        until(placed, lambda: f"{elements}: drawn anew all the time", 10)
        for index, one in enumerate(boxes):
            for other in boxes[index + 1 :]:
                over = (
                    min(one["x"] + one["width"], other["x"] + other["width"]) - max(one["x"], other["x"]) > 1
                    and min(one["y"] + one["height"], other["y"] + other["height"]) - max(one["y"], other["y"]) > 1
                )
                assert not over, (one, other)

    def picture(self, name: str) -> None:
        if PICTURES:
            self.page.screenshot(path=str(Path(PICTURES, f"{name}.png")))


def until(holds: Callable[[], Any], what: str | Callable[[], str], seconds: float = PATIENCE / 1000) -> None:
    """For what no locator can wait for."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not in {seconds:g} s: {what if isinstance(what, str) else what()}"
        time.sleep(0.05)


def again(act: Callable[[], None], done: Callable[[], bool], what: str | Callable[[], str]) -> None:
    """Acts, and acts again as long as nothing came of it. Only for what may be done twice."""
    end = time.monotonic() + PATIENCE / 1000
    while True:
        acted = True
        try:
            act()
        except Unreached:
            acted = False
            if time.monotonic() > end:
                raise
        try:
            return until(done, what, AGAIN / 1000 if acted else 0.2)
        except AssertionError:
            if time.monotonic() > end:
                raise

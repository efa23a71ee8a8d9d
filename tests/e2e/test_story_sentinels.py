"""What must not run does not run: every hostile command of the corpus goes through the whole server, where bash itself
would betray each start of it.

Bash reads BASH_ENV before the command, whatever that is: WATCH writes the command down and ends bash, so that nothing
could happen even if the server let one through.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lsp_server.demo.script import say, use
from tests.e2e.desk import CLIENTS, Desk, option
from tests.git_helpers import Repo
from tests.shell_corpus import Entry, entries, furnish, rule_sets

pytestmark = pytest.mark.anyio

SENTINELS = [entry for entry in entries() if entry.sentinel]
TURN = 50
WATCH = 'printf "%s" "$BASH_EXECUTION_STRING" >"$BASH_MARKS/$$"\nexit 7\n'


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    folder = tmp_path / "marks"
    folder.mkdir()
    (tmp_path / "watch.sh").write_text(WATCH)
    return folder


@pytest.fixture
async def watched(server, model, workspace: Path, marks: Path) -> Desk:
    """A desk whose every bash leaves a mark; its folder is the one of the corpus."""
    furnish(workspace)
    client = await server(env={"BASH_ENV": str(marks.parent / "watch.sh"), "BASH_MARKS": str(marks)})
    known = CLIENTS["trusted"]
    await client.initialize(root=workspace, capabilities=known.capabilities, options=known.options)
    return Desk(client, model, Repo(workspace))


def ran(marks: Path) -> list[str]:
    return sorted(path.read_text() for path in marks.iterdir())


def in_turns(commands: list[str]) -> Iterator[Any]:
    for at in range(0, len(commands), TURN):
        yield say(*(use("Bash", command=command) for command in commands[at : at + TURN]))


class Person:
    """Answers every ask with the option of that kind, and remembers the commands."""

    def __init__(self, desk: Desk, kind: str) -> None:
        self.kind = kind
        self.asked: list[str] = []
        desk.client.on("agent/permission", self.answer)

    def answer(self, params: Any) -> Any:
        self.asked.append(params["input"]["command"])
        return {"optionId": option(params, self.kind)}


async def told(desk: Desk, commands: list[str]) -> list[tuple[bool, str]]:
    """What an agent that calls all of these is told: (failed, text) of each."""
    turns = list(in_turns(commands))
    desk.says(*turns, say("done"))
    info = await desk.ended(await desk.spawn(), timeout=60)
    assert info["status"] == "completed"
    return [result for number in range(1, len(turns) + 1) for result in desk.results(number)]


@pytest.mark.spec("PM-4", "PM-2")
async def test_b7_what_must_not_run_is_asked_for_or_denied_and_never_starts(watched: Desk, marks: Path):
    """At first what a person allows leaves its marks, so that their absence says something later."""
    desk = watched
    Person(desk, "allowOnce")
    controls = ["ls", "echo 'the control' > made", "echo 'x", SENTINELS[0].command]
    assert await told(desk, controls) == [(True, "Exit code 7")] * len(controls)
    assert (ran(marks), (desk.repo.path / "made").exists()) == (sorted(controls), False)
    for name, rules in rule_sets().items():
        desk.repo.write({".claude/settings.json": json.dumps({"permissions": rules})})
        person = Person(desk, "rejectOnce")
        results = await told(desk, [entry.command for entry in SENTINELS])
        assert ran(marks) == sorted(controls)
        assert [each for each in zip(SENTINELS, results, strict=True) if not as_decided(*each, name)] == []
        assert person.asked == [entry.command for entry in SENTINELS if entry.decisions[name] == "ask"]


def as_decided(entry: Entry, result: tuple[bool, str], name: str) -> bool:
    failed, text = result
    start = "The user refused this call." if entry.decisions[name] == "ask" else "Not permitted: "
    return failed and text.startswith(start)

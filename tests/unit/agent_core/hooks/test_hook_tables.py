"""What people may write and what hooks may answer, as tables: parsing, matching, exit codes and JSON, merging."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_core.hooks.answers import of_process, of_text, of_verdict
from agent_core.hooks.matching import broken_pattern, matches, merge, select
from agent_core.hooks.parsing import of_agent, parse_hooks
from agent_core.hooks.runner import seconds_of
from agent_core.hooks.values import BLOCKING, EVENTS, MAX_TEXT, Answer, Command, Hook, Question

HOOK = {"type": "command", "command": "true"}


def parsed(value: Any) -> tuple[int, list[str]]:
    problems: list[str] = []
    return len(parse_hooks(value, "s.json", False, problems.append)), problems


@pytest.mark.spec("HK-4", "HK-1")
@pytest.mark.parametrize(
    ("value", "count", "problem"),
    [
        (None, 0, None),
        ([], 0, "hooks must be an object of events"),
        ({"PreToolUse": HOOK}, 0, "hooks.PreToolUse must be a list"),
        ({"PreToolUse": [HOOK]}, 0, "hooks.PreToolUse[0] must be an object with a list hooks"),
        ({"PreToolUse": [{"matcher": 7, "hooks": [HOOK]}]}, 0, "a text matcher"),
        ({"PreToolUse": [{"matcher": "(", "hooks": [HOOK]}]}, 0, "is no pattern"),
        ({"PreToolUse": [{"matcher": "(a+)+", "hooks": [HOOK]}]}, 0, "could take for ever"),
        ({"Nonsense": [{"hooks": [HOOK]}]}, 0, "hooks.Nonsense is no event; there are PreToolUse"),
        ({"FileChanged": [{"hooks": [HOOK]}]}, 0, "hooks.FileChanged is never raised here"),
        ({"Stop": [{"hooks": ["x", HOOK]}]}, 1, "must be an object with type"),
        ({"Stop": [{"hooks": [{"type": "shell"}, HOOK]}]}, 1, "there are command, http, mcp_tool, prompt, agent"),
        ({"Stop": [{"hooks": [{"type": "command"}]}]}, 0, "needs a text command"),
        ({"Stop": [{"hooks": [{**HOOK, "args": [1]}]}]}, 0, "args that are no list of texts"),
        ({"Stop": [{"hooks": [{**HOOK, "shell": "powershell"}]}]}, 0, "there is only bash"),
        ({"Stop": [{"hooks": [{**HOOK, "timeout": 0}]}]}, 0, "timeout that is no number of seconds above 0"),
        ({"Stop": [{"hooks": [{**HOOK, "timeout": True}]}]}, 0, "timeout that is no number"),
        ({"Stop": [{"hooks": [{**HOOK, "once": "yes"}]}]}, 0, "once 'yes'; it must be true or false"),
        ({"Stop": [{"hooks": [{**HOOK, "if": "Bash(x)"}]}]}, 0, "which only events of tools know"),
        ({"PreToolUse": [{"hooks": [{**HOOK, "if": "(x"}]}]}, 0, "an if that is no rule"),
        ({"PreToolUse": [{"hooks": [{**HOOK, "asyncRewake": True}]}]}, 1, "asyncRewake is ignored"),
        ({"Stop": [{"hooks": [{"type": "http", "url": "ftp://x"}]}]}, 0, "does not begin with http:// or https://"),
        ({"Stop": [{"hooks": [{"type": "http", "url": "http://x", "headers": [1]}]}]}, 0, "headers that are no object"),
        ({"Stop": [{"hooks": [{"type": "http", "url": "http://x", "allowedEnvVars": "A"}]}]}, 0, "no list of texts"),
        ({"Stop": [{"hooks": [{"type": "mcp_tool", "server": "s"}]}]}, 0, "needs a text tool"),
        ({"Stop": [{"hooks": [{"type": "prompt", "prompt": " "}]}]}, 0, "needs a text prompt"),
        ({"PreToolUse": [{"hooks": [HOOK, {**HOOK, "if": "Bash(git *)", "async": True, "timeout": 2.5}]}]}, 2, None),
    ],
)
def test_a_bad_entry_is_named_and_takes_no_other_along(value: Any, count: int, problem: str | None) -> None:
    found, problems = parsed(value)
    assert found == count
    assert [problem in text for text in problems if problem] == ([True] if problem else [])
    assert len(problems) == (problem is not None)


@pytest.mark.spec("HK-2")
def test_an_agent_brings_hooks_of_its_own_work_only() -> None:
    problems: list[str] = []
    hooks = parse_hooks({name: [{"hooks": [HOOK]}] for name in EVENTS}, "a.md", True, problems.append)
    kept = of_agent(hooks, problems.append)
    assert [hook.event for hook in kept] == ["PreToolUse", "PostToolUse", "SubagentStop", "Stop"]
    assert len(problems) == len(EVENTS) - 4
    assert "hooks.SessionStart is no event of an agent file" in " ".join(problems)


@pytest.mark.spec("HK-1")
@pytest.mark.parametrize(
    ("matcher", "subject", "hit"),
    [
        ("", "Bash", True),
        ("*", "Bash", True),
        (" * ", "Bash", True),
        ("Bash", "Bash", True),
        ("Bash", "BashOutput", False),
        ("bash", "Bash", False),
        ("Edit|Write", "Write", True),
        ("Edit, Write", "Write", True),
        ("Edit|Write", "Read", False),
        ("mcp__git", "mcp__git__log", False),
        ("mcp__git__.*", "mcp__git__log", True),
        ("^Edit$", "Edit", True),
        ("^Edit$", "Edit\n", False),
        ("Ed.t", "NotebookEdit", True),
        ("(?<x>Ed)it", "Edit", True),
        ("general-purpose", "general-purpose", True),
        ("my agent", "my agent", True),
    ],
)
def test_names_are_whole_and_patterns_are_found_anywhere(matcher: str, subject: str, hit: bool) -> None:
    assert broken_pattern(matcher) is None
    assert matches(matcher, subject) is hit


def hook(event: str = "PreToolUse", text: str = "true", source: str = "a", **more: Any) -> Hook:
    return Hook(event, more.pop("matcher", ""), Command(text), source, **more)


@pytest.mark.spec("HK-1")
def test_a_handler_counts_once_however_many_files_name_it() -> None:
    same = [hook(source="a"), hook(source="b", matcher="Bash"), hook(text="false"), hook(event="Stop")]
    assert select(same, "PreToolUse", "Bash") == (same[0], same[2])
    assert select(same, "Stop", "whatever") == (same[3],)


@pytest.mark.spec("HK-4")
@pytest.mark.parametrize(
    ("made", "seconds"),
    [
        (hook(), 600),
        (hook(timeout=3), 3),
        (hook("UserPromptSubmit"), 30),
        (hook("SessionEnd"), 1.5),
        (hook("SessionEnd", timeout=60), 1.5),
        (Hook("Stop", "", Question("p"), "a"), 30),
        (Hook("Stop", "", Question("p", tools=True), "a"), 60),
    ],
)
def test_how_long_a_hook_may_take(made: Hook, seconds: float) -> None:
    assert seconds_of(made) == seconds


@pytest.mark.spec("HK-3", "HK-4")
@pytest.mark.parametrize("event", sorted(EVENTS))
def test_exit_codes(event: str) -> None:
    if event == "WorktreeCreate":
        assert of_process(event, 0, "made\n/a/b\n\n", "").path == "/a/b"
        assert {of_process(event, code, "/a", "x").outcome for code in (1, 2, -9)} == {"error"}
        return
    fine, blocked, failed = (of_process(event, code, "", "why") for code in (0, 2, 1))
    assert (fine.outcome, failed.outcome, failed.message) == ("ok", "error", "it ended with exit code 1: why")
    denies = "deny" if event == "PreToolUse" else "block"
    assert (blocked.outcome, blocked.reason) == ((denies, "why") if event in BLOCKING else ("error", None))
    undone = of_process(event, 2, json.dumps({"decision": "approve", "reason": "because"}), "")
    assert undone.outcome == (denies if event in BLOCKING else "error")
    assert undone.reason == "because" or event not in BLOCKING
    broken = of_process(event, 0, '{"x', "")
    assert broken.outcome == "error" and "no JSON" in (broken.message or "")
    assert of_process(event, 2, '{"x', "why").outcome == (denies if event in BLOCKING else "error")


def pre(**own: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **own}}


@pytest.mark.spec("HK-3")
@pytest.mark.parametrize(
    ("event", "value", "expected"),
    [
        ("PreToolUse", pre(permissionDecision="allow", permissionDecisionReason="r"), ("allow", "r")),
        ("PreToolUse", pre(permissionDecision="defer"), ("ask", None)),
        ("PreToolUse", {"decision": "block", "reason": "r"}, ("deny", "r")),
        ("PreToolUse", {"decision": "approve"}, ("allow", None)),
        ("PreToolUse", pre(permissionDecision="perhaps"), ("error", None)),
        ("PreToolUse", pre(permissionDecision=True), ("error", None)),
        ("PreToolUse", pre(updatedInput=[1]), ("error", None)),
        ("PreToolUse", {"hookSpecificOutput": {"hookEventName": "Stop"}}, ("error", None)),
        ("Stop", {"hookSpecificOutput": {"hookEventName": "SubagentStop"}}, ("ok", None)),
        ("Stop", {"decision": "block", "reason": "r"}, ("block", "r")),
        ("Notification", {"decision": "block"}, ("ok", None)),
        ("Stop", {"decision": "maybe"}, ("error", None)),
        ("Stop", {"continue": "no"}, ("error", None)),
        ("Stop", {"systemMessage": 5}, ("error", None)),
        ("Stop", [1], ("ok", None)),
    ],
)
def test_what_json_says(event: str, value: Any, expected: tuple[str, str | None]) -> None:
    answer = of_text(event, json.dumps(value))
    assert (answer.outcome, answer.reason) == expected


@pytest.mark.spec("HK-4")
def test_no_text_of_a_hook_is_longer_than_ten_thousand_characters() -> None:
    long = "x" * 50_000
    assert len(of_text("UserPromptSubmit", long).context or "") <= MAX_TEXT
    assert len(of_process("Stop", 2, "", long).reason or "") <= MAX_TEXT
    assert len(of_text("Stop", json.dumps({"systemMessage": long})).message or "") <= MAX_TEXT
    assert len(of_verdict("Stop", json.dumps({"ok": False, "reason": long})).reason or "") <= MAX_TEXT


@pytest.mark.spec("HK-3")
@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ('{"ok": true}', "ok"),
        ('So: {"ok": false, "reason": "r"}', "block"),
        ('{"ok": "yes"}', "error"),
        ("no", "error"),
        ("", "error"),
        ('{"reason": "r"}', "error"),
    ],
)
def test_what_a_model_says(said: str, outcome: str) -> None:
    assert of_verdict("SubagentStop", said).outcome == outcome
    assert of_verdict("PreToolUse", said).outcome == ("deny" if outcome == "block" else outcome)


@pytest.mark.spec("HK-3")
def test_the_strictest_answer_counts_with_its_reasons() -> None:
    allow, ask, deny = (Answer(outcome, reason=outcome) for outcome in ("allow", "ask", "deny"))
    for answers, decision in (
        ([], None),
        ([Answer()], None),
        ([allow], "allow"),
        ([allow, ask], "ask"),
        ([ask, deny, allow], "deny"),
        ([Answer("error", "x"), allow], "allow"),
    ):
        verdict = merge(answers)
        assert (verdict.decision, verdict.reason) == (decision, decision or "")
    verdict = merge([Answer(input={"a": 1}), Answer(input={"b": 2}), Answer("timeout", "late"), Answer(context="c")])
    assert (verdict.input, verdict.failures, verdict.context) == ({"b": 2}, ("late",), ("c",))
    assert merge([Answer("block", reason="x"), Answer("block", reason="y")]).blocked == "x\ny"
    assert merge([Answer(stop=True, reason="enough")]).stop == "enough"
    assert not merge([Answer("allow", interrupt=True)]).interrupt

"""What a hook gave back, exit code, texts and JSON, to an `Answer` (features 14). Pure.

Exit code 0 is fine, 2 blocks where the event can be blocked, anything else is a fault that decides nothing. An output
that begins with `{` is JSON and counts whatever the code is; but it cannot undo a 2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args

from attrs import evolve

from agent_core.hooks.values import BLOCKING, MAX_TEXT, OK, Answer, Grant, failed
from agent_core.permissions.rules import parse_rule
from agent_core.permissions.types import Destination

_SPEAKING = frozenset({"UserPromptSubmit", "SessionStart"})
"""Events whose hooks may simply print what the model shall know."""
_SAME = {"Stop": "SubagentStop"}
_DECISIONS = {"allow": "allow", "approve": "allow", "deny": "deny", "ask": "ask", "defer": "ask"}
_LISTENING = frozenset(
    {"PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "SessionStart", "SubagentStart"}
    | {"SubagentStop", "Stop"}
)
"""Events that take `additionalContext`."""


_CUT = "\n[... the rest of this hook's text is left out ...]"


class _Bad(ValueError):
    """What is wrong with the JSON."""


def of_process(event: str, code: int, stdout: str, stderr: str) -> Answer:
    """Of a command that has ended by itself."""
    if event == "WorktreeCreate":
        return _created(code, stdout, stderr)
    answer = of_text(event, stdout)
    if code == 0:
        return answer
    said = cut(stderr.strip())
    if code == 2 and event in BLOCKING:
        reason = answer.reason or said or "the hook gave no reason"
        return Answer("deny" if event == "PreToolUse" else "block", reason, reason)
    if answer.outcome != "ok" or answer.stop:  # whatever the code is, what it decided counts
        return answer
    ended = f"it ended with exit code {code}" if code > 0 else f"it was ended by signal {-code}"
    return evolve(answer, outcome="error", message=f"{ended}{f': {said}' if said else ''}")


def _created(code: int, stdout: str, stderr: str) -> Answer:
    """Here any other exit code than 0 is a failure, and the last line that is not empty is the folder."""
    if code != 0:
        return failed(f"it ended with exit code {code}{f': {said}' if (said := cut(stderr.strip())) else ''}")
    lines = [line.strip() for line in stdout.splitlines() if line.strip()]
    return Answer(path=lines[-1]) if lines else failed("it printed no path")


def of_text(event: str, text: str) -> Answer:
    """Of an output alone, as an HTTP hook answers."""
    if not text.lstrip().startswith("{"):
        return Answer(context=cut(text.strip()) or None) if event in _SPEAKING else OK
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return failed(f"its output begins with {{ and is no JSON: {error}")
    try:
        return _read(event, value)
    except _Bad as error:
        return failed(f"its JSON cannot be used: {error}")


def of_verdict(event: str, text: str) -> Answer:
    """Of a model that was told to answer `{"ok": bool, "reason": text}`."""
    start, end = text.find("{"), text.rfind("}")
    try:
        value = json.loads(text[start : end + 1])
        ok, reason = value["ok"], value.get("reason") or "the model that was asked gave no reason"
    except (ValueError, KeyError, AttributeError, RecursionError):
        return failed("the model that was asked did not answer with {ok, reason}")
    if not isinstance(ok, bool) or not isinstance(reason, str):
        return failed("the model that was asked did not answer with {ok: true or false, reason: text}")
    if ok or event not in BLOCKING | {"PermissionRequest"}:
        return OK
    denies = event in ("PreToolUse", "PermissionRequest")
    return Answer("deny" if denies else "block", cut(reason), cut(reason))


def cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - len(_CUT)] + _CUT


def _read(event: str, value: Mapping[str, Any]) -> Answer:
    specific = value.get("hookSpecificOutput")
    if specific is not None and not isinstance(specific, Mapping):
        raise _Bad(f"hookSpecificOutput must be an object, not {specific!r}")
    own = dict(specific or {})
    named = own.get("hookEventName")
    if named is not None and _SAME.get(named, named) != _SAME.get(event, event):
        raise _Bad(f"hookSpecificOutput is for {named!r}, not for {event}")
    answer = _permission(own) if event == "PermissionRequest" else _decided(event, value, own)
    context = _text(own, "additionalContext") if event in _LISTENING else None
    go_on = value.get("continue", True)
    if not isinstance(go_on, bool):
        raise _Bad(f"continue must be true or false, not {go_on!r}")
    if not go_on:
        why = _text(value, "stopReason") or "a hook has ended the run"
        answer = evolve(answer, stop=True, message=why, reason=why)
    return evolve(
        answer,
        context=context,
        message=answer.message or _text(value, "systemMessage"),
        output=_text(own, "updatedToolOutput") if event == "PostToolUse" else None,
        path=_text(value, "worktreePath") or _text(own, "worktreePath") if event == "WorktreeCreate" else None,
    )


def _decided(event: str, value: Mapping[str, Any], own: Mapping[str, Any]) -> Answer:
    decision, reason = value.get("decision"), _text(value, "reason")
    if event == "PreToolUse":
        decision = own.get("permissionDecision", "deny" if decision == "block" else decision)
        reason = _text(own, "permissionDecisionReason") or reason
        input = _object(own, "updatedInput")
        if decision is None:
            return Answer(input=input, reason=reason)
        return Answer(_one_of("permissionDecision", decision), reason, reason, input=input)  # type: ignore[arg-type]
    if decision not in (None, "block", "approve"):
        raise _Bad(f"decision must be block or absent, not {decision!r}")
    if decision == "block" and event in BLOCKING:
        return Answer("block", reason, reason)
    return Answer(reason=reason)  # for an exit code 2, which it cannot undo


def _permission(own: Mapping[str, Any]) -> Answer:
    decision = own.get("decision")
    if decision is None:
        return OK
    if not isinstance(decision, Mapping) or decision.get("behavior") not in ("allow", "deny"):
        raise _Bad(f"decision must be an object with behavior allow or deny, not {decision!r}")
    allows, said = decision["behavior"] == "allow", _text(decision, "message")
    grants, note = _grants(decision.get("updatedPermissions") if allows else None)
    return Answer(
        "allow" if allows else "deny",
        said or note,
        said,
        input=_object(decision, "updatedInput") if allows else None,
        interrupt=not allows and decision.get("interrupt") is True,
        grants=grants,
    )


def _grants(value: Any) -> tuple[tuple[Grant, ...], str | None]:
    """What is to be stored, and which entries are not; only rules are ever added, nothing is taken away."""
    if value is None:
        return (), None
    if not isinstance(value, list):
        raise _Bad(f"updatedPermissions must be a list, not {value!r}")
    found = [_grant(entry) for entry in value]
    left = [str(number) for number, grant in enumerate(found) if grant is None]
    note = f"updatedPermissions {', '.join(left)} not stored: only addRules with allow or deny are" if left else None
    return tuple(grant for grant in found if grant is not None), note


def _grant(entry: Any) -> Grant | None:
    if not isinstance(entry, Mapping) or entry.get("type") != "addRules":
        return None
    behavior, destination, rules = entry.get("behavior"), entry.get("destination", "session"), entry.get("rules")
    if behavior not in ("allow", "deny") or destination not in get_args(Destination) or not isinstance(rules, list):
        return None
    texts = [_rule(rule) for rule in rules]
    kept = tuple(text for text in texts if text is not None)
    return Grant(behavior, kept, destination) if kept and len(kept) == len(texts) else None


def _rule(entry: Any) -> str | None:
    tool, content = (entry.get("toolName"), entry.get("ruleContent")) if isinstance(entry, Mapping) else (None, None)
    if not isinstance(tool, str) or not isinstance(content, str | None):
        return None
    text = tool if content is None else f"{tool}({content})"
    return text if parse_rule(text, "allow", "a hook") is not None else None


def _one_of(name: str, value: Any) -> str:
    if not isinstance(value, str) or value not in _DECISIONS:
        raise _Bad(f"{name} must be allow, deny or ask, not {value!r}")
    return _DECISIONS[value]


def _text(values: Mapping[str, Any], name: str) -> str | None:
    value = values.get(name)
    if value is None or isinstance(value, str):
        return cut(value) if value else None
    raise _Bad(f"{name} must be a text, not {type(value).__name__}")


def _object(values: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    value = values.get(name)
    if value is None or isinstance(value, dict):
        return value
    raise _Bad(f"{name} must be an object, not {type(value).__name__}")

"""What a hook gave back, exit code, texts and JSON, to an `Answer` (features 14). Pure.

Exit code 0 is fine, 2 blocks where the event can be blocked, anything else is a fault that decides nothing. An output
that begins with `{` is JSON and counts whatever the code is; but it cannot undo a 2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import evolve

from agent_core.hooks.values import BLOCKING, MAX_TEXT, OK, Answer, failed

_SPEAKING = frozenset({"UserPromptSubmit", "SessionStart"})
"""Events whose hooks may simply print what the model shall know."""
_SAME = {"Stop": "SubagentStop"}
_DECISIONS = {"allow": "allow", "approve": "allow", "deny": "deny", "ask": "ask", "defer": "ask"}
_LISTENING = frozenset(
    {"PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "SessionStart", "SubagentStart"}
    | {"SubagentStop", "Stop"}
)
"""Events that take `additionalContext`."""


class _Bad(ValueError):
    """What is wrong with the JSON."""


def of_process(event: str, code: int, stdout: str, stderr: str) -> Answer:
    """Of a command that has ended by itself."""
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
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "\n[... the rest of this hook's text is left out ...]"


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
    )


def _decided(event: str, value: Mapping[str, Any], own: Mapping[str, Any]) -> Answer:
    decision, reason = value.get("decision"), _text(value, "reason")
    if event == "PreToolUse":
        decision = own.get("permissionDecision", "deny" if decision == "block" else decision)
        reason = _text(own, "permissionDecisionReason") or reason
        input = _object(own, "updatedInput")
        if decision is None:
            return Answer(input=input)
        return Answer(_one_of("permissionDecision", decision), reason, reason, input=input)  # type: ignore[arg-type]
    if decision not in (None, "block", "approve"):
        raise _Bad(f"decision must be block or absent, not {decision!r}")
    if decision == "block" and event in BLOCKING:
        return Answer("block", reason, reason)
    return OK


def _permission(own: Mapping[str, Any]) -> Answer:
    decision = own.get("decision")
    if decision is None:
        return OK
    if not isinstance(decision, Mapping) or decision.get("behavior") not in ("allow", "deny"):
        raise _Bad(f"decision must be an object with behavior allow or deny, not {decision!r}")
    allows, said = decision["behavior"] == "allow", _text(decision, "message")
    note = "updatedPermissions are not stored; this call only was allowed" if "updatedPermissions" in decision else None
    return Answer(
        "allow" if allows else "deny",
        said or note,
        said,
        input=_object(decision, "updatedInput") if allows else None,
        interrupt=not allows and decision.get("interrupt") is True,
    )


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

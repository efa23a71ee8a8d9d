"""Stored answers: for the session, and in a settings file without losing anything (B2)."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from agent_core.permissions import grants
from agent_core.permissions.grants import SessionGrants, store_rules
from agent_core.permissions.types import OptionKind, PermissionOption, PermissionRule


def option(rule: str, kind: OptionKind = OptionKind.ALLOW_ALWAYS) -> PermissionOption:
    return PermissionOption(kind.value, kind, "label", (rule,), "localSettings")


def test_session_answers_become_rules_once(tmp_path: Path) -> None:
    grants = SessionGrants(tmp_path / "grants.json")
    for _ in range(2):
        grants.add(option("Bash(ls)", OptionKind.ALLOW_SESSION), tmp_path)
    grants.add(option("Bash(rm a)", OptionKind.REJECT_SESSION), tmp_path)
    assert grants.rules == (
        PermissionRule("Bash", "ls", "allow", "this session", tmp_path),
        PermissionRule("Bash", "rm a", "deny", "this session", tmp_path),
    )
    grants.save()
    assert grants.path.stat().st_mode & 0o077 == 0
    assert SessionGrants.load(grants.path).rules == grants.rules


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[[1]]", b'[["allow", "Bash(x)", 1]]', b"\xff", b'[["all", "Bash(x)", "/"]]']
)
def test_what_cannot_be_read_grants_nothing(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "grants.json"
    assert SessionGrants.load(path).rules == ()
    path.write_bytes(data)
    assert SessionGrants.load(path).rules == ()


def test_b2_a_rule_is_added_and_everything_else_is_kept(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "settings.local.json"
    path.parent.mkdir()
    before = {"z": 1, "permissions": {"allow": ["Bash(a)"], "deny": ["Read(x)"], "other": [1]}, "a": {"ü": None}}
    path.write_text(json.dumps(before), "utf-8")
    store_rules(path, option("Bash(b)"))
    store_rules(path, option("Bash(b)"))
    store_rules(path, option("Bash(c)", OptionKind.REJECT_ALWAYS))
    after = json.loads(path.read_text("utf-8"))
    assert after == {
        "z": 1,
        "permissions": {"allow": ["Bash(a)", "Bash(b)"], "deny": ["Read(x)", "Bash(c)"], "other": [1]},
        "a": {"ü": None},
    }
    assert list(after) == list(before)
    assert [each.name for each in path.parent.iterdir()] == ["settings.local.json"]


def test_a_new_file_is_made(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "settings.local.json"
    store_rules(path, option("Bash(a)"))
    assert json.loads(path.read_text()) == {"permissions": {"allow": ["Bash(a)"]}}


@pytest.mark.parametrize("text", ["{", "[]", '{"permissions": []}', '{"permissions": {"allow": "Bash"}}'])
def test_a_file_that_is_not_understood_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.local.json"
    path.write_text(text)
    with pytest.raises(ValueError):
        store_rules(path, option("Bash(a)"))
    assert path.read_text() == text


def test_b2_concurrent_writers_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "settings.local.json"
    threads = [threading.Thread(target=store_rules, args=(path, option(f"Bash(c{number})"))) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(json.loads(path.read_text())["permissions"]["allow"]) == sorted(f"Bash(c{n})" for n in range(20))


def test_b2_nobody_reads_while_another_has_read_and_not_yet_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, both, met = grants._read, threading.Barrier(2), []

    def slow(path: Path) -> str | None:
        values = read(path)
        with suppress(threading.BrokenBarrierError):
            met.append(both.wait(0.3))
        return values

    monkeypatch.setattr(grants, "_read", slow)
    test_b2_concurrent_writers_lose_nothing(tmp_path)
    assert met == []

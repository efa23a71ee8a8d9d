"""A rule joins a settings file and nothing else of it changes, whoever else writes (B2)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.permissions import grants
from agent_core.permissions.grants import store_rules
from agent_core.permissions.rule_writing import with_rules
from agent_core.permissions.types import OptionKind, PermissionOption


def option(*rules: str) -> PermissionOption:
    return PermissionOption("allowAlways", OptionKind.ALLOW_ALWAYS, "label", rules, "localSettings")


@pytest.mark.spec("PM-5")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "permissions": {\n    "allow": [\n      "R"\n    ]\n  }\n}\n'),
        ("{}", '{"permissions": {"allow": ["R"]}}'),
        ('{"a": 1.10}', '{"a": 1.10, "permissions": {"allow": ["R"]}}'),
        ('{\n\t"a": 1e400\n}', '{\n\t"a": 1e400,\n\t"permissions": {"allow": ["R"]}\n}'),
        ('{"permissions":{"deny":["X"]},"z":0}', '{"permissions":{"deny":["X"], "allow": ["R"]},"z":0}'),
        ('{"permissions": {}}', '{"permissions": {"allow": ["R"]}}'),
        ('{"permissions": {"allow": []}}', '{"permissions": {"allow": ["R"]}}'),
        ('{"permissions": {"allow": [ "A" ]}}', '{"permissions": {"allow": [ "A", "R" ]}}'),
        (
            '{\r\n  "permissions": {\r\n    "allow": [\r\n      "A"\r\n    ]\r\n  }\r\n}',
            '{\r\n  "permissions": {\r\n    "allow": [\r\n      "A",\r\n      "R"\r\n    ]\r\n  }\r\n}',
        ),
        ('{"permissions": {"allow": ["R"]}}', '{"permissions": {"allow": ["R"]}}'),
        ('{"x": "]}", "permissions": {"allow": ["\\"]"]}}', '{"x": "]}", "permissions": {"allow": ["\\"]", "R"]}}'),
    ],
)
def test_b2_every_other_byte_stays(before: str, after: str) -> None:
    assert with_rules(before, "allow", ["R", "R"]) == after


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
RULES = st.lists(st.text(min_size=1, max_size=6), max_size=3, unique=True)


@given(
    st.dictionaries(st.text(max_size=4), JSON, max_size=3),
    st.none() | st.fixed_dictionaries({}, optional={"allow": RULES, "deny": RULES, "other": JSON}),
    RULES,
    st.sampled_from([None, 0, 2, "\t"]),
)
def test_b2_a_file_never_shrinks(others: Any, permissions: Any, rules: list[str], indent: int | str | None) -> None:
    values = others if permissions is None else {**others, "permissions": permissions}
    after = json.loads(with_rules(json.dumps(values, indent=indent), "allow", rules))
    old = (permissions or {}).get("allow", [])
    wanted = [*old, *(rule for rule in rules if rule not in old)]
    if not rules and not old:
        assert after == values
    else:
        assert after == {**values, "permissions": {**(permissions or {}), "allow": wanted}}


def test_b2_links_rights_and_marks_of_the_file_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles" / "s.json", tmp_path / ".claude" / "settings.json"
    for path in (real, link):
        path.parent.mkdir()
    real.write_bytes(b'\xef\xbb\xbf{"a": "\xc3\xa9"}')
    real.chmod(0o640)
    link.symlink_to(real)
    store_rules(link, option("Bash(é)"))
    assert link.is_symlink()
    assert real.read_bytes().decode() == '\ufeff{"a": "é", "permissions": {"allow": ["Bash(é)"]}}'
    assert real.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in real.parent.iterdir()] == ["s.json"]


def test_a_file_that_changes_all_the_time_is_given_up_and_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "settings.json"
    count = iter(range(1000))

    def read(target: Path) -> str | None:
        found = target.read_text() if target.exists() else None
        target.write_text(json.dumps({"n": next(count)}))
        return found

    monkeypatch.setattr(grants, "_read", read)
    with pytest.raises(OSError, match="changed again and again"):
        store_rules(path, option("R"))
    assert list(json.loads(path.read_text())) == ["n"]


WRITER = """
import json, os, random, sys
from pathlib import Path
from agent_core.permissions import grants
from agent_core.permissions.types import OptionKind, PermissionOption

path, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
chance, read = random.Random(name), grants._read

def disturbed(target):
    '''Between our reading and our writing another program, that knows of no lock, replaces the file.'''
    text = read(target)
    if text and chance.random() < 0.3:
        values = json.loads(text)
        values[f"foreign {name} {len(values)}"] = len(values)
        other = target.with_name(f"{name}.tmp")
        other.write_text(json.dumps(values, indent=1))
        os.replace(other, target)
        global made
        made += 1
    return text

made, grants._read = 0, disturbed
for number in range(count):
    rule = f"Bash({name} {number})"
    grants.store_rules(path, PermissionOption("allowAlways", OptionKind.ALLOW_ALWAYS, "", (rule,), "localSettings"))
print(made)
"""
EACH = 250


@pytest.mark.spec("PM-5")
def test_b2_five_hundred_answers_in_two_processes_lose_no_rule_and_no_foreign_key(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "settings.local.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"zebra": {"unknown": [1, None]}, "permissions": {"deny": ["Bash(rm)"], "more": 1}}))
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name, str(EACH)], stdout=subprocess.PIPE, text=True)
        for name in ("one", "two")
    ]
    made = [int(writer.communicate(timeout=120)[0]) for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0]
    values = json.loads(path.read_text())
    rules = [f"Bash({name} {number})" for name in ("one", "two") for number in range(EACH)]
    assert sorted(values["permissions"].pop("allow")) == sorted(rules)
    assert values.pop("zebra") == {"unknown": [1, None]}
    assert values.pop("permissions") == {"deny": ["Bash(rm)"], "more": 1}
    assert len(values) == sum(made) > EACH / 5
    assert [each.name for each in path.parent.iterdir()] == [path.name]

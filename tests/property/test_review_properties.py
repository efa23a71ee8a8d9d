"""The review keeps its promises for any three texts, also ones of few different lines, where comparisons go astray."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from attrs import evolve
from hypothesis import assume, example, given
from hypothesis import strategies as st

from agent_core.line_diff import diff
from agent_core.review import ABSENT, FILE, FileInput, FileReview, Side, Target
from agent_core.review_parts import review_file
from agent_core.text_form import NotConvertible, line_ends, to_buffer_form

pytestmark = pytest.mark.spec("ED-3")

few = st.sampled_from(["a", "b", "}", "", "é"])
many = st.integers(0, 60).map(lambda number: f"line {number}")
ends = st.sampled_from(["\n", "\r\n", "\n", "\r"])
lines = st.lists(st.tuples(st.one_of(few, many), ends).map("".join), max_size=14)


@st.composite
def text(draw: Any, source: st.SearchStrategy[list[str]] = lines) -> bytes:
    body = "".join(draw(source)) + draw(st.sampled_from(["", "", "last"]))
    return draw(st.sampled_from(["", "\ufeff"])).encode() + body.encode(draw(st.sampled_from(["utf-8", "latin-1"])))


@st.composite
def changed(draw: Any, before: list[Any], fresh: st.SearchStrategy[Any] = lines) -> list[Any]:
    """Another version: some stretches replaced."""
    result = list(before)
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(result)))
        end = draw(st.integers(start, min(len(result), start + 3)))
        result[start:end] = draw(fresh)[:3]
    return result


@st.composite
def versions(draw: Any) -> tuple[bytes, bytes]:
    if draw(st.booleans()):
        return draw(text()), draw(text())
    base = draw(lines)
    return "".join(base).encode(), "".join(draw(changed(base))).encode()


def review(base: bytes, agent: bytes, current: bytes | str) -> FileReview:
    return review_file(FileInput("f", None, "modified", Side(FILE, base), Side(FILE, agent), Target(FILE, current)))


@given(st.lists(st.integers(0, 4), max_size=20), st.lists(st.integers(0, 4), max_size=20))
def test_a_difference_leads_from_old_to_new(old: list[int], new: list[int]) -> None:
    result, at = [], 0
    edits = diff(old, new)
    for edit in edits:
        result += old[at : edit.old_start] + new[edit.new_start : edit.new_end]
        at = edit.old_end
    assert result + old[at:] == new
    assert all(one.old_end < two.old_start and one.new_end < two.new_start for one, two in itertools.pairwise(edits))


@given(versions())
@example((b"a\nb\na\n", b"a\na\nb\na\na\n"))
def test_all_on_an_unchanged_base_gives_the_agents_bytes(pair: tuple[bytes, bytes]) -> None:
    base, agent = pair
    found = review(base, agent, base)
    assert found.change.conflict is None
    assert found.apply().after == agent
    assert {hunk.state for hunk in review(base, agent, agent).change.hunks} <= {"accepted"}


@given(versions(), st.data())
def test_any_order_of_hunks_gives_the_same_bytes(pair: tuple[bytes, bytes], data: st.DataObject) -> None:
    base, agent = pair
    current: Any = base
    ids = [hunk.id for hunk in review(base, agent, base).change.hunks]
    while True:
        found = review(base, agent, current)
        assert found.change.conflict is None
        assert [hunk.id for hunk in found.change.hunks] == ids or _converted(base, current)
        left = sorted(found.change.open_hunks)
        if not left:
            break
        current = found.apply(data.draw(st.sets(st.sampled_from(left), min_size=1))).after
    assert current == agent


@pytest.mark.parametrize(
    ("base", "agent"),
    [("dcabcbacc", "dabdccbaccc"), ("abbbaaba", "abbabbaabaa"), ("eacccaebd", "ecdcccaedaed")],
)
def test_repeated_lines_where_a_comparison_alone_goes_astray(base: str, agent: str) -> None:
    """Every subset first, then the rest."""
    old, new = ("".join(f"{letter}\n" for letter in text).encode() for text in (base, agent))
    ids = sorted(review(old, new, old).change.open_hunks)
    for count in range(1, len(ids)):
        for chosen in itertools.combinations(ids, count):
            found = review(old, new, review(old, new, old).apply(chosen).after)
            assert (found.change.conflict, found.change.open_hunks) == (None, set(ids) - set(chosen))
            assert found.apply().after == new


def _converted(base: bytes, current: bytes) -> bool:
    """The user's file has other line ends than the base throughout, so hunks are stated in those."""
    return line_ends(base) != line_ends(current)


@given(st.data())
def test_the_users_edits_are_kept_byte_for_byte(data: st.DataObject) -> None:
    """Whatever is applied: each line that is in the result but not in the user's text is the agent's, and the lines of
    the user that are gone were taken away by an applied hunk, at the place that it names."""
    base = data.draw(lines)
    agent = "".join(data.draw(changed(base))).encode()
    current = "".join(data.draw(changed(base))).encode()
    found = review("".join(base).encode(), agent, current)
    ids = {hunk for hunk in found.change.open_hunks if data.draw(st.booleans())}
    rest = current.splitlines(keepends=True)
    for part in reversed(found.parts):
        if part.hunk.id in ids:
            assert part.placed is not None
            new = agent.splitlines(keepends=True)[part.placed.edit.new_start : part.placed.edit.new_end]
            rest[part.placed.start : part.placed.end] = new
    assert found.apply(ids).after == b"".join(rest)
    assert found.apply(()).after == current


distinct = st.lists(st.integers(0, 10**6), min_size=12, max_size=30, unique=True)


@given(distinct, st.data())
def test_edits_of_both_at_different_places_all_survive(numbers: list[int], data: st.DataObject) -> None:
    """The agent changes some lines, the user others, never next to each other: nothing conflicts, in any order."""
    base = [f"{number}\n" for number in numbers]
    spots = list(range(0, len(base), 3))
    agents = data.draw(st.sets(st.sampled_from(spots)))
    fresh = {at: data.draw(st.sampled_from(["", f"agent {at}\n", f"agent {at}\nmore\n{base[at]}"])) for at in agents}
    users = {
        at: data.draw(st.sampled_from(["", f"user {at}\n", f"{base[at]}user\n"])) for at in spots if at not in agents
    }
    agent = "".join(fresh.get(at, line) for at, line in enumerate(base)).encode()
    current: Any = "".join(users.get(at, line) for at, line in enumerate(base)).encode()
    both = "".join({**fresh, **users}.get(at, line) for at, line in enumerate(base)).encode()
    while True:
        found = review("".join(base).encode(), agent, current)
        assert found.change.conflict is None
        if not (left := sorted(found.change.open_hunks)):
            break
        current = found.apply(data.draw(st.sets(st.sampled_from(left), min_size=1))).after
    assert current == both


@given(st.data())
def test_two_steps_never_give_something_else_than_one(data: st.DataObject) -> None:
    """With the user's edits anywhere, and few different lines: applying in two steps gives what one step gives, or the
    second step reports a conflict or leaves a hunk open; it never makes up a third text."""
    base = data.draw(lines)
    agent = "".join(data.draw(changed(base))).encode()
    current = "".join(data.draw(changed(base))).encode()
    origin = "".join(base).encode()
    found = review(origin, agent, current)
    first = {hunk for hunk in found.change.open_hunks if data.draw(st.booleans())}
    middle: Any = found.apply(first).after
    again = review(origin, agent, middle)
    assume(not _converted(current, middle))
    assert [hunk.id for hunk in again.change.hunks] == [hunk.id for hunk in found.change.hunks] or _converted(
        origin, middle
    )
    rest = (found.change.open_hunks - first) & again.change.open_hunks
    if again.change.conflict is None and rest == found.change.open_hunks - first:
        assert again.apply(rest).after == found.apply().after


@given(versions())
def test_ids_are_those_of_the_content(pair: tuple[bytes, bytes]) -> None:
    base, agent = pair
    ids = [hunk.id for hunk in review(base, agent, base).change.hunks]
    assert len(set(ids)) == len(ids)
    assert [hunk.id for hunk in review(base, agent, base).change.hunks] == ids
    other = review_file(evolve(review(base, agent, base).input, path="g"))
    assert set(ids).isdisjoint(hunk.id for hunk in other.change.hunks)


@given(st.lists(many, min_size=1, max_size=20), st.data())
def test_line_ends_of_the_user_win_and_ids_stay(names: list[str], data: st.DataObject) -> None:
    """Base and agent in CRLF, the user in LF (open buffer, or a converted file): same hunks, LF in the outcome."""
    agent_names = data.draw(changed(names, st.lists(many, max_size=3)))
    crlf = ["".join(f"{name}\r\n" for name in each).encode() for each in (names, agent_names)]
    assume(crlf[1] and crlf[0] != crlf[1])
    ids = [hunk.id for hunk in review(crlf[0], crlf[1], crlf[0]).change.hunks]
    for current in (crlf[0].replace(b"\r", b""), crlf[0].decode().replace("\r", "")):
        found = review(crlf[0], crlf[1], current)
        assert [hunk.id for hunk in found.change.hunks] == ids
        after = found.apply().after
        assert after == (
            crlf[1].replace(b"\r", b"") if isinstance(current, bytes) else crlf[1].decode().replace("\r", "")
        )


@given(versions())
def test_buffer_form_loses_nothing_or_refuses(pair: tuple[bytes, bytes]) -> None:
    base, agent = pair
    try:
        buffer = base.decode()
    except UnicodeDecodeError:
        buffer = base.decode("latin-1")
    try:
        forms = to_buffer_form(base, agent, buffer)
    except NotConvertible:
        return
    assert forms[0] == buffer
    assert review(base, agent, buffer).apply().after == forms[1]


@given(text())
def test_a_new_file_is_one_piece(agent: bytes) -> None:
    found = review_file(FileInput("f", None, "added", Side(ABSENT, None), Side(FILE, agent), Target(ABSENT, None)))
    assert (len(found.change.hunks), found.apply().after) == (1, agent)

"""A page of a transcript is the same part that reading all of it gives, whatever it holds and wherever it is torn."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent_core.events import Event, MessageAdded, Started
from agent_core.transcript.codec import encode
from agent_core.transcript.reading import _read_page
from tests.unit.agent_core.builders import event, info, user

TEXTS = st.lists(st.text(max_size=30) | st.sampled_from(['"seq":99', "x" * 5000, "\n\n", "\u2028"]), max_size=30)


@given(texts=TEXTS, after=st.integers(0, 40), limit=st.none() | st.integers(1, 40), torn=st.binary(max_size=20))
def test_a_page_is_a_part_of_the_whole(texts: list[str], after: int, limit: int | None, torn: bytes) -> None:
    bodies = [Started(info()), *(MessageAdded(user(text)) for text in texts)]
    events: list[Event] = [event(seq, body) for seq, body in enumerate(bodies, start=1)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.jsonl")
        path.write_bytes(b"".join(map(encode, events)) + torn.replace(b"\n", b""))
        page, more = _read_page(path, after, limit)
    rest = events[after:]
    assert page == rest[:limit]
    assert more == (limit is not None and len(rest) > limit)

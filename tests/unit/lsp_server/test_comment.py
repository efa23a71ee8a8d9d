"""What an agent reads of a review's comments: where each belongs, and which change it speaks of."""

from __future__ import annotations

import pytest

from agent_core.errors import InvalidParams
from agent_core.review import Hunk
from lsp_server.methods.comment import message
from lsp_server.protocol import Comment

SHORT = Hunk("h1", 3, 1, 3, 1, "@@ -3 +3 @@", "-old\n+new\n", "open")
LONG = Hunk("h2", 9, 0, 10, 30, "@@ -9,0 +10,30 @@", "+line\n" * 30, "open")
HUNKS = {("a.py", "h1"): SHORT, ("a.py", "h2"): LONG}
HEAD = "The user has reviewed your changes and comments:\n\n"


@pytest.mark.parametrize(
    ("comment", "text"),
    [
        (Comment("a.py", "rename it"), "a.py: rename it"),
        (Comment("a.py", "rename it", line=11), "a.py:12: rename it"),
        (Comment("a.py", "why?", hunk="h1"), "a.py, on this change: why?\n    -old\n    +new"),
        (
            Comment("a.py", "too long", hunk="h2"),
            "a.py, on this change: too long\n" + "    +line\n" * 12 + "    ... 18 more lines",
        ),
    ],
)
def test_each_comment_says_where_it_belongs(comment: Comment, text: str) -> None:
    assert message([comment], HUNKS) == HEAD + text


@pytest.mark.parametrize("comment", [Comment("a.py", "x", hunk="h9"), Comment("b.py", "x", hunk="h1")])
def test_a_hunk_that_is_not_there_is_refused_with_its_place(comment: Comment) -> None:
    with pytest.raises(InvalidParams, match=r"comments\[1\].hunk"):
        message([Comment("a.py", "fine"), comment], HUNKS)

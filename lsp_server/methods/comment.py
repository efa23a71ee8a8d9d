"""agent/comment: a review's comments as one message to the agent; the next `new` round shows only what follows."""

from __future__ import annotations

from collections.abc import Mapping

from agent_core.errors import InvalidParams
from agent_core.review import Hunk
from lsp_server import convert
from lsp_server import protocol as wire
from lsp_server.session import EditorSession

_SHOWN = 12
"""Lines of a change that a comment quotes."""


async def handle(session: EditorSession, params: wire.CommentParams) -> wire.AgentResult:
    if not params.comments:
        raise InvalidParams("comments", "is empty; say what the agent shall change")
    for index, comment in enumerate(params.comments):
        if not comment.path.strip():
            raise InvalidParams(f"comments[{index}].path", "is empty; name the file that the comment is about")
        if comment.line is not None and comment.line < 0:
            raise InvalidParams(f"comments[{index}].line", f"must be 0 or more, not {comment.line}")
        if not comment.text.strip():
            raise InvalidParams(f"comments[{index}].text", "is empty")
    hunks: dict[tuple[str, str], Hunk] = {}
    if any(comment.hunk for comment in params.comments):
        review = await session.runtime.review(params.agent_id)
        hunks = {(file.path, hunk.id): hunk for file in review.files for hunk in file.hunks}
    info = await session.runtime.comment(params.agent_id, message(params.comments, hunks))
    return wire.AgentResult(convert.agent(info))


def message(comments: list[wire.Comment], hunks: Mapping[tuple[str, str], Hunk]) -> str:
    """One paragraph per comment, with its place, for the model. `hunks` by path and id. InvalidParams for an unknown
    one: a comment must not lose what it speaks of."""
    parts = [_paragraph(index, comment, hunks) for index, comment in enumerate(comments)]
    return "The user has reviewed your changes and comments:\n\n" + "\n\n".join(parts)


def _paragraph(index: int, comment: wire.Comment, hunks: Mapping[tuple[str, str], Hunk]) -> str:
    place = comment.path if comment.line is None else f"{comment.path}:{comment.line + 1}"
    if comment.hunk is None:
        return f"{place}: {comment.text}"
    hunk = hunks.get((comment.path, comment.hunk))
    if hunk is None:
        raise InvalidParams(
            f"comments[{index}].hunk", f"{comment.hunk!r} is no hunk of {comment.path}; review it again"
        )
    lines = (hunk.text or hunk.header).splitlines()
    shown = lines if len(lines) <= _SHOWN else [*lines[:_SHOWN], f"... {len(lines) - _SHOWN} more lines"]
    return f"{place}, on this change: {comment.text}\n" + "\n".join(f"    {line}" for line in shown)

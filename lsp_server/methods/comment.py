"""agent/comment: a review's comments as one message to the agent; the next `new` round shows only what follows."""

from __future__ import annotations

from agent_core.errors import InvalidParams
from lsp_server import convert
from lsp_server import protocol as wire
from lsp_server.session import EditorSession


async def handle(session: EditorSession, params: wire.CommentParams) -> wire.AgentResult:
    if not params.comments:
        raise InvalidParams("comments", "is empty; say what the agent shall change")
    for index, comment in enumerate(params.comments):
        if not comment.text.strip():
            raise InvalidParams(f"comments[{index}].text", "is empty")
    info = await session.runtime.comment(params.agent_id, message(params.comments))
    return wire.AgentResult(convert.agent(info))


def message(comments: list[wire.Comment]) -> str:
    """One paragraph per comment, with its place, for the model."""
    parts = [f"{each.path}{'' if each.line is None else f':{each.line + 1}'}: {each.text}" for each in comments]
    return "The user has reviewed your changes and comments:\n\n" + "\n\n".join(parts)

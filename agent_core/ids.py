"""Opaque identifiers. All are random, so two processes never make the same one."""

from __future__ import annotations

import secrets
from typing import NewType

AgentId = NewType("AgentId", str)
ConversationId = NewType("ConversationId", str)
RequestId = NewType("RequestId", str)
MessageId = NewType("MessageId", str)

MAIN = AgentId("main")
"""How callers name the main thread; its real id is an ordinary agent id."""


def new_agent_id() -> AgentId:
    """16 hex digits (64 random bits)."""
    return AgentId(secrets.token_hex(8))


def new_conversation_id() -> ConversationId:
    return ConversationId(secrets.token_hex(8))


def new_request_id() -> RequestId:
    return RequestId("req_" + secrets.token_hex(8))


def new_message_id() -> MessageId:
    return MessageId("msg_" + secrets.token_hex(8))

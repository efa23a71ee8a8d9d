"""Durable events to JSON lines and back, with a schema version (TR-1).

One line: {v, uuid, parentUuid, agentId, seq, at, type, event}; `type` is assistant, user or progress, `event` the body
tagged with its class name. Unknown fields are ignored, an unknown version is an error that names it.
"""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from agent_core.events import DurableBody, Event, MessageAdded
from agent_core.ids import AgentId
from agent_core.messages import Block, ImageBlock, TextBlock

if TYPE_CHECKING:
    from cattrs import Converter

VERSION = 1


class BadRecord(ValueError):
    """A line that is no record of ours; the text says why."""


def encode(event: Event) -> bytes:
    body = _converter().unstructure(event.body, DurableBody)
    record = {
        "v": VERSION,
        "uuid": _uuid(event.agent_id, event.seq),
        "parentUuid": _uuid(event.agent_id, event.seq - 1) if event.seq > 1 else None,
        "agentId": event.agent_id,
        "seq": event.seq,
        "at": event.at.isoformat(),
        "type": event.body.message.role if isinstance(event.body, MessageAdded) else "progress",
        "event": body,
    }
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


def decode(line: bytes) -> Event:
    """BadRecord when the line is torn, of another version, or damaged."""
    try:
        record = json.loads(line.decode("utf-8", "surrogatepass"))
        if record["v"] != VERSION:
            raise BadRecord(f"transcript version {record['v']}, this program reads {VERSION}")
        body: DurableBody = _converter().structure(record["event"], DurableBody)  # type: ignore[arg-type]
        return Event(AgentId(record["agentId"]), record["seq"], None, datetime.fromisoformat(record["at"]), body)
    except BadRecord:
        raise
    except Exception as error:
        raise BadRecord(f"not a transcript record: {type(error).__name__}") from error


def _uuid(agent_id: str, seq: int) -> str:
    return f"{agent_id}-{seq}"


@cache
def _converter() -> Converter:
    from cattrs import Converter
    from cattrs.strategies import configure_tagged_union

    converter = Converter()
    converter.register_unstructure_hook(datetime, lambda at: at.isoformat())
    converter.register_structure_hook(datetime, lambda text, _: datetime.fromisoformat(text))
    converter.register_unstructure_hook(Path, str)
    converter.register_structure_hook(Path, lambda text, _: Path(text))
    for union in (TextBlock | ImageBlock, Block, DurableBody):
        configure_tagged_union(union, converter, tag_name="type")
    return converter

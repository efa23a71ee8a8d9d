"""The least that a tool loop over the SDK costs: ask, read a file, ask again. Its source is kept as it is.

`python -m tests.benchmarks.floor REQUEST.json FILE TURNS` sends the tools and the system prompt of a request of the
product, so that both sides put the same bytes on the wire.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from anthropic import AsyncAnthropic


async def main(request: Path, file: Path, turns: int) -> None:
    first = json.loads(request.read_text("utf-8"))
    client = AsyncAnthropic(max_retries=0)
    messages = [{"role": "user", "content": "floor"}]
    for _ in range(turns + 1):
        content, text, call = [], "", None
        stream = await client.messages.create(
            model=first["model"],
            max_tokens=first["max_tokens"],
            system=first["system"],
            tools=first["tools"],
            messages=messages,
            stream=True,
        )
        async for event in stream:
            if event.type == "content_block_start":
                call, text = event.content_block, ""
            elif event.type == "content_block_delta":
                text += getattr(event.delta, "partial_json", None) or getattr(event.delta, "text", "")
            elif event.type == "content_block_stop" and call.type == "tool_use":
                content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(text)})
            elif event.type == "content_block_stop":
                content.append({"type": "text", "text": text})
        messages.append({"role": "assistant", "content": content})
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": file.read_text("utf-8")}
            for block in content
            if block["type"] == "tool_use"
        ]
        if not results:
            return
        messages.append({"role": "user", "content": results})


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))

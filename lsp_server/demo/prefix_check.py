"""Checks that each request of a conversation extends an earlier one: same tools, same system, messages[:n] the same."""

from __future__ import annotations

from attrs import define, field

from lsp_server.demo.body import Rendered

Mark = tuple[bytes, bytes, int, bytes]


@define
class PrefixCheck:
    """Knows digests only. Several runs of one conversation may be interleaved: it is enough to extend any of them."""

    _seen: dict[str, set[Mark]] = field(factory=dict)
    _last: dict[str, Rendered] = field(factory=dict)

    def problem(self, conversation: str, request: Rendered, assistants: int) -> str | None:
        """How the request breaks the rule; None when it keeps it. Records it in both cases."""
        seen = self._seen.setdefault(conversation, set())
        last = self._last.get(conversation)
        count = len(request.marks)
        extends = any((request.tools, request.system, n, request.marks[n]) in seen for n in range(1, count))
        seen.add((request.tools, request.system, count - 1, request.marks[-1]))
        self._last[conversation] = request
        if last is None or extends or not assistants:
            return None
        return f"the prefix changed within conversation {conversation!r}: {_difference(last, request)}"


def _difference(last: Rendered, request: Rendered) -> str:
    if last.tools != request.tools:
        return "`tools` differ from those of an earlier request"
    if last.system != request.system:
        return "`system` differs from that of an earlier request"
    for index, (old, new) in enumerate(zip(last.marks[1:], request.marks[1:], strict=False)):
        if old != new:
            return f"messages.{index} differs from that of an earlier request"
    return "earlier messages are missing"

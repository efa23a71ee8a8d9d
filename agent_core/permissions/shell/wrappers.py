"""Programs that run another one and change nothing of what it does: for an allow they are not there. Pure.

Their options are known one by one; with any other option a wrapper is left where it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import evolve

from agent_core.permissions.shell.parse import SimpleCommand
from agent_core.permissions.shell.words import Word

_DURATION = r"\d+(\.\d+)?[smhd]?"
_ALONE: Mapping[str, str] = {
    "timeout": r"--foreground|--preserve-status|-v|--verbose|--kill-after=.+|--signal=\w+|-k.+|-s\w+",
    "time": r"-p",
    "nice": r"-n-?\d+|-\d+|--adjustment=-?\d+",
    "nohup": r"(?!)",
    "stdbuf": r"-[ioe][L\d]\w*|--(input|output|error)=\w+",
    "command": r"-p",
    "builtin": r"(?!)",
    "noglob": r"(?!)",
    "xargs": r"(?!)",
}
"""Options in one word."""
_WITH_VALUE: Mapping[str, str] = {"timeout": r"-[ks]", "nice": r"-n", "stdbuf": r"-[ioe]"}
FROM_INPUT = Word("<what xargs reads>", None)
"""Arguments that nobody knows yet."""


def unwrapped(command: SimpleCommand) -> SimpleCommand:
    """The command that is run in the end, with the same assignments; itself when it has no wrapper."""
    words = command.words
    while (rest := _rest(words)) is not None:
        words = rest
    return command if words is command.words else evolve(command, words=words)


def _rest(words: tuple[Word, ...]) -> tuple[Word, ...] | None:
    name = words[0].literal if words else None
    if name is None or name not in _ALONE:
        return None
    texts = [word.literal for word in words]
    index = 1
    while index < len(texts) and (text := texts[index]) is not None and text.startswith("-"):
        if text == "--":
            index += 1
            break
        if name in _WITH_VALUE and re.fullmatch(_WITH_VALUE[name], text):
            index += 2
        elif re.fullmatch(_ALONE[name], text):
            index += 1
        else:
            return None
    if name == "timeout":
        if index >= len(texts) or not re.fullmatch(_DURATION, texts[index] or ""):
            return None
        index += 1
    rest = words[index:]
    if not rest or rest[0].literal is None or rest[0].literal.startswith("-"):
        return None
    return (*rest, FROM_INPUT) if name == "xargs" else rest

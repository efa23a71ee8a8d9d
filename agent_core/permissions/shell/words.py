"""Words of a command: the text that bash makes of them, where that can be known. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import evolve, frozen

_PLAIN = re.compile(r"[\w@%+=:,./\ue000-]+")
"""What needs no quotes; the private character stands for the wildcard of a rule."""

VARIABLES = ("HOME", "PWD")
"""Variables whose value is certain as long as the command does not set them."""
_UNQUOTED, _IN_QUOTES = "\ue010\ue011", "\ue020\ue021"
"""A mark for each of them."""
_SPLITS = re.compile(r"[\s*?\[\]\\{}~]")


@frozen
class Word:
    """`text` is what a program gets; None when an expansion decides. Of a `pattern`, which names files that bash looks
    for, it is the pattern. `home`: it begins with an unquoted `~/`, which is kept in `text`. `template`: where only
    variables of VARIABLES decide, the same word with a mark for each."""

    source: str
    text: str | None
    pattern: bool = False
    home: bool = False
    template: Word | None = None

    @property
    def literal(self) -> str | None:
        return None if self.pattern or self.home else self.text

    @property
    def canonical(self) -> str:
        """One spelling for all ways to quote the same word."""
        return self.source if self.literal is None else quoted(self.literal)


def quoted(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else "'" + text.replace("'", "'\\''") + "'"


def marked(expansion: str, *, in_quotes: bool) -> str | None:
    """The mark for `$HOME` or `${HOME}`; None for any other expansion."""
    name = expansion[2:-1] if expansion.startswith("${") else expansion[1:]
    marks = _IN_QUOTES if in_quotes else _UNQUOTED
    return marks[VARIABLES.index(name)] if name in VARIABLES else None


def unmarked(word: Word, values: Mapping[str, str]) -> Word:
    """With the values of the variables put in; as it is where one is missing, or where its value would be split."""
    if word.template is None:
        return word
    text = word.template.text or ""
    for name, unquoted, in_quotes in zip(VARIABLES, _UNQUOTED, _IN_QUOTES, strict=True):
        if unquoted not in text and in_quotes not in text:
            continue
        value = values.get(name)
        if value is None or (_SPLITS.search(value) and (unquoted in text or word.template.pattern)):
            return word
        text = text.replace(unquoted, value).replace(in_quotes, value)
    return evolve(word.template, text=text)


def unescaped(text: str) -> Word:
    """An unquoted piece of a word."""
    out: list[str] = []
    special, escaped = False, False
    for character in text:
        if escaped:
            out.append("" if character == "\n" else character)
            escaped = False
        elif character == "\\":
            escaped = True
        else:
            special = special or character in "*?[{"
            out.append(character)
    return Word(text, "".join(out), special, text.startswith("~"))


def in_double_quotes(inner: str) -> str:
    return re.sub(r'\\([$`"\\\n])', lambda found: "" if found[1] == "\n" else found[1], inner)


_ANSI = re.compile(
    r"\\(?:(?P<simple>[abeEfnrtv\\'\"?])|x(?P<hex>[0-9a-fA-F]{1,2})|u(?P<u>[0-9a-fA-F]{1,4})"
    r"|U(?P<U>[0-9a-fA-F]{1,8})|(?P<octal>[0-7]{1,3})|(?P<other>.))",
    re.DOTALL,
)
_SIMPLE = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def in_ansi_quotes(inner: str) -> str | None:
    """Of `$'...'`. None for what is better not interpreted."""
    if re.search(r"\\c|\\x[^0-9a-fA-F]", inner):
        return None
    try:
        return _ANSI.sub(_ansi, inner)
    except (ValueError, OverflowError):
        return None


def _ansi(found: re.Match[str]) -> str:
    if found["simple"]:
        return _SIMPLE.get(found["simple"], found["simple"])
    if digits := found["hex"] or found["u"] or found["U"]:
        return _character(int(digits, 16))
    if found["octal"]:
        return _character(int(found["octal"], 8) & 0xFF)
    return f"\\{found['other']}"


def _character(code: int) -> str:
    if code == 0 or 0x7F < code < 0x100:  # ends the string, or is one byte of a character
        raise ValueError
    return chr(code)

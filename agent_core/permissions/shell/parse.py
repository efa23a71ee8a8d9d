"""A command text to all simple commands in it, wherever they stand: the same that bash would run, or more (PM-4). Pure.

Every byte must belong to a node of a known kind, or be white space between two: what the grammar skips, repairs or
does not know makes the whole text one that cannot be taken apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from attrs import define, field, frozen

from agent_core.permissions.shell.arithmetic import hidden_command
from agent_core.permissions.shell.words import Word, in_ansi_quotes, in_double_quotes, marked, unescaped

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LONGEST = 10_000
"""Characters."""


@frozen
class Assignment:
    """`value` None: an array, or what cannot be known."""

    name: str
    value: str | None


@frozen
class SimpleCommand:
    """`words` begin with the program; empty when there are assignments only."""

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...] = ()
    source: str = ""

    @property
    def program(self) -> str | None:
        return self.words[0].literal if self.words else None

    @property
    def canonical(self) -> str:
        return " ".join(word.canonical for word in self.words)


@frozen
class Redirect:
    """`target` None: it duplicates or closes a descriptor."""

    operator: str
    target: Word | None

    @property
    def writes(self) -> bool:
        return self.operator != "<"


@frozen
class Script:
    """`problem`: why the text cannot be taken apart; then nothing else is told. `goes_to`: the folder of a `cd` that
    everything else runs after, and only if it worked. `hidden`: why more may run than the commands that stand there.
    """

    commands: tuple[SimpleCommand, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    problem: str | None = None
    goes_to: Word | None = None
    hidden: str | None = None


class _Unknown(Exception):
    """The text says what."""


@lru_cache(maxsize=256)
def parse(text: str) -> Script:
    if len(text) > LONGEST:
        return Script(problem=f"it is longer than {LONGEST} characters")
    if "\\\n#" in text:
        return Script(problem="a line that goes on begins with #")
    if re.search(r"[\0\r\v\f]", text):
        return Script(problem="it holds control characters that are no blanks for bash")
    try:
        data = text.encode()
        root = _parser().parse(data).root_node
        walk = _Walk(data)
        walk.visit(root)
        place = hidden_command(root)
    except (_Unknown, UnicodeEncodeError, RecursionError) as error:
        return Script(problem=str(error) if isinstance(error, _Unknown) else "it cannot be read")
    hidden = None if place is None else f"{place[:40]!r} may run what stands in a text"
    return Script(tuple(walk.commands), tuple(walk.redirects), None, _goes_to(walk, root), hidden)


_INSIDE = frozenset(
    {"program", "list", "pipeline", "subshell", "compound_statement", "do_group", "if_statement", "elif_clause"}
    | {"else_clause", "while_statement", "c_style_for_statement", "case_statement", "case_item"}
    | {"function_definition", "negated_command", "command_substitution", "process_substitution", "test_command"}
    | {"redirected_statement", "string", "translated_string", "concatenation", "expansion", "arithmetic_expansion"}
    | {"binary_expression", "unary_expression", "parenthesized_expression", "ternary_expression", "array"}
    | {"postfix_expression", "subscript", "variable_assignments", "simple_expansion", "heredoc_body"}
    | {"brace_expression"}
)
"""What is only gone through."""
_LEAVES = frozenset(
    {"word", "number", "raw_string", "ansi_c_string", "variable_name", "special_variable_name", "string_content"}
    | {"comment", "test_operator", "file_descriptor", "regex", "extglob_pattern", "heredoc_start", "heredoc_end"}
    | {"heredoc_content"}
)
_QUOTED = frozenset({"raw_string", "ansi_c_string", "comment", "heredoc_start", "heredoc_end", "variable_name"})
_RESERVED = frozenset(
    {"!", "{", "}", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if"}
    | {"in", "select", "then", "until", "while"}
)
_HIDDEN = re.compile(r"(?<!\\)(?:\\\\)*(?:`|\$\()|[<>]\(")
"""A substitution that the grammar took for text."""

_NO_CHOICE = re.compile(r"[-\w./=+:@%^]*\{\w*\}[-\w./=+:@%^~]*")
"""`{}` is what find and xargs put a name in place of, `@{1}` a revision; bash leaves them as they are."""
_FUNCTION = Word("function", "function")
"""No program: it gives a new meaning to a name, `ls` perhaps, and may run itself without end."""


@define(eq=False)
class _Walk:
    data: bytes
    commands: list[SimpleCommand] = field(factory=list)
    redirects: list[Redirect] = field(factory=list)

    def text(self, node: Node) -> str:
        return self.data[node.start_byte : node.end_byte].decode()

    def visit(self, node: Node) -> None:
        if node.is_error or node.is_missing:
            raise _Unknown(f"bash would not understand it, or this program does not, near {self.text(node)[:40]!r}")
        self._check_gaps(node)
        match node.type:
            case "command" | "declaration_command" | "unset_command":
                self._command(node)
            case "variable_assignment":
                self._children(node)
                self.commands.append(SimpleCommand((), (self._assignment(node),), self.text(node)))
            case "for_statement":
                name = self.text(node.children[1])
                self.commands.append(SimpleCommand((), (Assignment(name, None),), f"for {name}"))
                self._children(node)
            case "function_definition":
                name = self.text(next(child for child in node.children if child.is_named))
                self.commands.append(SimpleCommand((_FUNCTION, Word(name, name)), (), f"function {name}"))
                self._children(node)
            case "file_redirect":
                self._redirect(node)
            case "heredoc_redirect":
                self._here_document(node)
            case "herestring_redirect":
                self._children(node)
            case "regex" if not _is_tested(node) or re.search(r"[\s;|&<>`]", self.text(node)):
                raise _Unknown(f"{self.text(node)[:40]!r} is no pattern for bash")
            case kind if kind in _LEAVES:
                self._leaf(node)
            case ";;" | ";&" | ";;&" if node.parent is not None and node.parent.type != "case_item":
                raise _Unknown(f"{node.type} outside of a case is not understood")
            case kind if kind in _INSIDE or not node.is_named:
                self._check_expansion(node)
                self._children(node)
            case kind:
                raise _Unknown(f"{kind} is not understood")

    def _children(self, node: Node) -> None:
        for child in node.children:
            self.visit(child)

    def _leaf(self, node: Node) -> None:
        if node.type == "comment" and not re.search(rb"(?:^|(?<!\\)[ \t\n;&|()])$", self.data[: node.start_byte]):
            raise _Unknown(f"{self.text(node)[:40]!r} is no comment for bash")
        if node.type not in _QUOTED and _HIDDEN.search(self.text(node)):
            raise _Unknown(f"there may be a substitution in {self.text(node)[:40]!r}")
        self._children(node)

    def _check_gaps(self, node: Node) -> None:
        """Between the children there is nothing but white space, and lines that go on; in strings anything."""
        if not node.children or node.type in ("string", "heredoc_body", "translated_string"):
            if node.type in ("string", "heredoc_body"):
                self._check_raw_gaps(node)
            return
        for gap in self._gaps(node):
            if gap.replace("\\\n", "").strip(" \t\r\n"):
                raise _Unknown(f"{gap.strip()[:40]!r} is not understood")

    def _check_raw_gaps(self, node: Node) -> None:
        """Without the substitutions that the grammar found nothing may look like one: of `"$ $(x)"` it makes the
        variable named `$` and a text."""
        for text in (*self._gaps(node), self._without_substitutions(node)):
            if _HIDDEN.search(text):
                raise _Unknown(f"there may be a substitution in {text[:40]!r}")

    def _gaps(self, node: Node) -> Iterator[str]:
        end = node.start_byte
        for child in node.children:
            if child.start_byte > end:
                yield self.data[end : child.start_byte].decode()
            end = max(end, child.end_byte)
        if node.end_byte > end:
            yield self.data[end : node.end_byte].decode()

    def _check_expansion(self, node: Node) -> None:
        """`${PATH:=x}` assigns; `${x@P}` and `${!x}` read what is in a variable once more; between backticks a
        backslash is removed before anything is read."""
        if node.type == "command_substitution" and self.text(node).startswith("`") and "\\" in self.text(node):
            raise _Unknown("a backslash between backticks is not understood")
        if node.type == "array" and any(self.text(child).startswith("[") for child in node.children):
            raise _Unknown("an array with indices is not understood")
        if node.type == "simple_expansion" and not re.fullmatch(r"\s*\$(\w+|[*@#?!$-])", self.text(node)):
            raise _Unknown(f"{self.text(node)[:40]!r} is no variable for bash")
        if node.type == "expansion":
            self._check_operand(node)
            inner = self.text(node)
            if re.match(r"\$\{!|\$\{[^}]*@[A-Za-z]\}?", inner) or re.match(r"\$\{\w+(\[[^\]]*\])?:?=", inner):
                raise _Unknown(f"{inner[:40]!r} changes or evaluates a variable")

    def _check_operand(self, node: Node) -> None:
        """Quotes, backslashes and `#` mean something else in `${x:-...}` than outside, and that differs with the quotes
        around it: what the grammar makes of them counts for nothing."""
        if re.search(r"['`\\\n]|\s#|<<|[()]", self._without_substitutions(node, backticks=False)):
            raise _Unknown(f"{self.text(node)[:40]!r} is not understood")

    def _without_substitutions(self, node: Node, *, backticks: bool = True) -> str:
        """A NUL, which no text holds, in place of each."""
        pieces, at = [], node.start_byte
        for child in _substitutions(node, backticks=backticks):
            pieces.append(self.data[at : child.start_byte].decode())
            at = child.end_byte
        return "\0".join([*pieces, self.data[at : node.end_byte].decode()])

    def _command(self, node: Node) -> None:
        words: list[Word] = []
        assignments: list[Assignment] = []
        declares = node.type != "command"
        self._check_joints(node)
        for child in node.children:
            match child.type:
                case "variable_assignment" if not words:
                    self._children(child)
                    assignments.append(self._assignment(child))
                case "file_redirect" | "heredoc_redirect" | "herestring_redirect":
                    self.visit(child)
                case "command_name":
                    self._check_gaps(child)
                    words.append(self._word(child.children[0]))
                case _ if declares and not child.is_named:
                    words.append(Word(self.text(child), self.text(child)))
                case "variable_assignment" | "variable_name":
                    self._children(child)
                    text = self.text(child)
                    words.append(Word(text, text if re.fullmatch(r"\w+(=[\w./:-]*)?", text) else None))
                case "subshell" | "(" | ")":
                    raise _Unknown(f"{self.text(child)[:40]!r} as an argument is not understood")
                case _:
                    words.append(self._word(child))
        self._check_reserved(words)
        self.commands.append(SimpleCommand(tuple(words), tuple(assignments), self.text(node)))

    def _check_joints(self, node: Node) -> None:
        """Of `'r'\\m` the grammar makes two words, and bash one; so does a line that goes on within a word."""
        for one, other in pairwise(node.children):
            between = self.data[one.end_byte : other.start_byte].decode().replace("\\\n", "")
            if "\n" in between or other.type == "=~":
                raise _Unknown(f"{self.text(other)[:40]!r} may be a command of its own")
            descriptor = other.child_count > 0 and other.children[0].type == "file_descriptor"
            if not between and (descriptor or not other.type.endswith("_redirect")):
                raise _Unknown(f"{self.text(one)[:20]}{self.text(other)[:20]} is one word")

    def _check_reserved(self, words: list[Word]) -> None:
        """`! ! x` runs x, and `time ! x` too: what the grammar takes for a program is none."""
        timed = [word.source for word in words[:1]] == ["time"]
        for word in words[: len(words) if timed else 1]:
            if word.source in _RESERVED:
                raise _Unknown(f"{word.source} is no program")

    def _word(self, node: Node) -> Word:
        self.visit(node)
        return self._value(node)

    def _value(self, node: Node) -> Word:
        source = self.text(node)
        match node.type:
            case "word" | "number" if not node.children:
                return unescaped(source)
            case "string":
                return self._string(node, source)
            case "simple_expansion" | "expansion":
                mark = marked(source, in_quotes=False)
                return Word(source, None, template=Word(source, mark) if mark else None)
            case "raw_string":
                return Word(source, source[1:-1])
            case "ansi_c_string":
                return Word(source, in_ansi_quotes(source[2:-1]))
            case "concatenation":
                return self._joined(node, source)
            case _ if not node.is_named:
                return Word(source, source)
            case _:
                return Word(source, None)

    def _string(self, node: Node, source: str) -> Word:
        """Between double quotes."""
        pieces, end = [], node.start_byte + 1
        for child in node.children[1:-1]:
            known = child.type in ("simple_expansion", "expansion") and marked(self.text(child), in_quotes=True)
            if child.is_named and child.type != "string_content" and not known:
                return Word(source, None)
            pieces += [self.data[end : child.start_byte].decode(), known or self.text(child)]
            end = child.end_byte
        inner = "".join([*pieces, self.data[end : node.end_byte - 1].decode()])
        if "$" in _no_escapes(inner):
            return Word(source, None)
        text = in_double_quotes(inner)
        whole = Word(source, text)
        return whole if inner == source[1:-1] else Word(source, None, template=whole)

    def _joined(self, node: Node, source: str) -> Word:
        pieces = [self._value(child) for child in node.children]
        filled = [piece.template or piece for piece in pieces]
        if "".join(piece.source for piece in pieces) != source or any(piece.text is None for piece in filled):
            return Word(source, None)
        text = "".join(piece.text or "" for piece in filled)
        pattern = any(piece.pattern for piece in filled) and not _NO_CHOICE.fullmatch(source)
        whole = Word(source, text, pattern, pieces[0].home)
        return whole if filled == pieces else Word(source, None, template=whole)

    def _assignment(self, node: Node) -> Assignment:
        name = node.child_by_field_name("name")
        value = node.child_by_field_name("value")
        adds = any(child.type == "+=" for child in node.children)
        if name is None or name.type != "variable_name":
            return Assignment(re.split(r"[\[=+]", self.text(node), maxsplit=1)[0], None)
        return Assignment(self.text(name), None if adds else "" if value is None else self._value(value).literal)

    def _redirect(self, node: Node) -> None:
        operator = next(child.type for child in node.children if not child.is_named and re.search("[<>]", child.type))
        targets = [child for child in node.children if child.is_named and child.type != "file_descriptor"]
        for target in targets:
            self.visit(target)
        if len(targets) > 1:
            raise _Unknown(f"{self.text(node)[:40]!r} is not understood")
        word = self._value(targets[0]) if targets else None
        if operator in (">&", "<&", ">&-", "<&-") and (word is None or re.fullmatch(r"\d+-?|-", word.text or "")):
            word = None
        self.redirects.append(Redirect(operator.replace("<&", "<"), word))

    def _mark(self, document: Node) -> str:
        """As it is written after `<<`."""
        return next((self.text(child) for child in document.children if child.type == "heredoc_start"), "")

    def _ends(self, end: Node, mark: str, document: Node) -> bool:
        """It is the first line that bash would take for the end; a line that goes on could hide another one."""
        before, after = self.data[: end.start_byte].decode(), self.data[end.end_byte :].decode()
        body = before[len(self.data[: document.start_byte].decode()) :].partition("\n")[2]
        *lines, start = body.split("\n")
        start += self.text(end).rstrip("\n")
        if any(child.type == "<<-" for child in document.children):
            lines, start = [line.lstrip("\t") for line in lines], start.lstrip("\t")
        quoted = mark != self._mark(document)
        if not quoted and re.search(r"`|\$\(", body) and re.search(r"[\\'\"#]", body):
            return False  # what stands beside a substitution may hide it from the grammar
        alone = start == mark and (not after or after[0] == "\n" or self.text(end).endswith("\n"))
        return alone and mark not in lines and "\\\n" not in body

    def _here_document(self, node: Node) -> None:
        """With a quoted end mark nothing in it is expanded."""
        start = self._mark(node)
        ends = [child for child in node.children if child.type == "heredoc_end"]
        if len(ends) != 1 or not self._ends(ends[0], re.sub(r"['\"\\]", "", start), node):
            raise _Unknown("the here-document ends elsewhere for bash")
        for child in node.children:
            if child.type == "heredoc_body" and re.search(r"['\"\\]", start):
                continue
            if child.type == "heredoc_body" and not child.children and _HIDDEN.search(self.text(child)):
                raise _Unknown("there may be a substitution in the here-document")
            self.visit(child)


def _substitutions(node: Node, *, backticks: bool) -> Iterator[Node]:
    """The `$(...)`, `$((...))` and perhaps those between backticks in it, from the left, the outer ones."""
    for child in node.children:
        if child.type == "arithmetic_expansion" or (
            child.type == "command_substitution" and (backticks or child.children[0].type == "$(")
        ):
            yield child
        else:
            yield from _substitutions(child, backticks=backticks)


def _no_escapes(text: str) -> str:
    return re.sub(r"\\.", "", text, flags=re.DOTALL)


def _is_tested(node: Node) -> bool:
    """It stands between `[[` and `]]`, or is the pattern of `${x%...}`; elsewhere `=~` is a word as any other."""
    if node.parent is not None and node.parent.type == "expansion":
        return True
    while node.parent is not None and node.type != "test_command":
        node = node.parent
    return node.type == "test_command" and node.children[0].type == "[["


def _goes_to(walk: _Walk, root: Node) -> Word | None:
    """`cd folder && ...`, where nothing else changes the folder."""
    changes = [command for command in walk.commands if changes_folder(command)]
    node = root.children[0] if root.child_count == 1 else None
    while node is not None and node.type == "list":
        if node.children[1].type != "&&":
            return None
        node = node.children[0]
    if node is None or node.type != "command" or len(changes) != 1 or node.parent is root:
        return None
    (first,) = changes
    simple = walk.commands[0] is first and first.source == walk.text(node) and not first.assignments
    return first.words[1] if simple and len(first.words) == 2 and first.program == "cd" else None


def changes_folder(command: SimpleCommand) -> bool:
    words = [word.literal for word in command.words]
    while words and words[0] in ("builtin", "command"):
        words = words[1:]
    return bool(words) and words[0] in ("cd", "pushd", "popd")


@cache
def _parser() -> Parser:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))

"""Where bash runs what stands in a mere text (PM-4). Pure.

In a calculation the value of a variable is a calculation again, and the index of an array in it may hold a command:
`x='a[$(rm y)]'; echo $((x))` runs rm. So does a test such as `[[ -v 'a[$(rm y)]' ]]`, and a builtin that is given the
name of a variable.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

_NAME = re.compile(r"[A-Za-z_]\w*|\d+")
"""`$1` is the variable 1."""
_COMPARES = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_TAKES_NAMES = frozenset({"-v", "-R"})
_SETS = frozenset({"read", "mapfile", "readarray", "getopts", "let", "wait", "unset"})
_SETS_WITH_OPTION = frozenset({"printf", "test", "["})
_FILLED = frozenset({"_", "REPLY", "MAPFILE", "OPTARG", "BASH_REMATCH", "DIRSTACK"})
"""By bash itself, with texts of the command."""
_TEXTS = frozenset({"raw_string", "ansi_c_string", "string_content", "word", "regex", "extglob_pattern"})
_RUNS = frozenset({"command_substitution", "process_substitution"})


def hidden_command(root: Node) -> str | None:
    """Where a command may run that nobody sees; None when there is no such place."""
    used: set[str] = set()
    for place in _calculated(root):
        texts = [_text(leaf) for leaf in _all(place) if leaf.type in _TEXTS]
        if any(text != "[" and re.search(r"[\[\\`]|\$\(", text) for text in texts):
            return _text(place)
        if any(each.type in _RUNS for each in _all(place)):
            return f"the calculation with what {_text(place)[:40]} prints"
        variables = [_text(each) for each in _all(place) if each.type in ("variable_name", "special_variable_name")]
        used |= {name for text in [*texts, *variables] for name in _NAME.findall(text)}
    given = _given(root) if used else {}
    return next((f"the calculation with {name}" for name in sorted(_reached(used, given)) if _open(name, given)), None)


def _all(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _all(child)


def _text(node: Node) -> str:
    return (node.text or b"").decode()


def _calculated(root: Node) -> Iterator[Node]:
    for node in _all(root):
        first = _text(node.children[0]) if node.children else ""
        match node.type:
            case "arithmetic_expansion":
                yield node
            case "compound_statement" if first == "((":
                yield node
            case "c_style_for_statement":
                yield from (child for child in node.children if child.type not in ("do_group", "compound_statement"))
            case "subscript":
                yield from node.children[2:-1]
            case "expansion":
                colon = next((index for index, child in enumerate(node.children) if child.type == ":"), None)
                yield from () if colon is None else node.children[colon + 1 :]
            case "test_command":
                yield from _tested(node, doubled=first == "[[")
            case "command" | "declaration_command" | "unset_command":
                yield from _named(node, first)
            case _:
                pass


def _tested(test: Node, *, doubled: bool) -> Iterator[Node]:
    """Of `[[ x -eq y ]]` both sides, of `[ -v x ]` the name."""
    for node in _all(test):
        signs = {_text(child) for child in node.children if child.type == "test_operator"}
        if (doubled and signs & _COMPARES) or signs & _TAKES_NAMES:
            yield from (child for child in node.children if child.type != "test_operator")


def _named(command: Node, program: str) -> Iterator[Node]:
    """The words of a builtin that takes names of variables which may have an index; what `let` calculates."""
    words = [child for child in command.children[1:] if child.is_named and child.type != "variable_assignment"]
    options = {_text(word) for word in words}
    takes = program in _SETS or command.type != "command" or (program in _SETS_WITH_OPTION and options & _TAKES_NAMES)
    if program == "let" or any(re.fullmatch(r"-\w*i\w*", text) for text in options if command.type != "command"):
        yield from command.children[1:]
    elif takes:
        yield from (word for word in words if "[" in _text(word))


Values = Mapping[str, Sequence["Node | None"]]


def _given(root: Node) -> Values:
    """Names to what they are given; None is what nobody knows."""
    found: dict[str, list[Node | None]] = defaultdict(list, {name: [None] for name in _FILLED})
    for node in _all(root):
        program = _text(node.children[0]) if node.type == "command" else ""
        if node.type == "variable_assignment" and (value := node.child_by_field_name("value")):
            found[_NAME.findall(_text(node))[0]].append(value)
        elif node.type == "for_statement":
            found[_text(node.children[1])] += [child for child in node.children[2:] if child.type != "do_group"]
        elif node.type == "function_definition" or program in ("set", "shift", "source", ".", "eval"):
            for digit in "123456789":
                found[digit].append(None)
        elif program in _SETS | {"printf"} and (program != "printf" or "-v" in _text(node)):
            for name in _NAME.findall(_text(node)):
                found[name].append(None)
    return found


def _reached(used: Iterable[str], given: Values) -> set[str]:
    """With the names in the values of names."""
    reached: set[str] = set()
    left = list(used)
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += [each for value in given.get(name, ()) if value for each in _NAME.findall(_text(value))]
    return reached


def _open(name: str, given: Values) -> bool:
    """It may hold the index of an array."""
    return any(value is None or _may_index(value) for value in given.get(name, ()))


def _may_index(value: Node) -> bool:
    runs = any(each.type in _RUNS for each in _all(value))
    return runs or any(character in _text(value) for character in "[\\*?")

"""protocol.md says what the wire types say, method by method."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lsp_server.capabilities import METHODS
from lsp_server.convert import event_body
from lsp_server.protocol import INBOUND, OUTBOUND_NOTIFICATIONS, OUTBOUND_REQUESTS
from tests.tools.wire_types import interfaces

PAGE = (Path(__file__).parent.parent / "protocol.md").read_text("utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")[1:]}
_INTERFACE = re.compile(r"^(interface (\w+) \{\n(?:  .*\n)*\})$", re.MULTILINE)
BLOCKS = {name: block for block, name in _INTERFACE.findall(PAGE)}
METHOD_NAMES = [*INBOUND, *OUTBOUND_REQUESTS, *OUTBOUND_NOTIFICATIONS]


def test_every_type_is_documented_as_it_is() -> None:
    assert interfaces() == {name: BLOCKS.get(name, "missing") for name in interfaces()}


def test_no_type_is_documented_that_does_not_exist() -> None:
    assert sorted(BLOCKS) == sorted(interfaces())


@pytest.mark.parametrize("method", METHOD_NAMES)
def test_every_method_has_a_whole_section(method: str) -> None:
    section = SECTIONS[method]
    for part in ("Capability:", "Errors:", "Example:", "Deliberately absent:"):
        assert part in section, f"{method} lacks {part}"


def test_no_section_without_a_method() -> None:
    assert [name for name in SECTIONS if name.startswith("agent/") and name not in METHOD_NAMES] == []


@pytest.mark.spec("ED-1")
def test_the_early_answer_names_the_methods_that_exist() -> None:
    """The bootstrap repeats the names because importing the types takes too long for it."""
    assert list(METHODS) == sorted(INBOUND)


def test_every_event_kind_is_documented() -> None:
    """The kinds are read from the source of the one function that writes them."""
    import inspect

    from lsp_server import convert

    source = (
        inspect.getsource(event_body) + inspect.getsource(convert._message) + inspect.getsource(convert._tool_called)
    )
    kinds = set(re.findall(r'"kind": "(\w+)"', source))
    documented = set(re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", SECTIONS["agent/progress"], re.MULTILINE))
    names = {name for row in documented for name in re.findall(r"`(\w+)`", row)} - {"kind"}
    assert kinds == names

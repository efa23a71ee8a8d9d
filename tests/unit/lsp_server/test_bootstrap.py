"""The first answer: right for every client, before anything is loaded, and with stdout kept for the protocol alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lsp_server.capabilities import COMMANDS, METHODS, initialize_result
from lsp_server.framing import MAX_BODY, BadFrame, content_length, first_frame, frame

AGENT = {"experimental": {"agent": {"version": 1}}}


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (None, "utf-16"),
        ([], "utf-16"),
        (["utf-8", "utf-16"], "utf-8"),
        (["utf-16", "utf-8"], "utf-16"),
        (["utf-32"], "utf-32"),
        (["utf-7", "utf-32"], "utf-32"),
        (["utf-7"], "utf-16"),
    ],
)
def test_position_encodings(offered: list[str] | None, chosen: str) -> None:
    client = {} if offered is None else {"general": {"positionEncodings": offered}}
    assert initialize_result({"capabilities": client})["capabilities"]["positionEncoding"] == chosen


@pytest.mark.spec("ED-1", "ED-4")
@pytest.mark.parametrize(
    ("client", "plain"),
    [({}, True), (AGENT, False), ({"experimental": {"agent": {"version": 2}}}, True), ({"experimental": 5}, True)],
)
def test_commands_and_code_actions_are_for_plain_clients_only(client: Any, plain: bool) -> None:
    capabilities = initialize_result({"capabilities": client})["capabilities"]
    assert ("executeCommandProvider" in capabilities, "codeActionProvider" in capabilities) == (plain, plain)
    assert capabilities["experimental"]["agent"]["methods"] == list(METHODS)


def test_every_command_is_a_method() -> None:
    assert {f"agent/{name.removeprefix('agent.')}" for name in COMMANDS} <= set(METHODS)


@pytest.mark.parametrize("params", [{}, {"capabilities": None}, {"capabilities": {"general": None}}])
def test_odd_params_are_answered(params: Any) -> None:
    assert initialize_result(params)["serverInfo"]["name"] == "agent-ls"


def test_frames() -> None:
    data = frame({"a": "ü"})
    assert first_frame(data + b"rest") == (data.partition(b"\r\n\r\n")[2], len(data))
    assert [first_frame(data[:end]) for end in range(len(data))] == [None] * len(data)


@pytest.mark.parametrize(
    ("headers", "length"),
    [([b"Content-Length: 5"], 5), ([b"content-length:5"], 5), ([b"Content-Type: x", b"CONTENT-LENGTH :  5 "], 5)],
)
def test_headers_in_any_case(headers: list[bytes], length: int) -> None:
    assert content_length(headers) == length


@pytest.mark.parametrize(
    "headers",
    [[], [b"X: 1"], [b"Content-Length: -1"], [b"Content-Length: x"], [b"Content-Length: %d" % (MAX_BODY + 1)]],
)
def test_bad_headers(headers: list[bytes]) -> None:
    with pytest.raises(BadFrame):
        content_length(headers)


def test_k1_what_else_prints_does_not_reach_the_client(tmp_path: Path) -> None:
    """Print, the file descriptor itself, and a child that inherits it."""
    code = (
        "import os, subprocess\n"
        "from lsp_server.bootstrap import private_stdout\n"
        "output = private_stdout()\n"
        "print('a stray print', flush=True); os.write(1, b'a stray write\\n')\n"
        "subprocess.run(['echo', 'a stray child'])\n"
        "os.write(output, b'the protocol')\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert run.stdout == b"the protocol"
    assert run.stderr.split(b"\n")[:3] == [b"a stray print", b"a stray write", b"a stray child"]


def test_the_class_cache_is_private_and_damage_does_no_harm(tmp_path: Path) -> None:
    code = (
        "from lsp_server.class_cache import cached_classes\n"
        "with cached_classes():\n"
        "    from lsprotocol import types\n"
        "print(types.Position(1, 2))"
    )
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}

    def run() -> str:
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout

    assert run() == "1:2\n"
    (cache,) = (tmp_path / "agent-ls").iterdir()
    assert cache.stat().st_mode & 0o777 == 0o600
    written = cache.stat().st_mtime_ns
    assert (run(), cache.stat().st_mtime_ns) == ("1:2\n", written)
    cache.write_bytes(b"damage")
    assert run() == "1:2\n"
    cache.chmod(0o666)
    evil = json.dumps({"x": 1}).encode()
    cache.write_bytes(evil)
    assert run() == "1:2\n"


def test_an_interrupt_before_the_first_message_is_no_traceback() -> None:
    code = (
        "import os, sys\n"
        "from lsp_server.__main__ import main\n"
        "def interrupted(*_): raise KeyboardInterrupt\n"
        "os.read, sys.argv = interrupted, ['agent-ls', 'serve']\n"
        "sys.exit(main())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "")

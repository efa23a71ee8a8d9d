"""The project of the demo: a small shop whose test fails, and the scripted model that mends it.

The model reads three files, edits one, adds one, deletes one, asks to run the test and answers.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lsp_server.demo.script import Script, ToolUse, conversation, say, use

PROMPT = "The test of this project fails. Find out why, mend it, and show that the test passes."
DESCRIPTION = "Mend the failing test"
TEST_COMMAND = f"{shlex.quote(sys.executable)} -m unittest -v"
REMOVE_COMMAND = "rm shop/old_rounding.py"  # whether it is asked for is up to the server's permission rules

_CART = '''"""What a cart costs."""

from shop.old_rounding import to_cents


def total(prices):
    """The sum of the prices (texts such as "0.125"), in whole cents."""
    return sum(to_cents(price) for price in prices)
'''
_OLD_ROUNDING = '''"""Rounding by binary fractions: 0.125 becomes 12 cents, and sums drift."""


def to_cents(price):
    return round(float(price) * 100)
'''
_ROUNDING = '''"""Rounding as on a receipt: half a cent goes up, decided on decimal digits."""

from decimal import ROUND_HALF_UP, Decimal


def to_cents(price):
    return int((Decimal(price) * 100).quantize(Decimal(1), ROUND_HALF_UP))
'''
_TEST = """import unittest

from shop.cart import total


class CartTest(unittest.TestCase):
    def test_half_a_cent_goes_up(self):
        self.assertEqual(total(["0.125", "1.00"]), 113)


if __name__ == "__main__":
    unittest.main()
"""
_OLD_IMPORT, _NEW_IMPORT = "from shop.old_rounding import to_cents", "from shop.rounding import to_cents"

BEFORE = {
    ".gitignore": "__pycache__/\n",
    "README.md": "# Shop\n\nA cart that adds up prices. Test it with `python -m unittest`.\n",
    "shop/__init__.py": "",
    "shop/cart.py": _CART,
    "shop/old_rounding.py": _OLD_ROUNDING,
    "tests/__init__.py": "",
    "tests/test_cart.py": _TEST,
}
CHANGES = {  # path to (status, content afterwards)
    "shop/cart.py": ("modified", _CART.replace(_OLD_IMPORT, _NEW_IMPORT)),
    "shop/old_rounding.py": ("deleted", None),
    "shop/rounding.py": ("added", _ROUNDING),
}
FIRST_ALONE = "shop/rounding.py"  # can be applied without the others: nothing uses it yet


def has_run(command: str, folder: Path) -> bool:
    """Whether one of the two commands left its traces there."""
    if command == TEST_COMMAND:
        return (folder / "tests/__pycache__").exists()
    return not (folder / "shop/old_rounding.py").exists()


def make_project(folder: Path) -> None:
    """A git repository with one commit. CalledProcessError when git fails."""
    for name, text in BEFORE.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=Demo", "-c", "user.email=demo@localhost", "commit", "-q", "-m", "A shop")


def git(folder: Path, *args: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    clean = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *args], cwd=folder, env={**env, **clean}, capture_output=True, text=True, check=True)
    return done.stdout


def test_passes(folder: Path) -> bool:
    """Runs the project's test there and leaves no trace."""
    command = [sys.executable, "-B", "-m", "unittest", "-q"]
    return subprocess.run(command, cwd=folder, capture_output=True, timeout=60, check=False).returncode == 0


def snapshot(folder: Path) -> Mapping[str, bytes]:
    """Every file of the checkout, by relative path, and the state of HEAD."""
    paths = [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.relative_to(folder).parts]
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    return {**files, "HEAD": git(folder, "rev-parse", "HEAD", "--abbrev-ref", "HEAD").encode()}


def demo_script(per_delta_ms: float) -> Script:
    """`per_delta_ms`: how fast the model appears to write."""
    speed: dict[str, Any] = {"chunk": 6, "per_delta_ms": per_delta_ms, "first_byte_ms": per_delta_ms * 20}
    seen = "The test passes. `shop.rounding` rounds decimally, `old_rounding` is gone."
    unseen = "I changed the rounding, but did not see the test pass: please check it."
    turns = (
        say("I start with the failing test, and with the code that it checks.", *_reads(), **speed),
        say(
            "Found it: `old_rounding` rounds binary fractions, so 0.125 becomes 12 cents. "
            "I put a decimal rounding in its place and remove the old one.",
            *_changes(),
            **speed,
        ),
        say("Now the test.", use("Bash", command=TEST_COMMAND, description="Run the test"), **speed),
        (*say(seen, when="OK", **speed), *say(unseen, **speed)),
    )
    return Script((conversation(*turns, name="demo", user=PROMPT),))


def _reads() -> tuple[ToolUse, ...]:
    return tuple(use("Read", file_path=name) for name in ("tests/test_cart.py", "shop/cart.py", "shop/old_rounding.py"))


def _changes() -> tuple[ToolUse, ...]:
    return (
        use("Write", file_path="shop/rounding.py", content=_ROUNDING),
        use("Edit", file_path="shop/cart.py", old_string=_OLD_IMPORT, new_string=_NEW_IMPORT),
        use("Bash", command=REMOVE_COMMAND, description="Remove the old rounding"),
    )

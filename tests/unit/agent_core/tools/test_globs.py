from __future__ import annotations

import pytest

from agent_core.errors import ToolError
from agent_core.tools.globs import compile_glob, literal_folder, name_globs

PATHS = ["a.py", ".hidden.py", "src/a.py", "src/x/b.ts", "src/x/b.tsx", "src/x/y/c.py", "d[1].md"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.py", ["a.py", ".hidden.py", "src/a.py", "src/x/y/c.py"]),
        ("**/*.py", ["a.py", ".hidden.py", "src/a.py", "src/x/y/c.py"]),
        ("./src/*.py", ["src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/x/y/c.py"]),
        ("src/**", ["src/a.py", "src/x/b.ts", "src/x/b.tsx", "src/x/y/c.py"]),
        ("src/x/", ["src/x/b.ts", "src/x/b.tsx", "src/x/y/c.py"]),
        ("*.{ts,tsx}", ["src/x/b.ts", "src/x/b.tsx"]),
        ("{src/*,a}.py", ["a.py", "src/a.py"]),
        ("**/{b.t{s,sx},c.py}", ["src/x/b.ts", "src/x/b.tsx", "src/x/y/c.py"]),
        ("[ac].py", ["a.py", "src/a.py", "src/x/y/c.py"]),
        ("[!a].py", ["src/x/y/c.py"]),
        ("?.py", ["a.py", "src/a.py", "src/x/y/c.py"]),
        ("!*.py", ["src/x/b.ts", "src/x/b.tsx", "d[1].md"]),
        ("src?a.py", []),
        ("d[[]1].md", ["d[1].md"]),
        ("a[.py", []),
    ],
)
def test_matching(pattern: str, expected: list[str]) -> None:
    assert [path for path in PATHS if compile_glob(pattern).matches(path)] == expected


def test_anchored() -> None:
    assert [path for path in PATHS if compile_glob("*.py", anchored=True).matches(path)] == ["a.py", ".hidden.py"]


def test_bad_patterns_are_explained() -> None:
    with pytest.raises(ToolError, match="more than 200 alternatives"):
        compile_glob("{a,b}" * 10)
    with pytest.raises(ToolError, match="is not a set of characters"):
        compile_glob("[z-a]")


def test_literal_folder() -> None:
    patterns = ["*.py", "src/a/**/*.py", "src/a.py", "/abs/{x,y}/z", "a/b*/c"]
    assert [literal_folder(pattern) for pattern in patterns] == [
        ("", "*.py"),
        ("src/a/", "**/*.py"),
        ("src/", "a.py"),
        ("/abs/", "{x,y}/z"),
        ("a/", "b*/c"),
    ]


def test_name_globs() -> None:
    patterns = ["*.py", "a/**/*.{ts,tsx}", "a/**", "{a/b,c}.py", "[ab].py"]
    assert [name_globs([pattern]) for pattern in patterns] == [("*.py",), ("*.{ts,tsx}",), (), (), ()]

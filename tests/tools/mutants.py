"""Do the tests that name a requirement find a fault in it? `python -m tests.tools.mutants [ID...] [--jobs 2]`

For each row of tests/mutants.toml the tracked files are copied, one line is changed, and only the tests that name the
row's id are run: those marked with it, or called test_e8_... for an entry of the user problems. A mutant that all of
them let pass survives, and the exit code is 1. First the same tests are run on the unchanged copy: they must pass.
Tests in real editors are left out; they need what was installed beside the sources.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from attrs import frozen

ROOT = Path(__file__).parents[2]
SECONDS = 300
"""Per mutant. One that hangs is found, too."""

_ENTRIES = re.compile(r"test_((?:[a-m]\d+_)+)")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_PASSED, _TESTS_FAILED = 0, 1


@frozen
class Mutant:
    id: str
    file: str
    before: str
    after: str

    @classmethod
    def of(cls, row: dict[str, str]) -> Mutant:
        return cls(row["id"], row["file"], row["from"], row["to"])

    @property
    def title(self) -> str:
        return f"{self.id} {self.file}: {self.before.strip()[:60]}"


def mutants() -> list[Mutant]:
    rows = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text("utf-8"))["mutant"]
    return [Mutant.of(row) for row in rows]


def named_tests() -> dict[str, list[str]]:
    """Ids to the tests that name them, as pytest is told of them; those that start no server come first."""
    found: dict[str, list[str]] = defaultdict(list)
    tests = ROOT / "tests"
    paths = [path for path in tests.rglob("test_*.py") if not path.is_relative_to(tests / "editors")]
    for path in sorted(paths, key=lambda path: (path.is_relative_to(tests / "e2e"), path)):
        for id, test in _names(path):
            if test not in found[id]:
                found[id].append(test)
    return found


def _names(path: Path) -> Iterator[tuple[str, str]]:
    """A mark inside a function's definition names that test, one elsewhere (`pytestmark`) the whole file."""
    file = path.relative_to(ROOT).as_posix()
    for statement in ast.parse(path.read_text("utf-8")).body:
        is_test = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
        test = f"{file}::{statement.name}" if is_test else file
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "spec":
                yield from ((str(each.value), test) for each in node.args if isinstance(each, ast.Constant))
        if is_test and (entries := _ENTRIES.match(statement.name)):
            yield from ((entry, test) for entry in entries[1].strip("_").split("_"))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.mutants", description="Faults that tests must find")
    parser.add_argument("ids", nargs="*", help="only those of these ids")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    chosen = [mutant for mutant in mutants() if not options.ids or mutant.id in options.ids]
    if not chosen:
        print(f"no mutant has one of the ids {', '.join(options.ids)}")
        return 2
    tests = named_tests()
    if unnamed := sorted({mutant.id for mutant in chosen if not tests[mutant.id]}):
        print(f"no test names {', '.join(unnamed)}")
        return 2
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        return _Run(Path(folder), tests, chosen, max(1, options.jobs)).all()


class _Run:
    def __init__(self, folder: Path, tests: dict[str, list[str]], chosen: list[Mutant], jobs: int) -> None:
        self.tests, self.chosen, self.jobs, self.done = tests, chosen, jobs, 0
        self.copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(jobs):
            self.copies.put(_copy(folder / str(number)))

    def all(self) -> int:
        if failed := self._unchanged():
            print(f"without any mutant a test fails already:\n{failed}")
            return 2
        with ThreadPoolExecutor(self.jobs) as pool:
            results = list(pool.map(self._one, self.chosen))
        survivors = [mutant for mutant, found in zip(self.chosen, results, strict=True) if not found]
        print(f"{len(self.chosen) - len(survivors)} of {len(self.chosen)} mutants were found")
        for mutant in survivors:
            print(f"SURVIVED {mutant.title}")
        return 1 if survivors else 0

    def _unchanged(self) -> str:
        wanted = dict.fromkeys(test for mutant in self.chosen for test in self.tests[mutant.id])
        print(f"{len(wanted)} tests on the unchanged tree", flush=True)
        copy = self.copies.get()
        code, output = _pytest(copy, list(wanted), SECONDS * 4)
        self.copies.put(copy)
        return "" if code == _PASSED else output[-4000:]

    def _one(self, mutant: Mutant) -> bool:
        copy = self.copies.get()
        path = copy / mutant.file
        text = path.read_text("utf-8")
        begun = time.monotonic()
        try:
            path.write_text(text.replace(mutant.before, mutant.after, 1), "utf-8")
            code, output = _pytest(copy, self.tests[mutant.id], SECONDS)
        finally:
            path.write_text(text, "utf-8")
            self.copies.put(copy)
        found = code in (_TESTS_FAILED, None)
        by = _FAILED.findall(output)
        verdict = ("found by " + by[0] if by else "found: it hangs") if found else f"SURVIVED ({code})"
        self.done += 1
        seconds = time.monotonic() - begun
        print(f"[{self.done}/{len(self.chosen)}] {mutant.title}\n    {verdict}, {seconds:.1f} s", flush=True)
        return found


def _copy(folder: Path) -> Path:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in listed.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    for arguments in (["init", "-q"], ["add", "-A"]):  # a test asks git which files there are
        subprocess.run(["git", *arguments], cwd=folder, check=True)
    return folder


def _pytest(folder: Path, tests: list[str], seconds: float) -> tuple[int | None, str]:
    """(exit code, output); None when the time ran out. Bytecode is not kept: a mutant may be written within the
    same second as the file before it."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "--tb=short", "--timeout=60", *tests]
    process = subprocess.Popen(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        output, _ = process.communicate(timeout=seconds)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        process.kill()
        return None, process.communicate()[0]


if __name__ == "__main__":
    sys.exit(main())

"""Imports point one way: each module imports only from its own layer's sub-package or from lower layers."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

LAYERS: dict[str, int] = {
    # 0 values
    **dict.fromkeys(
        ("ids", "messages", "events", "definitions", "tool", "task", "errors", "ports", "permissions.types"), 0
    ),
    **dict.fromkeys(("task_items", "hooks.values"), 0),
    # 1 pure
    **dict.fromkeys(("settings", "state", "turn", "line_diff", "merge", "text", "text_file", "text_form", "review"), 1),
    **dict.fromkeys(("review_parts", "review_plans", "tool_pool", "tool_input", "event_log", "conversations"), 1),
    **dict.fromkeys(("model.accumulate", "model.prompt", "model.aliases", "model.prices", "guidance.environment"), 1),
    **dict.fromkeys(("guidance.builtin_agents", "guidance.agent_tool", "background", "result_limits"), 1),
    **dict.fromkeys(("permissions.rules", "permissions.path_rules", "permissions.gitignore"), 1),
    **dict.fromkeys(("permissions.rule_faults", "permissions.rule_writing", "permissions.guarded"), 1),
    **dict.fromkeys(("permissions.policy", "permissions.decision", "permissions.explaining"), 1),
    **dict.fromkeys(("permissions.modes", "permissions.options"), 1),
    **dict.fromkeys(("permissions.shell.words", "permissions.shell.arithmetic", "permissions.shell.parse"), 1),
    **dict.fromkeys(("permissions.shell.launching", "permissions.shell.matching", "permissions.shell.files"), 1),
    **dict.fromkeys(
        (
            "permissions.shell.reading",
            "permissions.shell.writing",
            "permissions.shell.hiding",
            "permissions.shell.deciding",
        ),
        1,
    ),
    **dict.fromkeys(("permissions.shell.wrappers", "permissions.shell.visible", "permissions.shell.hiding"), 1),
    "json_places": 1,
    **dict.fromkeys(("transcript.codec", "transcript.repair", "transcript.readable"), 1),
    **dict.fromkeys(("hooks.parsing", "hooks.matching", "hooks.answers"), 1),
    # 2 adapters
    **dict.fromkeys(("hooks.command", "hooks.http", "loading.hook_settings"), 2),
    **dict.fromkeys(("clock", "disk", "disk_target", "processes", "repository", "git_objects"), 2),
    **dict.fromkeys(("recovery", "restoring", "transcript.reading", "checkout_tree", "bases"), 2),
    **dict.fromkeys(("worktree_journal", "worktree_settling", "worktree_leftovers", "finishing", "furnishing"), 2),
    **dict.fromkeys(
        ("worktree", "worktree_claim", "worktree_names", "checkouts", "snapshot", "snapshot_files", "applying"), 2
    ),
    **dict.fromkeys(
        ("model.messages_api", "model.providers", "transcript.writer", "transcript.index", "permissions.grants"), 2
    ),
    **dict.fromkeys(("loading.agent_files", "loading.settings_files", "loading.trust", "loading.configuration"), 2),
    **dict.fromkeys(("loading.layers", "loading.permission_settings"), 2),
    **dict.fromkeys(("review_targets", "decisions", "task_list"), 2),
    # 3 engine
    **dict.fromkeys(
        ("slots", "stagger", "project", "engine", "agent", "agent_listing", "spawning", "launching", "query_loop"), 3
    ),
    **dict.fromkeys(
        (
            "permissions.broker",
            "permissions.gate",
            "reviews",
            "subagents",
            "forking",
            "reviving",
            "isolation",
            "hooked_isolation",
        ),
        3,
    ),
    **dict.fromkeys(("messenger", "budget", "context_room", "tool_runner", "progress_summary", "handoff"), 3),
    **dict.fromkeys(
        ("hooks.model", "hooks.runner", "hooks.moments", "hooks.dispatch", "hooks.occasions", "hooks.tasks"), 3
    ),
    # 4 façade
    "runtime": 4,
}
TOOLS_LAYER = 2
"""`tools/` are adapters: they reach the engine through ToolContext only."""

CORE_MAY_IMPORT = {
    "anthropic",
    "anyio",
    "attrs",
    "cattrs",
    "git",
    "httpx2",
    "jsonschema",
    "mcp",
    "pathspec",
    "aiohttp",
    "tree_sitter",
    "tree_sitter_bash",
    "yaml",
}
SERVER_MAY_IMPORT = {"anyio", "attr", "attrs", "cattrs", "jsonschema", "lsprotocol", "pygls", "rich"}


def modules(package: str) -> Iterator[tuple[str, Path]]:
    for path in sorted((ROOT / package).rglob("*.py")):
        name = ".".join(path.relative_to(ROOT / package).with_suffix("").parts)
        yield name.removesuffix(".__init__"), path


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """(module, only for types). Relative imports are not used in this project."""
    tree = ast.parse(path.read_text("utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in typing_only
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                target = f"{node.module}.{alias.name}"
                is_module = (ROOT / Path(*target.split("."))).with_suffix(".py").exists()
                yield (target if is_module else node.module), id(node) in typing_only


def layer(module: str) -> int | None:
    name = module.removeprefix("agent_core.")
    if name.startswith("tools"):
        return TOOLS_LAYER
    return LAYERS.get(name)


CORE = [(name, path) for name, path in modules("agent_core") if path.name != "__init__.py"]


@pytest.mark.parametrize(("name", "path"), CORE, ids=[name for name, _ in CORE])
def test_core_modules_import_only_from_lower_layers(name: str, path: Path) -> None:
    own = layer(f"agent_core.{name}")
    assert own is not None, f"agent_core/{name} is in no layer; add it to LAYERS and to the package's page"
    for module, typing_only in imports(path):
        top = module.partition(".")[0]
        if top == "agent_core":
            other = layer(module)
            if typing_only or other is None:
                continue
            assert other <= own, f"{name} (layer {own}) imports {module} (layer {other})"
        else:
            assert top in sys.stdlib_module_names or top in CORE_MAY_IMPORT, f"{name} imports {module}"


@pytest.mark.parametrize("path", [path for _, path in modules("lsp_server")], ids=lambda path: path.stem)
def test_the_server_imports_only_what_it_may(path: Path) -> None:
    for module, _ in imports(path):
        top = module.partition(".")[0]
        allowed = top in sys.stdlib_module_names or top in SERVER_MAY_IMPORT or top in ("agent_core", "lsp_server")
        assert allowed, f"{path} imports {module}"


@pytest.mark.parametrize("name", ["__main__", "bootstrap", "capabilities", "framing"])
def test_the_bootstrap_is_standard_library_only_at_the_top(name: str) -> None:
    tree = ast.parse((ROOT / "lsp_server" / f"{name}.py").read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            for module in names:
                own = module in ("lsp_server.capabilities", "lsp_server.framing")
                assert own or module.partition(".")[0] in sys.stdlib_module_names, f"{name} imports {module}"


def test_importing_the_server_loads_no_sdk() -> None:
    """The SDKs take seconds: they are loaded in the background, after the first answers."""
    code = "import sys, lsp_server.server; print(sorted({'anthropic', 'mcp', 'git', 'rich'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.strip() == "[]"


def test_importing_any_module_has_no_effect(tmp_path: Path) -> None:
    """No folder, thread or output."""
    names = [f"{package}.{name}" for package in ("agent_core", "lsp_server") for name, _ in modules(package) if name]
    names = [name for name in names if not name.endswith("__main__")]
    code = (
        "import importlib, sys, threading\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        "print([t.name for t in threading.enumerate()])"
    )
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert (run.stdout.strip(), run.stderr) == ("['MainThread']", "")
    assert list(tmp_path.iterdir()) == []


def test_wire_names_are_written_in_one_place() -> None:
    """Method names stand in `protocol.py` (types), `capabilities.py` (the early answer) and the methods table only."""
    allowed = {"protocol.py", "capabilities.py"}
    for name, path in modules("lsp_server"):
        if path.name in allowed or name.startswith(("demo", "methods")):
            continue
        strings = [
            node.value for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Constant)
        ]
        found = [text for text in strings if isinstance(text, str) and text.startswith("agent/") and " " not in text]
        assert found == [], f"{name} writes {found}"

# make demo    the main job on an embedded example          make test   everything, as CI runs it
# Each installs what it needs, from a fresh clone, with nothing run before.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

.PHONY: setup system demo test check soak bench mutants constraints vsix clean

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	@sh tests/tools/install.sh "$(PYTHON)" "$(VENV)"
	@touch $@

# Editors and tools that the tests drive; never skipped, so that a green run means that they were there.
system:
	@sh tests/tools/system.sh
	@sh tests/tools/vscode_install.sh

# The VS Code extension, packed: dist/agent-language-server.vsix
vsix:
	@sh tests/tools/vscode_install.sh extension
	@mkdir -p dist
	@cd editors/vscode && npm run --silent vsix -- --out ../../dist/agent-language-server.vsix

demo: setup
	@$(BIN)/agent-ls demo $(ARGS)

test: setup system check
	@$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadgroup $(ARGS)

check: setup system
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check -q .
	@$(BIN)/mypy
	@cd editors/vscode && npm run --silent check
	@cd editors/nvim && luacheck -q . && ../vscode/node_modules/.bin/stylua --check .

soak: setup system
	@AGENT_LS_SOAK=1 $(BIN)/python -m pytest --timeout 1800 $(ARGS)

bench: setup
	@$(BIN)/python -m tests.benchmarks $(ARGS)

mutants: setup system
	@$(BIN)/python -m tests.tools.mutants $(ARGS)

# Pins without addresses: what pyproject.toml asks for, resolved once.
constraints:
	@$(BIN)/python -m pip install -q uv==0.13.9
	@$(BIN)/uv pip compile --quiet --no-header --no-annotate --no-emit-index-url --universal --extra dev pyproject.toml -o constraints.txt

clean:
	@rm -rf $(VENV) build dist

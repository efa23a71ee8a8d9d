#!/bin/sh
# The virtual environment with the product and its development tools, pinned by constraints.txt.
set -eu
python=$1 venv=$2

fail() { echo "agent-language-server: $1" >&2; exit 1; }

command -v "$python" >/dev/null 2>&1 || fail "$python was not found; install Python 3.11 or newer, or call: make PYTHON=/path/to/python3"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "Python 3.11 or newer is needed; call: make PYTHON=/path/to/python3.11"
command -v git >/dev/null 2>&1 || sh "$(dirname "$0")/system.sh" git

if ! "$python" -c 'import venv, ensurepip' >/dev/null 2>&1; then
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    sh "$(dirname "$0")/system.sh" "python$version-venv"
fi
echo "Installing into $venv (about a minute the first time) ..."
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
# pip compiles to bytecode as it installs; without that each start of the server compiles thousands of modules again.
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --compile -c constraints.txt -e '.[dev]'

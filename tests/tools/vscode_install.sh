#!/bin/sh
# What the VS Code tests drive: VS Code's own server and web workbench (both are in the npm package of code-server), the Node that
# it wants, Debian's chromium, and the tools of editors/vscode. Each step is done once and kept under .tools and node_modules.
# Usage: vscode_install.sh [extension]; with the word only the tools that build the extension.
set -eu

VSCODE=1.139.1
CODE_SERVER=4.139.1
NODE=24.21.0

root="$(cd "$(dirname "$0")/../.." && pwd)"
dest="$root/.tools/vscode-$VSCODE"
quiet="--no-audit --no-fund --loglevel=error"

fail() { echo "agent-language-server: $1" >&2; [ -z "${2:-}" ] || tail -n 20 "$2" >&2; exit 1; }
done_once() { [ -f "$dest/.done-$1" ]; }
done_now() { touch "$dest/.done-$1"; }

extension_tools() {
    sh "$root/tests/tools/system.sh" npm:nodejs:npm
    cd "$root/editors/vscode"
    [ node_modules/.package-lock.json -nt package-lock.json ] && return 0
    echo "Installing the tools of editors/vscode ..."
    # shellcheck disable=SC2086
    npm ci --ignore-scripts $quiet > "$dest/extension.log" 2>&1 || fail "npm ci failed in editors/vscode" "$dest/extension.log"
    touch node_modules/.package-lock.json
}

node_binary() {
    done_once node && return 0
    echo "Installing Node $NODE for VS Code ..."
    cd "$dest"
    echo '{"private": true}' > package.json
    # shellcheck disable=SC2086
    npm install $quiet --foreground-scripts "node@$NODE" > node.log 2>&1 || fail "npm could not install node@$NODE" "$dest/node.log"
    done_now node
}

native_modules() {
    # Without spdlog output channels and logs stay empty. Both use N-API, so the headers of any Node serve.
    npm_home="$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")"
    gyp="$npm_home/node_modules/node-gyp/bin/node-gyp.js"
    [ -f "$gyp" ] || gyp="$(readlink -f "$(command -v node-gyp)")"
    headers="$(dirname "$(dirname "$(readlink -f "$(command -v node)")")")"
    for module in @vscode/spdlog @vscode/native-watchdog; do
        cd "$dest/server/node_modules/$module"
        node "$gyp" rebuild --nodedir="$headers" > build.log 2>&1 || fail "$module was not built" build.log
    done
}

vscode() {
    done_once server && return 0
    echo "Installing VS Code $VSCODE (about a minute) ..."
    cd "$dest"
    rm -rf server package code-server-*.tgz
    npm pack --silent "code-server@$CODE_SERVER" > pack.log 2>&1 || fail "npm could not fetch code-server" "$dest/pack.log"
    tar xzf code-server-*.tgz package/lib/vscode
    mv package/lib/vscode server
    rm -rf package code-server-*.tgz
    cd server
    # Not `npm ci`: the package's own lock file is out of step with its package.json.
    # shellcheck disable=SC2086
    npm install --omit=dev --ignore-scripts $quiet > ../server.log 2>&1 || fail "npm install failed for VS Code" "$dest/server.log"
    native_modules
    # Two thirds of it are for other machines, or for assistants that no test uses.
    cd "$dest/server"
    find node_modules/@vscode/ripgrep-universal/bin -mindepth 1 -maxdepth 1 ! -name "linux-*" -exec rm -rf {} +
    rm -rf node_modules/@github node_modules/@microsoft/mxc* extensions/copilot
    found="$("$dest/node_modules/.bin/node" out/server-main.js --version | head -n 1)"
    [ "$found" = "$VSCODE" ] || fail "VS Code $VSCODE was wanted, $found was found"
    done_now server
}

# One at a time: two runs in one checkout would unpack over each other.
mkdir -p "$dest"
exec 9> "$dest/.lock"
flock 9
extension_tools
[ "${1:-}" != extension ] || exit 0
sh "$root/tests/tools/system.sh" chromium:chromium:fonts-dejavu-core c++:g++ make:make
node_binary
vscode

#!/bin/sh
# Debian packages that are missing. Without the right to install, says what to install and stops.
set -eu
[ $# -gt 0 ] || set -- git:git emacs:emacs-nox:elpa-eglot rg:ripgrep luacheck:lua-check

missing=""
for entry in "$@"; do
    program=${entry%%:*}
    packages=$(echo "${entry#*:}" | tr ':' ' ')
    command -v "$program" >/dev/null 2>&1 || missing="$missing $packages"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then run=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then run="sudo"
else
    echo "agent-language-server: install these packages and call make again: apt-get install --no-install-recommends$missing" >&2
    exit 1
fi
command -v apt-get >/dev/null 2>&1 || { echo "agent-language-server: install$missing with your package manager and call make again" >&2; exit 1; }
echo "Installing system packages:$missing ..."
$run apt-get update -qq
DEBIAN_FRONTEND=noninteractive $run apt-get install -y -qq --no-install-recommends $missing >/dev/null

#!/usr/bin/env bash
# Terminals on a real display: Xvfb, a window manager, xterm and every other known terminal that is installed. Each has
# to run a program in a folder with a hostile name, with hostile arguments; windows are brought to the front.
#
# Also kills sessions of the real Copilot CLI and Claude Code, and resumes them in a window; shows the pane of one. tests/all.sh
# says where the programs are.
#
# The tests themselves are in Rust, and ignored elsewhere because they need the display. Linux only; installs what is
# missing.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=display.sh
source "$(dirname "${BASH_SOURCE[0]}")/display.sh"

readonly PACKAGES=(Xvfb:xvfb openbox:openbox xterm:xterm dbus-run-session:dbus-daemon tmux:tmux xdotool:xdotool)

inside() {
    local manager status=0
    openbox >/dev/null 2>&1 & manager=$!
    PILOTLIGHT_TEST_DISPLAY=1 cargo test --locked --quiet --lib terminal -- --ignored --nocapture \
        --test-threads=1 --skip opens_the_named_terminal || status=$?
    PILOTLIGHT_TEST_DISPLAY=1 cargo test --locked --quiet --test e2e in_xterm -- --ignored --nocapture --test-threads=1 || status=$?
    kill "$manager"
    return "$status"
}

main() {
    cd "$(dirname "${BASH_SOURCE[0]}")/../.."
    install_packages "${PACKAGES[@]}"
    cargo test --locked --quiet --lib --tests --no-run
    on_display 1000x700 bash "$PWD/tests/visible/terminal.sh" --inside || fail 'the tests on a display failed'
}

case ${1:-} in
--inside) inside ;;
*) main ;;
esac

#!/usr/bin/env bash
# Terminals on a real display: Xvfb, a window manager, xterm and every other known terminal that is installed. Each is told
# to run a program in a folder with a hostile name, with words made to break it; windows are brought to the front.
#
# And a session of the real Copilot CLI is killed and resumed in a window; where the CLI lies, tests/all.sh says.
#
# The tests are Rust's, and ignored elsewhere: they want the display. Linux only; installs what is missing.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=display.sh
source "$(dirname "${BASH_SOURCE[0]}")/display.sh"

readonly PACKAGES=(Xvfb:xvfb openbox:openbox xterm:xterm dbus-run-session:dbus-daemon tmux:tmux xdotool:xdotool)

inside() {
    local manager status=0
    openbox >/dev/null 2>&1 & manager=$!
    PILOTLIGHT_TEST_DISPLAY=1 cargo test --locked --quiet --lib terminal -- --ignored --nocapture \
        --test-threads=1 --skip opens_what_it_is_told || status=$?
    # A session of the real CLI, killed, and resumed in a window.
    PILOTLIGHT_TEST_DISPLAY=1 cargo test --locked --quiet --test e2e a_killed_terminal_is_resumed_in_xterm -- --ignored \
        --nocapture || status=$?
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

#!/usr/bin/env bash
# Terminals on a real display: Xvfb, a window manager, xterm and every other known terminal that is installed. Each has
# to run a program in a folder with a hostile name, with hostile arguments; windows are brought to the front, and in kitty and Konsole the tab of a process.
#
# Also kills sessions of the real Copilot CLI and Claude Code, and resumes them in a window; shows the pane of one. tests/all.sh
# says where the programs are. A popup waits while its terminal has the focus (case 339). Then the windows of sway, which needs no display.
#
# The tests themselves are in Rust, and ignored elsewhere because they need the display. Linux only; installs what is
# missing.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=display.sh
source "$(dirname "${BASH_SOURCE[0]}")/display.sh"

readonly PACKAGES=(Xvfb:xvfb openbox:openbox xterm:xterm dbus-run-session:dbus-daemon tmux:tmux xdotool:xdotool
    sway:sway foot:foot Xwayland:xwayland kitty:kitty konsole:konsole '/usr/lib/*/dri/swrast_dri.so:libgl1-mesa-dri')

inside() {
    local manager status=0
    openbox >/dev/null 2>&1 & manager=$!
    PILOTLIGHT_TEST_DISPLAY=1 cargo test --locked --quiet --lib terminal -- --ignored --nocapture \
        --test-threads=1 --skip opens_the_named_terminal || status=$?
    PILOTLIGHT_TEST_DISPLAY=1 cargo test --locked --quiet --test e2e in_xterm -- --ignored --nocapture --test-threads=1 || status=$?
    kill "$manager"
    return "$status"
}

# under_sway: which terminal has the focus (case 338), under a sway without an output.
under_sway() {
    local sway status=0 run=() sockets
    XDG_RUNTIME_DIR=$(mktemp -d)
    export XDG_RUNTIME_DIR WAYLAND_DISPLAY=wayland-1 PILOTLIGHT_TEST_SWAY=1
    unset DISPLAY SWAYSOCK
    printf 'exec printf %%s "$DISPLAY" >%s\n' "$XDG_RUNTIME_DIR/display" >"$XDG_RUNTIME_DIR/config"
    # It refuses to run as root, whom a namespace gives another number.
    ((EUID != 0)) || run=(unshare --user --map-user=1000 --map-group=1000)
    env -u WAYLAND_DISPLAY WLR_BACKENDS=headless WLR_RENDERER=pixman WLR_LIBINPUT_NO_DEVICES=1 \
        "${run[@]}" sway --config "$XDG_RUNTIME_DIR/config" >/dev/null 2>&1 & sway=$!
    until_true 20 'sway and its Xwayland' test -s "$XDG_RUNTIME_DIR/display"
    sockets=("$XDG_RUNTIME_DIR"/sway-ipc.*.sock)
    SWAYSOCK=${sockets[0]} DISPLAY=$(<"$XDG_RUNTIME_DIR/display") cargo test --locked --quiet --lib under_sway -- --ignored --nocapture || status=$?
    kill "$sway"
    wait "$sway" || true
    rm -rf "$XDG_RUNTIME_DIR"
    return "$status"
}

main() {
    cd "$(dirname "${BASH_SOURCE[0]}")/../.."
    install_packages "${PACKAGES[@]}"
    cargo test --locked --quiet --lib --tests --no-run
    on_display 1000x700 bash "$PWD/tests/visible/terminal.sh" --inside || fail 'the tests on a display failed'
    (under_sway) || fail 'the test under sway failed'
}

case ${1:-} in
--inside) inside ;;
*) main ;;
esac

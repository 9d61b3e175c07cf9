#!/usr/bin/env bash
# Terminals on a real display: Xvfb, a window manager, xterm and every other known terminal that is installed. Each is told
# to run a program in a folder with a hostile name, with words made to break it; windows are brought to the front.
#
# And a session of the real Copilot CLI is killed and resumed in a window; where the CLI lies, tests/all.sh says.
#
# The tests are Rust's, and ignored elsewhere: they want the display. Linux only; installs what is missing.
set -euo pipefail

readonly PACKAGES=(Xvfb:xvfb openbox:openbox xterm:xterm dbus-run-session:dbus-daemon tmux:tmux xdotool:xdotool)

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

install_packages() {
    local entry missing=()
    for entry in "${PACKAGES[@]}"; do
        [[ -n $(command -v "${entry%%:*}") ]] || missing+=("${entry#*:}")
    done
    ((${#missing[@]} > 0)) || return 0
    ((EUID == 0)) || fail "Install these first: sudo apt-get install --no-install-recommends ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# until_true SECONDS WHAT COMMAND...: waits until the command succeeds.
until_true() {
    local tries=$(($1 * 10)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        ((tries-- > 0)) || fail "waited in vain for $what"
        sleep 0.1
    done
}

inside() {
    local manager status=0
    openbox >/dev/null 2>&1 & manager=$!
    PILOTLIGHT_TEST_DISPLAY=1 cargo test --locked --quiet --lib desktop::terminal -- --ignored --nocapture \
        --test-threads=1 --skip opens_what_it_is_told || status=$?
    # A session of the real CLI, killed, and resumed in a window.
    PILOTLIGHT_TEST_DISPLAY=1 cargo test --locked --quiet --test e2e a_killed_terminal_is_resumed_in_xterm -- --ignored \
        --nocapture || status=$?
    kill "$manager"
    return "$status"
}

main() {
    local display scratch server status=0
    cd "$(dirname "${BASH_SOURCE[0]}")/../.."
    install_packages
    cargo test --locked --quiet --lib --tests --no-run
    scratch=$(mktemp -d)
    mkdir -p "$scratch"/{home,run}
    chmod 700 "$scratch/run"
    for display in $(seq 70 99); do [[ -e /tmp/.X11-unix/X$display ]] || break; done
    Xvfb ":$display" -screen 0 1000x700x24 -nolisten tcp >/dev/null 2>&1 & server=$!
    until_true 5 'the display' test -e "/tmp/.X11-unix/X$display"
    # The toolchain is found by the real home; what terminals remember goes into the scratch folder.
    export CARGO_HOME=${CARGO_HOME:-$HOME/.cargo} RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup}
    env -u WAYLAND_DISPLAY -u TERMINAL DISPLAY=":$display" HOME="$scratch/home" XDG_RUNTIME_DIR="$scratch/run" LANG=C.UTF-8 \
        XDG_CONFIG_HOME="$scratch/home/.config" GDK_BACKEND=x11 NO_AT_BRIDGE=1 LIBGL_ALWAYS_SOFTWARE=1 \
        dbus-run-session -- bash "$PWD/tests/visible/terminal.sh" --inside || status=$?
    kill "$server"
    wait "$server" 2>/dev/null || true
    rm -rf "$scratch"
    ((status == 0)) || fail 'the tests on a display failed'
}

case ${1:-} in
--inside) inside ;;
*) main ;;
esac

#!/usr/bin/env bash
# Starts the tray thirty times on GNOME with the extension AppIndicator, in a shell that has just started or has shown
# other icons before, and counts the icons that are drawn. The extension used to lose icons that own a well-known name
# on the bus.
#
#   tests/visible/gnome-starts.sh [STARTS]
#
# Linux only; installs what is missing.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=display.sh
source "$(dirname "${BASH_SOURCE[0]}")/display.sh"

# The number of starts in each shell.
readonly A_SHELL=5

inside() {
    local start program drawn=0
    pids=''
    trap 'for p in $pids; do kill "$p" 2>/dev/null || true; done' EXIT
    mkdir -p "$HOME/.copilot/session-state" "$XDG_CONFIG_HOME"
    prepare
    for ((start = 0; start < STARTS; start++)); do
        if ((start % A_SHELL == 0)); then
            [[ -z ${panel:-} ]] || { kill -KILL "$panel" && wait "$panel" || true; }
            begin_panel
            until_true 60 'the extension' has org.kde.StatusNotifierWatcher
            until_true 20 'a panel without our icon' not find_icon
        fi
        "$PROGRAM" --home "$HOME/.copilot" >/dev/null 2>&1 & program=$!
        until_true 30 "the icon of start $((start + 1)), after $drawn drawn icons" find_icon
        drawn=$((drawn + 1))
        kill "$program"
        wait "$program" || fail "the program exited with $?"
        until_true 20 'the icon to disappear' not find_icon
    done
    echo "$drawn icons of $STARTS starts"
}

not() { ! "$@"; }

main() {
    cd "$(dirname "${BASH_SOURCE[0]}")/../.."
    # shellcheck source=desktops/gnome.sh
    source tests/visible/desktops/gnome.sh
    install_packages "${DISPLAY_PACKAGES[@]}" "${PACKAGES[@]}"
    [[ -n ${VISIBLE_PROGRAM:-} ]] || cargo build --locked --quiet
    on_display 1280x800 "${ENVIRONMENT[@]}" STARTS="${1:-30}" \
        PROGRAM="${VISIBLE_PROGRAM:-${CARGO_TARGET_DIR:-$PWD/target}/debug/pilotlight}" bash "$PWD/tests/visible/gnome-starts.sh" --inside ||
        fail 'not every start showed an icon on GNOME'
}

case ${1:-} in
--inside)
    # shellcheck source=desktops/gnome.sh
    source "$(dirname "${BASH_SOURCE[0]}")/desktops/gnome.sh"
    inside
    ;;
*) main "$@" ;;
esac

#!/usr/bin/env bash
# Each submenu is on the screen when it is opened for the first time: for each, a program that has just started, whose menu is
# opened once. Where the submenu is, and that its rows are drawn there, is checked in pictures of the display. Plasma opened
# submenus that it had not read off the screen, the one with Approve too.
#
#   tests/visible/submenus.sh [DESKTOP]...      on these desktops, whose submenus open beside their entries; without a name, KDE
#
# Pictures, what came of each, and what the bus said go to target/visible/DESKTOP. Linux only; installs what is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source-path=SCRIPTDIR source=stage.sh
source tests/visible/stage.sh

inside() {
    local n status=0
    export CRASHED='1 2 3 4'
    set_stage panel
    asking_session 21
    for n in $CRASHED; do crashed_session "$n"; done
    for n in 10 11 12; do working_session "$n" works 'Goes on'; done
    place_icon 4
    /usr/bin/python3 tests/visible/submenus.py || status=1
    echo "$DESKTOP, $VARIANT: $(grep -c '^on the screen' "$OUT/$VARIANT-submenus.txt") of $(wc -l <"$OUT/$VARIANT-submenus.txt") submenus on the screen at their first opening"
    ! grep -v '^on the screen' "$OUT/$VARIANT-submenus.txt" || status=1
    return "$status"
}

run kde "$@"

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
    local icon_x icon_y width height program icon n status=0
    export CRASHED='1 2 3 4' PANEL_HEIGHT LINE EDGE BUTTON=${BUTTON:-1} POPUPS=${POPUPS:-} PICTURED=${PICTURED:-} ROW=${ROW:-} WIDTH HEIGHT
    set_stage panel
    asking_session 21
    for n in $CRASHED; do crashed_session "$n"; done
    for n in 10 11 12; do working_session "$n" works 'Goes on'; done
    read -r WIDTH HEIGHT < <(xdotool getdisplaygeometry)
    raise_icon
    export ICON_X=$icon_x ICON_Y=$icon_y
    until_true 20 'the crashed sessions' are 4 crashed
    kill "$program"
    wait "$program" || true
    /usr/bin/python3 tests/visible/submenus.py || status=1
    echo "$DESKTOP, $VARIANT: $(grep -c '^on the screen' "$OUT/$VARIANT-submenus.txt") of $(wc -l <"$OUT/$VARIANT-submenus.txt") submenus on the screen at their first opening"
    ! grep -v '^on the screen' "$OUT/$VARIANT-submenus.txt" || status=1
    return "$status"
}

if [[ ${1:-} == --inside ]]; then
    inside
else
    (($# > 0)) || set -- kde
    on_desktops tests/visible/submenus.sh "$@"
fi

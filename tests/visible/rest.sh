#!/usr/bin/env bash
# What else docs/desktops.md says of a desktop: what either button does on the icon, whether "Start at login", Approve and Deny can be
# pressed in the menu (the latter on sessions of the demo), and what `doctor` says there.
#
#   tests/visible/rest.sh [DESKTOP]...      on these desktops; without a name, XFCE
#
# What came of it goes to target/visible/DESKTOP/*-rest.txt. Linux only; installs what is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source-path=SCRIPTDIR source=stage.sh
source tests/visible/stage.sh

inside() {
    local icon_x icon_y width height program icon n status=0
    export CRASHED='1 2' PANEL_HEIGHT LINE EDGE BUTTON=${BUTTON:-1} SUBMENUS=${SUBMENUS:-} DRAWN=${DRAWN:-} POPUPS=${POPUPS:-} PICTURED=${PICTURED:-} ROW=${ROW:-} WIDTH HEIGHT
    set_stage panel
    for n in $CRASHED; do crashed_session "$n"; done
    read -r WIDTH HEIGHT < <(xdotool getdisplaygeometry)
    raise_icon
    export ICON_X=$icon_x ICON_Y=$icon_y
    until_true 20 'the crashed sessions' are 2 crashed
    kill "$program"
    wait "$program" || true
    /usr/bin/python3 tests/visible/rest.py || status=1
    sed "s/^/$DESKTOP, $VARIANT: /" "$OUT/$VARIANT-rest.txt"
    return "$status"
}

if [[ ${1:-} == --inside ]]; then
    inside
else
    (($# > 0)) || set -- xfce
    on_desktops tests/visible/rest.sh "$@"
fi

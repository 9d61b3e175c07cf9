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
    local n status=0
    export CRASHED='1 2'
    set_stage panel
    for n in $CRASHED; do crashed_session "$n"; done
    place_icon 2
    /usr/bin/python3 tests/visible/rest.py || status=1
    sed "s/^/$DESKTOP, $VARIANT: /" "$OUT/$VARIANT-rest.txt"
    return "$status"
}

run xfce "$@"

#!/usr/bin/env bash
# Pictures of the menu, to be looked at: the menu, the submenu of each session that needs somebody and what opens from there, those of
# folded rows, Notifications and Settings; of the demo, and of twelve sessions.
#
#   tests/visible/pictures.sh [DESKTOP]...      on these desktops; without a name, XFCE
#
#   tests/visible/pictures.sh --readme FOLDER   cuts those of README and docs out of what newer.sh left in this folder: of
#                                               kde-wayland and gnome-wayland, `pictures`, `rest` and `film`, light and dark
#
# PICTURES_OF is `demo` or `sessions`, or both. Pictures go to target/visible/DESKTOP/VARIANT-pictures-*.png. Linux only; installs
# what is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source-path=SCRIPTDIR source=stage.sh
source tests/visible/stage.sh

inside() {
    local of status=0
    export CRASHED=9
    set_stage panel
    place_icon 0
    for of in ${PICTURES_OF:-sessions demo}; do
        # Their turns are older than their owners, so they count as over a while later.
        [[ $of != sessions ]] || { one_session && twelve_sessions; }
        /usr/bin/python3 tests/visible/pictures.py "$of" || status=1
    done
    return "$status"
}

# cut FOLDER: the pictures that are shown somewhere.
cut() {
    part() { convert "$1.png" -crop "$2" +repage +dither -colors 96 -strip "PNG8:assets/screenshots/$3.png"; }
    part "$1/kde-wayland/light-pictures-sessions-01-menu" 460x512+820+0 plasma-menu
    part "$1/kde-wayland/dark-rest-Deny" 600x560+680+0 dark-submenu
    part "$1/kde-wayland/film-popup" 368x164+616+54 popup
    part "$1/gnome-wayland/dark-rest-Approve-once" 474x646+806+32 gnome-menu
    cp "$1/kde-wayland/film.gif" assets/screenshots/approve.gif
}

if [[ ${1:-} == --readme ]]; then
    cut "$2"
else
    run xfce "$@"
fi

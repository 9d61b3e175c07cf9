#!/usr/bin/env bash
# Starts the tray twenty times on a desktop, with sessions that need somebody, in a panel that has just started or has shown
# other icons before, and counts the icons that are drawn: those that look as the first one did, which must be looked at
# (target/visible/DESKTOP/*-start-1.png). Every fifth time the settings of the icon are changed and changed back, and the panel
# is killed while the program runs: each time the icon must return. GNOME's extension used to lose icons that own a well-known
# name on the bus, and MATE's indicator drew "missing image" where the icon's file was written too late. The icon with a number
# must be looked at, too (*-counted.png).
#
#   tests/visible/starts.sh [DESKTOP]...      on these desktops; without a name, GNOME
#
# STARTS is the number of starts. Linux only; installs what is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source-path=SCRIPTDIR source=stage.sh
source tests/visible/stage.sh

# The number of starts on each panel.
readonly A_PANEL=5

not() { ! "$@"; }

# restart_panel: kills the panel, and starts another one.
restart_panel() {
    { kill -KILL "$panel" && wait "$panel"; } 2>/dev/null || true
    begin_panel
    until_true 60 'the panel' has org.kde.StatusNotifierWatcher
}

renew_panel() {
    restart_panel
    until_true 20 'a panel without our icon' not find_icon
}

# icon_picture FILE: the icon and what is around it.
icon_picture() {
    find_icon && import -window root -crop "30x$PANEL_HEIGHT+$((icon_x - 15))+0" +repage "$1"
}

# Whether the icon looks as at the first start.
looks_as_first() {
    icon_picture "$SCRATCH/icon.png" && compare -metric AE -fuzz 5% "$SCRATCH/icon.png" "$OUT/$VARIANT-start-1.png" null:
}

# Whether the icon is drawn, and is another than at the first start.
looks_other() { find_icon && ! looks_as_first; }

# change_settings: has the icon show how many sessions need somebody, and then not.
change_settings() {
    local config=$XDG_CONFIG_HOME/pilotlight/config.toml
    mkdir -p "${config%/*}"
    printf '[tray]\ncount = true\n' >"$config"
    until_true 20 'the icon with a number' looks_other
    sleep 1 # a panel may draw something else before
    icon_picture "$OUT/$VARIANT-counted.png"
    looks_other
    rm "$config"
    until_true 20 'the icon without it' looks_as_first
}

inside() {
    local start program drawn=0 changed=0 killed=0 back=0 width height icon icon_x icon_y
    set_stage panel
    crashed_session 1
    for ((start = 1; start <= STARTS; start++)); do
        ((start % A_PANEL != 1 || start == 1)) || renew_panel
        start_program
        if ((start == 1)); then
            until_true 30 'the first icon' find_icon
            sleep 4 # it first says that all is well
            icon_picture "$OUT/$VARIANT-start-1.png"
        fi
        if (until_true 20 "the icon of start $start" looks_as_first) 2>/dev/null; then
            drawn=$((drawn + 1))
        else
            shot "start-$start-missing"
        fi
        if ((start % A_PANEL == 0)); then
            if (change_settings) 2>/dev/null; then
                changed=$((changed + 1))
            else
                shot "start-$start-changed"
            fi
            restart_panel
            killed=$((killed + 1))
            if (until_true 30 "the icon on panel $killed" looks_as_first) 2>/dev/null; then
                back=$((back + 1))
            else
                shot "panel-$killed-missing"
            fi
        fi
        kill "$program"
        wait "$program" || fail "the program exited with $?"
        until_true 20 'the icon to disappear' not find_icon
    done
    echo "$DESKTOP, $VARIANT: $drawn icons of $STARTS starts, $changed of $killed after other settings, $back of $killed back after the panel was killed"
    ((drawn == STARTS && changed == killed && back == killed))
}

export STARTS=${STARTS:-20}
run gnome "$@"

# shellcheck shell=bash
# A desktop with a panel, sessions and the program, for the scripts of this folder that press and count; they source this from
# the repository's folder.

# shellcheck source-path=SCRIPTDIR source=display.sh
source tests/visible/display.sh
# shellcheck source-path=SCRIPTDIR source=sessions.sh
source tests/visible/sessions.sh
# shellcheck source-path=SCRIPTDIR source=panel.sh
source tests/visible/panel.sh

# set_stage panel|popups: puts up the desktop, or only its popups, with folders for sessions and a fake Copilot. What begins here
# ends with the script.
set_stage() {
    export HOME_DIR=$HOME/.copilot OWNERS=$SCRATCH/owners STATE=$HOME/.local/state/pilotlight CODE=$HOME/code
    pids='' owners=''
    trap clear_stage EXIT
    PATH=$SCRATCH/bin:$PATH
    mkdir -p "$HOME_DIR/session-state" "$STATE" "$XDG_CONFIG_HOME"
    make_copilot
    record_openings
    if [[ $1 == popups ]]; then
        put_up_popups
        until_true 60 'the notification server' has org.freedesktop.Notifications
    else
        put_up
        until_true 60 'the panel' has org.kde.StatusNotifierWatcher
    fi
    xsetroot -solid '#3b4252'
}

# Not every panel reacts to SIGTERM.
clear_stage() {
    local p
    for p in $owners $pids $(cat "$SCRATCH/resumed" 2>/dev/null); do kill "$p" 2>/dev/null || true; done
    sleep 0.5
    for p in $pids; do kill -KILL "$p" 2>/dev/null || true; done
}

# record_openings: what the program opens, in a terminal or with the desktop's programs, is written to $SCRATCH/commands.
# A terminal outlives a session that a script ends at once.
record_openings() {
    : >"$SCRATCH/commands"
    # shellcheck disable=SC2016 # for the scripts themselves
    printf '#!/bin/sh\n[ "$1" != -e ] || shift\necho "$@" >>"%s/commands"\ncase "$*" in *--resume=*) "$@" & sleep 3 ;; esac\n' "$SCRATCH" >"$SCRATCH/bin/terminal"
    # shellcheck disable=SC2016
    printf '#!/bin/sh\necho open "$@" >>"%s/commands"\n' "$SCRATCH" >"$SCRATCH/bin/xdg-open"
    chmod +x "$SCRATCH/bin/terminal" "$SCRATCH/bin/xdg-open"
}

# raise_icon: starts the program, and waits for its icon and its menu. Sets `program`, icon_x and icon_y.
raise_icon() {
    start_program
    until_true 30 'the icon to be drawn' find_icon
    until_true 20 'the menu on the bus' find_name
}

# place_icon N: starts the program, waits for its icon and until N sessions count as crashed, and ends it again. Exports what the scripts in
# Python read of the desktop.
place_icon() {
    local icon_x icon_y icon program
    export PANEL_HEIGHT LINE EDGE BUTTON=${BUTTON:-1} SUBMENUS=${SUBMENUS:-} DRAWN=${DRAWN:-} POPUPS=${POPUPS:-} PICTURED=${PICTURED:-} ROW=${ROW:-} WIDTH HEIGHT
    read -r WIDTH HEIGHT < <(xdotool getdisplaygeometry)
    raise_icon
    export ICON_X=$icon_x ICON_Y=$icon_y
    until_true 20 'the crashed sessions' are "$1" crashed
    kill "$program"
    wait "$program" || true
}

start_program() {
    "$PROGRAM" --home "$HOME_DIR" >/dev/null 2>&1 & program=$!
    pids+=" $program"
}

# statuses STATUS: how many sessions have this status.
statuses() { "$PROGRAM" --home "$HOME_DIR" status --json | grep -o "\"status\":\"$1\"" | wc -l; }
are() { [[ $(statuses "$2") == "$1" ]]; }

# run DESKTOP [ARGUMENT]...: what the script that calls this does, by its function `inside`: on the desktops that its arguments name, else
# on DESKTOP.
run() {
    local default=$1
    shift
    if [[ ${1:-} == --inside ]]; then
        inside
    else
        (($# > 0)) || set -- "$default"
        on_desktops "tests/visible/$(basename "$0")" "$@"
    fi
}

# on_desktops SCRIPT DESKTOP...: runs SCRIPT --inside on each desktop, in each of its variants, or in those that
# VISIBLE_VARIANTS names. Screenshots and records go to target/visible/DESKTOP, or below VISIBLE_OUT.
on_desktops() {
    local script=$1 word status=0
    shift
    [[ -n ${VISIBLE_PROGRAM:-} ]] || cargo build --locked --quiet
    export PROGRAM=${VISIBLE_PROGRAM:-${CARGO_TARGET_DIR:-$PWD/target}/debug/pilotlight}
    for word in "$@"; do
        [[ -f tests/visible/desktops/$word.sh ]] || fail "Unknown desktop $word; known: $(basename -s .sh tests/visible/desktops/*)"
        (on_desktop "$script" "$word") || status=1
    done
    return "$status"
}

on_desktop() {
    local variant status=0
    export DESKTOP=$2 OUT=${VISIBLE_OUT:-$PWD/target/visible}/$2
    # shellcheck source=desktops/xfce.sh
    source "tests/visible/desktops/$2.sh"
    install_packages "${DISPLAY_PACKAGES[@]}" "${READER_PACKAGES[@]}" "${PACKAGES[@]}"
    mkdir -p "$OUT"
    for variant in "${VARIANTS[@]}"; do
        [[ " ${VISIBLE_VARIANTS:-${variant%%:*}} " == *" ${variant%%:*} "* ]] || continue
        export VARIANT=${variant%%:*}
        on_display "${variant#*:}" "${ENVIRONMENT[@]}" bash "$PWD/$1" --inside || status=1
    done
    return "$status"
}

# What reads the bus, the menus and what was copied.
readonly READER_PACKAGES=(/usr/lib/python3/dist-packages/Xlib:python3-xlib busctl:systemd xclip:xclip)

# The desktop's script, inside.
if [[ -n ${DESKTOP:-} ]]; then
    # shellcheck source=desktops/xfce.sh
    source "$(dirname "${BASH_SOURCE[0]}")/desktops/$DESKTOP.sh"
fi

#!/usr/bin/env bash
# The tray on real panels, for visual inspection: a desktop on Xvfb, light and dark; the menu with 0, 1, 12 and 40
# sessions, a submenu, the tooltip; a session that asks while a submenu is open; a session fixed by a click on the entry
# below its row; the panel killed and restarted. Screenshots go to target/visible/DESKTOP.
#
#   tests/visible.sh [xfce|mate|lxqt|gnome|kde|wine]...   these desktops; without a name, XFCE
#   tests/visible.sh --readme                             after XFCE, copies the best of its to assets/screenshots
#
# It checks what can be automated (the icon is drawn, the menu has room for each of its entries and fits the display,
# case 106 with a mouse, case 127 in two clicks); the rest must be looked at. The desktops are defined in
# tests/visible/desktops. Linux only; installs what is missing: GNOME and KDE are about 1 GB each.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=visible/display.sh
source "$(dirname "${BASH_SOURCE[0]}")/visible/display.sh"
# shellcheck source-path=SCRIPTDIR source=visible/sessions.sh
source "$(dirname "${BASH_SOURCE[0]}")/visible/sessions.sh"
# shellcheck source-path=SCRIPTDIR source=visible/panel.sh
source "$(dirname "${BASH_SOURCE[0]}")/visible/panel.sh"

# --- The panel --------------------------------------------------------------------------------------------------------

seen() { grep -o '"36535f61[^"]*"' "$STATE/seen.json" 2>/dev/null | sort -u || true; }
says() { "$PROGRAM" --home "$HOME_DIR" status --json | grep -q "$1"; }
crashed_works() { says '0009".*"status":"working"'; }

# Opens the menu and the first session's submenu, and rests the pointer on its first line.
aim() {
    local y
    open_menu
    y=$(row '⚑ billing-api')
    point $((menu_x + menu_width / 2)) "$y"
    if [[ ${SUBMENUS:-beside} == below ]]; then
        xdotool click 1
        sleep 0.8
        point $((menu_x + menu_width / 2)) $((y + row_height))
    else
        sleep 0.8
        point $((menu_x - 20)) "$y"
        point $((menu_x - 190)) "$y"
    fi
}

# closer NAME GEOMETRY: enlarges a part of the menu's screenshot.
closer() { convert "$OUT/$VARIANT-menu.png" -crop "$2" +repage -filter point -resize 600% "$OUT/$VARIANT-$1.png"; }

# case 127: two clicks from the icon to a session that works again. A crashed session's remedy is below its row.
in_two_clicks() {
    menu before-remedy
    point $((menu_x + menu_width / 2)) "$(row 'Resume deps')"
    shot on-remedy
    xdotool click 1
    sleep 1
    shot clicked
    until_true 20 'the session to be resumed' test -s "$SCRATCH/resumed"
    until_true 20 'the session to work' crashed_works
    sleep 1.5
    menu after-remedy
}

# --- The steps --------------------------------------------------------------------------------------------------------

inside() {
    local width height program icon icon_x icon_y menu_x menu_y menu_width menu_height row_height usual_height
    export HOME_DIR=$HOME/.copilot OWNERS=$SCRATCH/owners
    STATE=$HOME/.local/state/pilotlight CODE=$HOME/code
    pids=''
    owners=''
    trap 'shot last; cp "$STATE/pilotlight.log" "$OUT/$VARIANT-program.log"; for p in $owners $pids $(cat "$SCRATCH/resumed" 2>/dev/null); do kill "$p" 2>/dev/null || true; done
        sleep 0.5; for p in $pids; do kill -KILL "$p" 2>/dev/null || true; done' EXIT # not every panel reacts to SIGTERM
    PATH=$SCRATCH/bin:$PATH
    mkdir -p "$HOME_DIR/session-state" "$STATE" "$XDG_CONFIG_HOME"
    make_copilot
    put_up
    until_true 60 'the panel' has org.kde.StatusNotifierWatcher
    xsetroot -solid '#3b4252'
    "$PROGRAM" --home "$HOME_DIR" >/dev/null 2>&1 & pids+=" $!"
    program=$!
    until_true 30 'the icon to be drawn' find_icon
    until_true 20 'the menu on the bus' find_name
    read -r width height < <(xdotool getdisplaygeometry)
    menu 0-sessions
    one_session
    until_true 20 'the first session' says needs-permission
    sleep 1.5
    menu 1-session
    twelve_sessions
    until_true 20 'twelve sessions' says permission-lost
    # Panels built on GTK do not say that the menu is closed, and do not enlarge an open one: for 10 s they are not told
    # that it grew.
    sleep 11
    close_menus
    point "$icon_x" "$icon_y"
    sleep 1.5
    shot tooltip
    menu menu
    closer icon "56x28+$((icon_x - 28))+0"
    ! declare -F spoken >/dev/null || spoken
    aim
    shot submenu

    # case 106, with a mouse: the pointer rests on a line of the first session's submenu, another session appears, and
    # only then is the button pressed. This must not affect any other session. Without a change of the menu, the same
    # click marks the first session as seen.
    aim
    session 41 late 'Appeared while the menu was open' main; owned
    prompt 1; requests 1 a; tool 0 a bash 'true'
    event permission.requested 0 '{"requestId":"r","permissionRequest":{"kind":"shell","toolCallId":"a"}}'
    until_true 20 'the late session' says 0041
    sleep 0.6
    shot changed
    xdotool click 1
    sleep 0.5
    [[ -z $(seen | grep -v 0001 || true) ]] || fail "a click affected another session: $(seen)"
    aim
    xdotool click 1
    until_true 5 'the click' test -s "$STATE/seen.json"
    [[ $(seen) =~ ^\"36535f61-5c7b-4f09-a70b-2f8aed970001/[0-9a-f]+\"$ ]] || fail "the click did not affect the first session alone: $(seen)"

    # GNOME on the small display has no room for that row.
    [[ $VARIANT == small ]] || in_two_clicks

    # The panel is killed and restarted.
    close_menus
    kill -KILL "$panel"
    wait "$panel" || true
    begin_panel
    until_true 60 'the panel to return' has org.kde.StatusNotifierWatcher
    until_true 30 'the icon to be drawn on the new panel' find_icon
    until_true 20 'the menu on the bus' find_name
    sleep 1
    forty_sessions
    until_true 30 'forty sessions' says 0040
    sleep 6
    menu 40-sessions
    close_menus
    kill "$program"
    wait "$program" || fail "the program exited with $?"
}

# try DESKTOP: runs the steps in each of its variants.
try() {
    local variant
    export DESKTOP=$1 OUT=$PWD/target/visible/$1
    # shellcheck source=visible/desktops/xfce.sh
    source "tests/visible/desktops/$1.sh"
    install_packages "${DISPLAY_PACKAGES[@]}" "${PACKAGES[@]}"
    ! declare -F build_more >/dev/null || build_more
    mkdir -p "$OUT"
    for variant in "${VARIANTS[@]}"; do
        export VARIANT=${variant%%:*}
        on_display "${variant#*:}" "${ENVIRONMENT[@]}" bash "$PWD/tests/visible.sh" --inside || fail "failed on $1, $VARIANT"
    done
    echo "$1: screenshots in $OUT"
}

main() {
    local desktops=() word readme=''
    cd "$(dirname "${BASH_SOURCE[0]}")/.."
    for word in "$@"; do
        case $word in
        --readme) readme=1 ;;
        *)
            [[ -f tests/visible/desktops/$word.sh ]] || fail "Unknown desktop $word; known: $(basename -s .sh tests/visible/desktops/*)"
            desktops+=("$word")
            ;;
        esac
    done
    ((${#desktops[@]} > 0)) || desktops=(xfce)
    [[ -n ${VISIBLE_PROGRAM:-} ]] || cargo build --locked --quiet
    export PROGRAM=${VISIBLE_PROGRAM:-${CARGO_TARGET_DIR:-$PWD/target}/debug/pilotlight}
    for word in "${desktops[@]}"; do
        (try "$word")
    done
    if [[ -n $readme ]]; then
        mkdir -p assets/screenshots
        convert target/visible/xfce/dark-submenu.png -crop 722x504+302+0 +repage +dither -colors 96 -strip PNG8:assets/screenshots/xfce-menu.png
    fi
}

case ${1:-} in
--inside)
    # shellcheck source=visible/desktops/xfce.sh
    source "$(dirname "${BASH_SOURCE[0]}")/visible/desktops/$DESKTOP.sh"
    inside
    ;;
*) main "$@" ;;
esac

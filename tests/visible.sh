#!/usr/bin/env bash
# The light on real panels, to be looked at: a desktop on Xvfb, in light and in dark; the menu with 0, 1, 12 and 40 sessions, a
# submenu, the tooltip; a session that asks while a submenu is open; one that is put right by a click on the entry below its
# row; the panel killed and started again. Pictures go to target/visible/DESKTOP.
#
#   tests/visible.sh [xfce|mate|lxqt|gnome|kde|wine]...   these desktops; without a name, XFCE
#   tests/visible.sh --readme                             and the best of XFCE's pictures to assets/screenshots
#
# It checks what a machine can (the icon is drawn, the menu has a place for each of its entries and fits the display, case 106
# by a mouse, 127 in two clicks); the rest is for eyes. What a desktop is, its file in tests/visible/desktops says. Linux only;
# installs what is missing: GNOME and KDE are about 1 GB each.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=visible/display.sh
source "$(dirname "${BASH_SOURCE[0]}")/visible/display.sh"
# shellcheck source-path=SCRIPTDIR source=visible/sessions.sh
source "$(dirname "${BASH_SOURCE[0]}")/visible/sessions.sh"

# --- The panel --------------------------------------------------------------------------------------------------------

shot() { import -window root "$OUT/$VARIANT-$1.png"; }
# point X Y: the pointer goes there, in two steps, as a hand would: a menu wants to see it move.
point() { xdotool mousemove --sync $(($1 + 3)) $(($2 + 1)) sleep 0.1 mousemove "$1" "$2"; sleep 0.3; }
seen() { grep -o '"36535f61[^"]*"' "$STATE/seen.json" 2>/dev/null | sort -u || true; }
says() { "$PROGRAM" --home "$HOME_DIR" status --json | grep -q "$1"; }
crashed_works() { says '0009".*"status":"working"'; }

bus() { gdbus call --session --timeout 5 -d org.freedesktop.DBus -o / -m "org.freedesktop.DBus.$1" "${@:2}"; }

# The program's connection that has the menu: its name on the bus becomes icon.
find_name() {
    for icon in $(bus ListNames | grep -oE ':[0-9]+\.[0-9]+'); do
        ! bus GetConnectionUnixProcessID "$icon" | grep -q " $program,)" || ! entries | grep -q . || return 0
    done
    return 1
}

# What stands in the menu, from the top down: a label or a line each.
entries() {
    gdbus call --session --timeout 5 -d "$icon" -o /MenuBar -m com.canonical.dbusmenu.GetLayout 0 1 "['label', 'type']" |
        grep -oE "'label': <('[^']*'|\"[^\"]*\")>|'type': <'separator'>"
}

close_menus() {
    xdotool key Escape key Escape key Escape
    sleep 0.5
}

# What is other on the display than it was before the menu was opened: menu_width, menu_height, menu_x, menu_y.
find_menu() {
    import -window root "$SCRATCH/after.png"
    read -r menu_width menu_height menu_x menu_y < <(convert "$SCRATCH/before.png" "$SCRATCH/after.png" -compose difference -composite \
        -crop "+0+$PANEL_HEIGHT" +repage -colorspace gray -threshold 3% -trim -format '%w %h %X %Y\n' info: | tr -d +)
}

# Whether the menu is there, and drawn to its end.
menu_stands() {
    local before
    find_menu
    before="$menu_width $menu_height"
    sleep 0.5
    find_menu
    ((menu_width > 150 && menu_height > 50)) && [[ "$menu_width $menu_height" == "$before" ]]
}

# Opens the menu, with the left button where the panel lets it, and finds where it is: menu_x, menu_y, menu_width, menu_height, and the height of a row.
open_menu() {
    local all lines bottom
    close_menus
    point $((icon_x - 300)) $((icon_y + 300))
    sleep 0.3
    import -window root "$SCRATCH/before.png"
    point "$icon_x" "$icon_y"
    xdotool click "${BUTTON:-1}"
    until_true 20 'the menu' menu_stands
    menu_y=$((menu_y + PANEL_HEIGHT)) bottom=$((menu_y + menu_height))
    entries >"$SCRATCH/entries"
    all=$(wc -l <"$SCRATCH/entries") lines=$(grep -c separator "$SCRATCH/entries")
    row_height=$(((menu_height - 2 * EDGE - lines * LINE) / (all - lines)))
    ((menu_width > 150 && row_height >= 18 && row_height <= 40)) ||
        fail "there is no menu with $all entries: ${menu_width}x$menu_height pixels, $row_height a row"
    : "${usual_height:=$row_height}"
    ((row_height >= usual_height - 1)) || fail "of $all entries not each has its place: $row_height pixels a row, not $usual_height"
    ((bottom <= height)) || fail "the menu runs off the display: $bottom of $height pixels"
}

# menu NAME: a picture of the menu.
menu() {
    open_menu
    shot "$1"
}

# row WORDS: the middle of the entry with these words.
row() {
    local before lines
    before=$(grep -n -m 1 -F -- "$1" "$SCRATCH/entries" | cut -d: -f1)
    [[ -n $before ]] || fail "the menu has no $1: $(<"$SCRATCH/entries")"
    lines=$(head -n "$before" "$SCRATCH/entries" | grep -c separator || true)
    echo $((menu_y + EDGE + (before - 1 - lines) * row_height + lines * LINE + row_height / 2))
}

# Opens the menu, and the first session's submenu, and rests on its first line.
aim() {
    local y
    open_menu
    y=$(row 'billing-api')
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

# A part of the last picture, as it is and enlarged.
closer() { convert "$OUT/$VARIANT-menu.png" -crop "$2" +repage -filter point -resize 600% "$OUT/$VARIANT-$1.png"; }

# case 127: from the icon to a session that works again in two clicks. The crashed one's remedy stands below its row.
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

# --- What is done -----------------------------------------------------------------------------------------------------

inside() {
    local width height program icon icon_x icon_y menu_x menu_y menu_width menu_height row_height usual_height
    export HOME_DIR=$HOME/.copilot OWNERS=$SCRATCH/owners
    STATE=$HOME/.local/state/pilotlight CODE=$HOME/code
    pids=''
    owners=''
    trap 'shot last; cp "$STATE/pilotlight.log" "$OUT/$VARIANT-program.log"; for p in $owners $pids $(cat "$SCRATCH/resumed" 2>/dev/null); do kill "$p" 2>/dev/null || true; done
        sleep 0.5; for p in $pids; do kill -KILL "$p" 2>/dev/null || true; done' EXIT # not every panel heeds the first
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
    sleep 6
    close_menus
    point "$icon_x" "$icon_y"
    sleep 1.5
    shot tooltip
    menu menu
    closer icon "56x28+$((icon_x - 28))+0"
    ! declare -F spoken >/dev/null || spoken
    aim
    shot submenu

    # case 106, by a mouse: the pointer rests on a line of the first session's submenu, another session comes, and only
    # then the button goes down. It does nothing to any other session. Without the change it marks the first one as seen.
    aim
    session 41 late 'Came while the menu was open' main; owned
    prompt 1; requests 1 a; tool 0 a bash 'true'
    event permission.requested 0 '{"requestId":"r","permissionRequest":{"kind":"shell","toolCallId":"a"}}'
    until_true 20 'the late session' says 0041
    sleep 0.6
    shot changed
    xdotool click 1
    sleep 0.5
    [[ -z $(seen | grep -v 0001 || true) ]] || fail "a click landed on another session: $(seen)"
    aim
    xdotool click 1
    until_true 5 'the click' test -s "$STATE/seen.json"
    [[ $(seen) == '"36535f61-5c7b-4f09-a70b-2f8aed970001"' ]] || fail "the click was meant for the first session: $(seen)"

    # A small display of GNOME has no room for that row.
    [[ $VARIANT == small ]] || in_two_clicks

    # The panel goes, and comes again.
    close_menus
    kill -KILL "$panel"
    wait "$panel" || true
    begin_panel
    until_true 60 'the panel to come again' has org.kde.StatusNotifierWatcher
    until_true 30 'the icon to be drawn on the new panel' find_icon
    until_true 20 'the menu on the bus' find_name
    sleep 1
    forty_sessions
    until_true 30 'forty sessions' says 0040
    sleep 6
    menu 40-sessions
    close_menus
    kill "$program"
    wait "$program" || fail "the program ended with $?"
}

# try DESKTOP: in each of its variants.
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
        on_display "${variant#*:}" "${ENVIRONMENT[@]}" bash "$PWD/tests/visible.sh" --inside || fail "on $1, $VARIANT"
    done
    echo "$1: pictures in $OUT"
}

main() {
    local desktops=() word readme=''
    cd "$(dirname "${BASH_SOURCE[0]}")/.."
    for word in "$@"; do
        case $word in
        --readme) readme=1 ;;
        *)
            [[ -f tests/visible/desktops/$word.sh ]] || fail "There is no desktop $word, but: $(basename -s .sh tests/visible/desktops/*)"
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
        small() { convert "target/visible/xfce/$1.png" -crop "$2" +repage +dither -colors 96 -strip "PNG8:assets/screenshots/$1.png"; }
        small light-menu 460x441+564+0
        small dark-submenu 774x441+250+0
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

#!/usr/bin/env bash
# A click lands, on a real panel: sessions ask and are answered at 0.2, 1 and 5 changes a second, which moves rows of the
# menu. With the root menu open and no submenu, the pointer rests on a remedy for a while, and then the mouse button is
# pressed. Each press must do what was under the pointer, or the user must be told why not. Press by press in
# target/visible/DESKTOP/storm-*.txt, with what the panel and the program said on the bus.
#
#   tests/visible/storm.sh [DESKTOP]...      on these desktops; without a name, XFCE
#
# STORM_PRESSES is the number of presses at each rate, 15 by default; STORM_RATES are the rates. Linux only; installs what is
# missing. One at a time: each run takes the first free display.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=display.sh
source "$(dirname "${BASH_SOURCE[0]}")/display.sh"
# shellcheck source-path=SCRIPTDIR source=sessions.sh
source "$(dirname "${BASH_SOURCE[0]}")/sessions.sh"
# shellcheck source-path=SCRIPTDIR source=panel.sh
source "$(dirname "${BASH_SOURCE[0]}")/panel.sh"

readonly WAVES=5 CRASHED=3

# A session that asks, N: change N on its log asks for a permission if N is odd, and answers that if it is even.
change() {
    local kind=requested log
    log=$HOME_DIR/session-state/$(printf '36535f61-5c7b-4f09-a70b-2f8aed97%04d' $((10 + $1 % WAVES)))/events.jsonl
    (($1 / WAVES % 2 == 0)) || kind=completed
    printf '{"type":"permission.%s","data":{"requestId":"r%d","result":{"kind":"approved"},"permissionRequest":{"kind":"shell","toolCallId":"a","fullCommandText":"make %d"}},"id":"%s","timestamp":"%s"}\n' \
        "$kind" $(($1 / WAVES / 2)) $(($1 / WAVES / 2)) "change-$1" "$(date -u +%FT%T.%3NZ)" >>"$log"
}

# storm SECONDS: one change each so many seconds, until it is killed.
storm() {
    local n=$((SECONDS * 100))
    n=$((n - n % (2 * WAVES)))
    while sleep "$1"; do
        change "$n"
        n=$((n + 1))
    done
}

all_crashed() { [[ $("$PROGRAM" --home "$HOME_DIR" status --json | grep -o '"status":"crashed"' | wc -l) == "$CRASHED" ]]; }

# Opens the menu. Unlike open_menu, it demands nothing of the rows' height.
open_root() {
    close_menus
    point $((icon_x - 300)) $((icon_y + 300))
    import -window root "$SCRATCH/before.png"
    point "$icon_x" "$icon_y"
    xdotool click "${BUTTON:-1}"
    for _ in $(seq 3); do
        (until_true 8 'the menu' menu_stands) 2>/dev/null || return 1
        find_menu
        entries >"$SCRATCH/entries"
        all=$(wc -l <"$SCRATCH/entries") lines=$(grep -c separator "$SCRATCH/entries")
        row_height=$(((menu_height - 2 * EDGE - lines * LINE) / (all - lines)))
        : "${usual_height:=$row_height}"
        # Rows that are still being drawn, or a popup below the menu, which does not move its rows.
        ((row_height != usual_height)) || break
        sleep 0.3
    done
    row_height=$usual_height
    menu_y=$((menu_y + PANEL_HEIGHT))
}

# The entries' order, without their ages.
shape() { grep -n 'Resume\|Quit\|separator' | tr -d '\n'; }

# press RATE N: prints what came of one press.
press() {
    local all lines target id y before came rest did
    open_root || { echo 'no menu'; return; }
    before=$(shape <"$SCRATCH/entries")
    target=$((RANDOM % CRASHED + 1))
    id=$(printf '36535f61-5c7b-4f09-a70b-2f8aed97%04d' "$target")
    y=$(row "Resume crash-$target") || { echo 'no row'; return; }
    : >"$SCRATCH/commands"
    : >"$SCRATCH/notes"
    point $((menu_x + menu_width / 2)) "$y"
    rest=$((RANDOM % 25))
    sleep "$((rest / 10)).$((rest % 10))"
    [[ $(entries | shape) == "$before" ]] || echo -n 'moved, '
    shot "storm-$1-$2"
    xdotool click 1
    came=lost
    for _ in $(seq 60); do
        did=$(<"$SCRATCH/commands")
        if [[ $did == *"resume=$id"* ]]; then came=landed; break; fi
        if [[ $did == *resume=* ]]; then came="another: $did"; break; fi
        if grep -q 'Nothing was done\|nothing was done\|did not work' "$SCRATCH/notes"; then came=said; break; fi
        sleep 0.1
    done
    kill -0 "$program" 2>/dev/null || came='the program is gone'
    echo "$came"
    [[ $came == landed || $came == said ]] || echo "pressed crash-$target at $y; menu ${menu_width}x$menu_height+$menu_x+$menu_y, rows of $row_height: $(tr '\n' ' ' <"$SCRATCH/entries")" >&2
    # Crash it again.
    [[ $came != landed && $came != another* ]] || {
        until_true 10 'the session to be resumed' test -s "$SCRATCH/resumed"
        until_true 10 'its owner' runs_copilot "$(<"$SCRATCH/resumed")"
        kill "$(<"$SCRATCH/resumed")"
        rm "$SCRATCH/resumed"
        until_true 20 'the sessions to have crashed again' all_crashed
    }
}

inside() {
    local program icon icon_x icon_y menu_x menu_y menu_width menu_height row_height usual_height rate n log status=0
    export HOME_DIR=$HOME/.copilot OWNERS=$SCRATCH/owners
    STATE=$HOME/.local/state/pilotlight CODE=$HOME/code
    pids='' owners='' storming=''
    trap 'for p in $storming $owners $pids $(cat "$SCRATCH/resumed" 2>/dev/null); do kill "$p" 2>/dev/null || true; done
        sleep 0.5; for p in $pids; do kill -KILL "$p" 2>/dev/null || true; done' EXIT
    PATH=$SCRATCH/bin:$PATH
    mkdir -p "$HOME_DIR/session-state" "$STATE" "$XDG_CONFIG_HOME"
    make_copilot
    printf '#!/bin/sh\n[ "$1" != -e ] || shift\necho "$@" >>"%s/commands"\nexec "$@"\n' "$SCRATCH" >"$SCRATCH/bin/terminal"
    for n in $(seq $CRASHED); do
        session "$n" "crash-$n" 'Bump the dependencies' main
        prompt 1000; requests 990 a; tool 980 a bash 'cargo update'
        echo 4194000 >"$folder/inuse.4194000.lock"
    done
    for n in $(seq 10 $((9 + WAVES))); do
        session "$n" "wave-$n" 'Comes and goes' main; owned
        prompt 60; requests 50 a; tool 40 a bash 'make'
    done
    put_up
    until_true 60 'the panel' has org.kde.StatusNotifierWatcher
    xsetroot -solid '#3b4252'
    dbus-monitor --session "interface='org.freedesktop.Notifications',member='Notify'" >"$SCRATCH/notes" & pids+=" $!"
    dbus-monitor --session "interface='com.canonical.dbusmenu'" >"$OUT/$VARIANT-storm-bus.log" 2>/dev/null & pids+=" $!"
    "$PROGRAM" --home "$HOME_DIR" >/dev/null 2>&1 & pids+=" $!"
    program=$!
    until_true 30 'the icon to be drawn' find_icon
    until_true 20 'the menu on the bus' find_name
    until_true 20 'the crashed sessions' all_crashed
    sleep 1.5
    local all lines
    open_root || fail 'there is no menu'
    for rate in ${STORM_RATES:-0.2 1 5}; do
        log=$OUT/$VARIANT-storm-$rate.txt
        : >"$log"
        storm "$(echo "1 / $rate" | bc -l)" & storming=$!
        for n in $(seq "${STORM_PRESSES:-15}"); do
            echo "$n: $(press "$rate" "$n" 2>>"$log")" >>"$log"
        done
        kill "$storming"
        wait "$storming" 2>/dev/null || true
        storming=''
        echo "$DESKTOP, $VARIANT, $rate changes a second: $(sed -n 's/^[0-9]*: //; T; s/another.*/another/; p' "$log" | sort | uniq -c | xargs)"
        ! grep '^[0-9]*: ' "$log" | grep -qv 'landed$\|said$' || status=1
    done
    return "$status"
}

try() {
    local variant status=0
    export DESKTOP=$1 OUT=$PWD/target/visible/$1
    # shellcheck source=desktops/xfce.sh
    source "tests/visible/desktops/$1.sh"
    install_packages "${DISPLAY_PACKAGES[@]}" bc:bc "${PACKAGES[@]}"
    mkdir -p "$OUT"
    for variant in "${VARIANTS[@]}"; do
        export VARIANT=${variant%%:*}
        on_display "${variant#*:}" "${ENVIRONMENT[@]}" bash "$PWD/tests/visible/storm.sh" --inside || status=1
    done
    return "$status"
}

main() {
    local word status=0
    cd "$(dirname "${BASH_SOURCE[0]}")/../.."
    [[ -n ${VISIBLE_PROGRAM:-} ]] || cargo build --locked --quiet
    export PROGRAM=${VISIBLE_PROGRAM:-${CARGO_TARGET_DIR:-$PWD/target}/debug/pilotlight}
    (($# > 0)) || set -- xfce
    for word in "$@"; do
        [[ -f tests/visible/desktops/$word.sh ]] || fail "Unknown desktop $word; known: $(basename -s .sh tests/visible/desktops/*)"
        (try "$word") || status=1
    done
    return "$status"
}

case ${1:-} in
--inside)
    # shellcheck source=desktops/xfce.sh
    source "$(dirname "${BASH_SOURCE[0]}")/desktops/$DESKTOP.sh"
    inside
    ;;
*) main "$@" ;;
esac

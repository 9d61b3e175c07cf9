#!/usr/bin/env bash
# A click lands, on a real panel: sessions ask and are answered at 0.2, 1 and 5 changes a second, which moves rows of the
# menu. With the root menu open, the pointer rests on an entry for a while, and then the mouse button is pressed: on a
# remedy, the headline, Reopen, Quit, an entry of Notifications, of a session's submenu, and of "N more". Each press must do
# what was under the pointer, or the user must be told why not. Press by press in target/visible/DESKTOP/*-storm-RATE.txt,
# with a screenshot of each; beside them what the panel and the program said on the bus.
#
#   tests/visible/storm.sh [DESKTOP]...      on these desktops; without a name, XFCE
#
# STORM_PRESSES is the number of presses at each rate, 15 by default; STORM_RATES are the rates, STORM_KINDS the kinds of
# entries (the functions in storm.py); STORM_MINUTES is how long sessions change before the first press: every five minutes
# the menu is opened, and the panel must have all of its entries as they are then. Linux only; installs what is missing. One at
# a time: each run takes the first free display.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source-path=SCRIPTDIR source=stage.sh
source tests/visible/stage.sh

readonly WAVES=5

# Sessions that always ask, sessions that crashed, and sessions that ask and are answered.
fill_stage() {
    local n
    for n in $(seq 21 $((20 + ${ASKING:-3}))); do asking_session "$n"; done
    for n in $CRASHED; do crashed_session "$n"; done
    for n in $(seq 10 $((9 + WAVES))); do working_session "$n" wave 'Comes and goes'; done
}

# Change N on the log of a session that comes and goes: it asks for a permission, or has been answered.
change() {
    local kind=requested log
    log=$HOME_DIR/session-state/$(printf '36535f61-5c7b-4f09-a70b-2f8aed97%04d' $((10 + $1 % WAVES)))/events.jsonl
    (($1 / WAVES % 2 == 0)) || kind=completed
    printf '{"type":"permission.%s","data":{"requestId":"r%d","result":{"kind":"approved"},"permissionRequest":{"kind":"shell","toolCallId":"a","fullCommandText":"make %d"}},"id":"%s","timestamp":"%s"}\n' \
        "$kind" $(($1 / WAVES / 2)) $(($1 / WAVES / 2)) "change-$1" "$(date -u +%FT%T.%3NZ)" >>"$log"
}

# storm RATE: so many changes a second once the menu was looked at, until it is killed.
storm() {
    local n=$((SECONDS * 100)) gap
    gap=$(awk "BEGIN { print 1 / $1 }")
    n=$((n - n % (2 * WAVES)))
    until [[ -e $SCRATCH/ready ]]; do sleep 0.2; done
    while sleep "$gap"; do
        change "$n"
        n=$((n + 1))
    done
}

inside() {
    local rate storming=0 status=0 log
    export CRASHED='1 2 3 4'
    set_stage panel
    fill_stage
    place_icon 4
    for rate in ${STORM_RATES:-0.2 1 5}; do
        log=$OUT/$VARIANT-storm-$rate.txt
        rm -f "$SCRATCH/ready"
        storm "$rate" & storming=$!
        /usr/bin/python3 tests/visible/storm.py "$rate" "${STORM_PRESSES:-15}" || status=1
        kill "$storming"
        wait "$storming" 2>/dev/null || true
        echo "$DESKTOP, $VARIANT, $rate changes a second: $(sed -n 's/^[0-9]*: //; s/[, :].*//; p' "$log" | sort | uniq -c | xargs)"
        grep '^after ' "$log" || true
        ! grep '^after ' "$log" | grep -qv ': the menu follows' || status=1
        ! grep '^[0-9]*: ' "$log" | grep -v '^[0-9]*: \(landed\|said\)' || status=1
    done
    return "$status"
}

run xfce "$@"

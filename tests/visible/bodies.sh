#!/usr/bin/env bash
# A click on the body of a popup leads to something that acts, on a real display: that of a crashed session resumes it, that
# of several opens the table of all sessions, and that of a session that asks leads to its terminal, or says why it cannot. Where a
# desktop's script knows the place of the first button (first_button), that of a crashed session is clicked, too.
# So does one in the list of earlier popups, where GNOME keeps them; Plasma 5.27 listed none of ours.
# Screenshots and what the bus said go to target/visible/DESKTOP.
#
#   tests/visible/bodies.sh [DESKTOP]...      on these desktops; without a name, XFCE
#
# Linux only; installs what is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source-path=SCRIPTDIR source=stage.sh
source tests/visible/stage.sh

# Sets body_x, body_y and body_height to what differs from the display without popups. Fails if nothing does, or if it still
# moves.
find_popup() {
    local before=${body_x:-}x${body_y:-}x${body_height:-}
    body_x='' body_y='' body_height=''
    import -window root "$SCRATCH/now.png"
    read -r body_width body_height body_x body_y < <(convert "$SCRATCH/empty.png" "$SCRATCH/now.png" -compose difference -composite \
        -crop +0+30 -colorspace gray -threshold 8% -trim -format '%w %h %X %Y\n' info: 2>/dev/null | tr -d +)
    ((body_width > 100 && body_height > 25)) && [[ ${body_x}x${body_y}x$body_height == "$before" ]]
}

is_empty() { ! find_popup && [[ -z $body_x || $body_width -lt 100 ]]; }

# Sets what the display looks like without popups. Fails if that still changes.
is_calm() {
    import -window root "$SCRATCH/empty.png"
    sleep 1
    import -window root "$SCRATCH/now.png"
    compare -metric AE "$SCRATCH/empty.png" "$SCRATCH/now.png" null: 2>/dev/null
}

# rest_pointer: moves the pointer to where nothing is.
rest_pointer() { point 5 $((height - 40)); }

# press NAME EXPECTED: clicks on the title of the popup, and demands this of what is opened or said then.
press() {
    until_true 20 "the notification of $1" grep -qa 'member=Notify$' "$SCRATCH/notes"
    until_true 20 "the popup of $1" find_popup
    click_at "$1" "$2" $((body_x + body_width * 2 / 5)) $((body_y + (body_height < 90 ? body_height / 2 : 30)))
}

# press_in_place EXPECTED: clicks on a popup that asks and, where the pointer is, on the note that this failed: where popups leave with
# the pointer, the note comes under it, and is gone when the pointer is.
press_in_place() {
    until_true 20 'the notification of a session that asks' grep -qa 'member=Notify$' "$SCRATCH/notes"
    until_true 20 'the popup of a session that asks' find_popup
    point $((body_x + body_width * 2 / 5)) $((body_y + 30))
    xdotool mousedown 1 sleep 0.1 mouseup 1
    until_true 8 'a note' grep -qa 'that did not work' "$SCRATCH/notes"
    sleep 1
    click_at 'a note about what failed' "$1" $((body_x + body_width * 2 / 5)) $((body_y + 30))
}

# press_button NAME EXPECTED [BUTTON]: clicks on the first button of the popup, or where BUTTON says.
press_button() {
    local x y button=${3:-first_button}
    until_true 20 "the notification of $1" grep -qa 'member=Notify$' "$SCRATCH/notes"
    until_true 20 "the popup of $1" find_popup
    until_true 20 "the button of $1" "$button"
    read -r x y < <("$button")
    click_at "$1, its ${button//_/ }" "$2" "$x" "$y"
}

# press_in_history NAME EXPECTED: the same, once the popup has gone, where the server keeps it.
press_in_history() {
    local x y
    until_true 20 "the notification of $1" grep -qa 'member=Notify$' "$SCRATCH/notes"
    sleep 2
    xdotool mousemove 30 $((height - 80)) sleep 0.5 mousemove 5 $((height - 40))
    until_true 40 "the popup of $1 to go" is_empty
    open_history
    read -r x y < <(in_history)
    click_at "$1, in the history" "$2" "$x" "$y"
}

# click_at NAME EXPECTED X Y
click_at() {
    local came
    shot "body-${1//[ ,]/-}"
    : >"$SCRATCH/commands"
    cat "$SCRATCH/notes" >>"$OUT/$VARIANT-bodies-bus.log"
    : >"$SCRATCH/notes"
    echo "PRESSED $1" >>"$OUT/$VARIANT-bodies-bus.log"
    point "$3" "$4"
    # As long as a hand holds it: Cinnamon ignores a shorter press on the first popup.
    xdotool mousedown "${BODY_BUTTON:-1}" sleep 0.1 mouseup "${BODY_BUTTON:-1}"
    if (until_true 8 "$2" grep -qaE "$2" "$SCRATCH/commands" "$SCRATCH/notes") 2>/dev/null; then
        came="landed: $(grep -haoE "$2" "$SCRATCH/commands" "$SCRATCH/notes" | head -1)"
    else
        came="lost: $(cat "$SCRATCH/commands")"
        status=1
        cat "$SCRATCH/notes" >>"$OUT/$VARIANT-bodies-bus.log"
        shot "body-${1//[ ,]/-}-lost"
    fi
    echo "$DESKTOP, $VARIANT: a click on the popup of $1: $came"
    rest_pointer
}

# The popup of a session that asks goes once it is answered where it runs.
withdraws() {
    rest_pointer
    : >"$SCRATCH/notes"
    asking_session 10
    until_true 20 'the notification of a session that asks' grep -qa 'member=Notify$' "$SCRATCH/notes"
    until_true 20 'the popup of a session that asks' find_popup
    shot body-withdrawn
    event permission.completed 0 '{"requestId":"r","result":{"kind":"approved"}}'
    if (until_true 20 'an empty display' is_empty) 2>/dev/null; then
        echo "$DESKTOP, $VARIANT: a popup is withdrawn once its request is answered"
    else
        echo "$DESKTOP, $VARIANT: a popup stays after its request was answered"
        shot body-withdrawn-lost
        status=1
    fi
}

inside() {
    local width height program body_x body_y body_width body_height n status=0
    set_stage popups
    : >"$OUT/$VARIANT-bodies-bus.log"
    : >"$SCRATCH/notes"
    # Also of a popup that did not come.
    trap 'shot bodies-last; cat "$SCRATCH/notes" >>"$OUT/$VARIANT-bodies-bus.log"; clear_stage' EXIT
    printf '[actions]\nterminal = ["%s/bin/terminal"]\n[notifications]\nafter-start = "1ms"\n' "$SCRATCH" >"$XDG_CONFIG_HOME/pilotlight/config.toml"
    read -r width height < <(xdotool getdisplaygeometry)
    sleep 2
    xdotool mousemove 5 $((height - 40))
    until_true 20 'a display that stands still' is_calm
    dbus-monitor --session "interface='org.freedesktop.Notifications'" >>"$SCRATCH/notes" 2>/dev/null & pids+=" $!"
    start_program
    sleep 2
    crashed_session 1
    press 'a crashed session' "${BODY_CLOSES:-resume=36535f61-5c7b-4f09-a70b-2f8aed970001}"
    (until_true 40 'an empty display' is_empty) || true
    asking_session 2
    if [[ -n ${LEAVES_WITH_POINTER:-} ]]; then
        press_in_place 'live$'
    else
        press 'a session that asks' "${BODY_CLOSES:-that did not work|live$}"
    fi
    # Where terminals cannot be shown, as on Wayland, the table opens instead.
    # The popup that was clicked goes first.
    sleep 1
    if [[ -z ${LEAVES_WITH_POINTER:-} ]] && grep -qa 'that did not work' "$SCRATCH/notes"; then
        press 'a note about what failed' 'live$|that did not work'
    fi
    (until_true 40 'an empty display' is_empty) || true
    withdraws
    if declare -F open_history >/dev/null; then
        crashed_session 8
        press_in_history 'a session that crashed' 'resume=36535f61-5c7b-4f09-a70b-2f8aed970008'
        # GNOME 50 leaves the list open.
        xdotool key Escape
        (until_true 60 'an empty display' is_empty) || true
    fi
    if declare -F first_button >/dev/null; then
        rest_pointer
        crashed_session 9
        press_button 'a session that crashed' 'resume=36535f61-5c7b-4f09-a70b-2f8aed970009'
        (until_true 40 'an empty display' is_empty) || true
    fi
    if declare -F not_now >/dev/null; then
        rest_pointer
        crashed_session 11
        press_button 'a session that crashed' 'string "later"' not_now
        sleep 2
        [[ ! -s $SCRATCH/commands ]] || fail "\"Not now\" did something: $(<"$SCRATCH/commands")"
        (until_true 40 'an empty display' is_empty) || true
    fi
    rest_pointer
    for n in 3 4 5 6 7; do crashed_session "$n"; done
    sleep 3
    press 'several sessions' "${BODY_CLOSES:-live$|resume=36535f61}"
    return "$status"
}

run xfce "$@"

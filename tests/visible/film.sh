#!/usr/bin/env bash
# Films README's first minute on a real display: a panel and a notification server under Xvfb, the real Copilot CLI with the
# bridge in a terminal, and a scripted model. A prompt is typed, the session asks, the icon and a popup say so, a click
# approves, and the work goes on.
#
#   tests/visible/film.sh [DESKTOP]           on this desktop (xfce or kde-wayland); without a name, XFCE: target/visible/DESKTOP/film.gif
#   tests/visible/film.sh [DESKTOP] --readme  also copies it to assets/screenshots/approve.gif
#
# PILOTLIGHT_TEST_COPILOT and PILOTLIGHT_TEST_CACHE name the CLI and its cache, as for the tests. Linux only; installs what is
# missing.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=display.sh
source "$(dirname "${BASH_SOURCE[0]}")/display.sh"
DESKTOP=${DESKTOP:-xfce}
if [[ -n ${1:-} && $1 != --* ]]; then DESKTOP=$1 && shift; fi
# shellcheck source-path=SCRIPTDIR source=desktops/xfce.sh
source "$(dirname "${BASH_SOURCE[0]}")/desktops/$DESKTOP.sh"

readonly SIZE=1000x520 PER_SECOND=5
TERMINAL=xterm
[[ $DESKTOP != *-wayland ]] || TERMINAL=foot
readonly FILM_PACKAGES=("$TERMINAL:$TERMINAL" tmux:tmux python3:python3)
POINTER='polygon 0,0 0,17 4,13 7,20 10,19 7,12 12,12'

status_of() { "$PROGRAM" status --json | grep -o '"status": *"[a-z-]*"' | cut -d'"' -f4; }
is() { [[ $(status_of) == "$1" ]]; }
bridge_says() { "$PROGRAM" bridge status | grep -q "$1"; }
typed() { xdotool type --delay 45 -- "$1"; xdotool key Return; }

# Takes pictures until the file `stop` appears, each with the pointer's place in its name.
record() {
    local n=0 X=0 Y=0
    while [[ ! -e $SCRATCH/stop ]]; do
        eval "$(xdotool getmouselocation --shell)"
        import -window root "$(printf '%s/%04d-%d-%d-.png' "$SCRATCH/frames" "$n" "$X" "$Y")"
        n=$((n + 1))
        sleep "0.$((8 / PER_SECOND))"
    done
}

# glide X Y: moves the pointer there as a hand would.
glide() {
    local X=0 Y=0 step
    eval "$(xdotool getmouselocation --shell)"
    for step in $(seq 1 12); do
        xdotool mousemove $((X + ($1 - X) * step / 12)) $((Y + ($2 - Y) * step / 12))
        sleep 0.08
    done
}

in_terminal() {
    # Tmux tells what the terminal shows.
    local inside=(tmux -S "$SCRATCH/tmux" -f /dev/null new-session -c "$HOME/code/billing-api" copilot --no-auto-update \; set status off)
    if [[ $TERMINAL == foot ]]; then
        begin foot --config=/dev/null --font='DejaVu Sans Mono:size=10' --window-size-chars=100x24 --title='billing-api: copilot' "${inside[@]}"
    else
        begin xterm -fa 'DejaVu Sans Mono' -fs 10 -geometry 100x26+16+52 -title 'billing-api: copilot' -bg '#1e222a' -fg '#e5e9f0' -e "${inside[@]}"
    fi
}
screen() { tmux -S "$SCRATCH/tmux" capture-pane -p; }
on_screen() { screen | grep -qF -- "$1"; }

inside() {
    local id p
    pids=''
    trap 'tmux -S "$SCRATCH/tmux" kill-server 2>/dev/null || true; for p in $pids; do kill "$p" 2>/dev/null || true; done' EXIT
    mkdir -p "$XDG_CONFIG_HOME" "$SCRATCH"/{frames,bin} "$HOME/code/billing-api"
    python3 "$(dirname "${BASH_SOURCE[0]}")/model.py" >"$SCRATCH/model" &
    pids+=" $!"
    until_true 10 'the model' test -s "$SCRATCH/model"
    # shellcheck disable=SC2016
    printf '#!/bin/sh\nfor i in 1 2 3; do echo "service $i of 3: healthy"; sleep 1; done\n' >"$HOME/code/billing-api/deploy.sh"
    chmod +x "$HOME/code/billing-api/deploy.sh"
    # A new user's home: Copilot trusts the folder, and nothing else is set.
    mkdir -p "$HOME/.copilot" "$HOME/.config/pilotlight" "$XDG_CACHE_HOME"
    printf '{"trustedFolders":["%s"]}' "$HOME/code/billing-api" >"$HOME/.copilot/config.json"
    printf '#!/bin/sh\nexport COPILOT_OFFLINE=true COPILOT_PROVIDER_BASE_URL=%s COPILOT_PROVIDER_API_KEY=x COPILOT_MODEL=scripted COPILOT_PROVIDER_MAX_PROMPT_TOKENS=90000 COPILOT_PROVIDER_MAX_OUTPUT_TOKENS=9000 XDG_CACHE_HOME=%q\nexec %q "$@"\n' \
        "$(<"$SCRATCH/model")" "$COPILOT_CACHE" "$COPILOT" >"$SCRATCH/bin/copilot"
    chmod +x "$SCRATCH/bin/copilot"
    export PATH=$SCRATCH/bin:$PATH
    # Windows begin at the upper left, with KWin.
    printf '[Windows]\nPlacement=ZeroCornered\n' >"$XDG_CONFIG_HOME/kwinrc"
    put_up
    until_true 60 'the panel' has org.kde.StatusNotifierWatcher
    until_true 60 'the notification server' has org.freedesktop.Notifications
    xsetroot -solid '#3b4252'
    printf '[notifications]\nafter-start = "1s"\n' >"$HOME/.config/pilotlight/config.toml"
    "$PROGRAM" bridge install --yes 2>"$SCRATCH/install" || fail "$(<"$SCRATCH/install")"
    begin "$PROGRAM" tray
    in_terminal
    until_true 60 'Copilot' on_screen '? help'
    until_true 60 'the bridge' bridge_says ': covered'
    id=$("$PROGRAM" status --json | grep -oE '"id": *"[0-9a-f-]{36}"' | head -1 | cut -d'"' -f4)
    # README's third step: this terminal's user lets Pilotlight answer there.
    "$PROGRAM" let-answer "$id"
    until_true 30 'the consent' on_screen 'elevated permissions'
    xdotool mousemove 400 300 key 1
    until_true 30 'the answer' bridge_says 'can be answered'
    sleep 8   # the welcome disappears
    xdotool mousemove 620 430
    record & recorder=$!
    sleep 1
    typed 'Roll out the new invoices to staging'
    until_true 30 'the popup' film_button
    sleep 2.5
    read -r popup_at_x popup_at_y < <(film_button)
    import -window root "$OUT/film-popup.png" # to be looked at where the click misses
    glide "$popup_at_x" "$popup_at_y"
    sleep 0.7
    xdotool click 1
    until_true 20 'the work' is working
    glide 560 470
    until_true 60 'the end of the work' on_screen '3 of 3 services are healthy'
    sleep 2.5
    touch "$SCRATCH/stop"
    wait "$recorder"
    grep -q '"kind":"approved"' "$HOME"/.copilot/session-state/*/events.jsonl || fail 'nothing was approved'
    assemble
}

# film_button: where Approve is, once it is there. Where popups are no windows, this is where Plasma 6.7 puts it.
film_button() {
    if declare -F approve_button >/dev/null; then
        approve_button
    else
        is needs-permission && sleep 4 && echo '711 182'
    fi
}

# Draws the pointer, and joins the pictures, each for as long as nothing changed.
assemble() {
    local picture X Y before='' delay=$((100 / PER_SECOND)) hash held=0 last=''
    local -a film=()
    for picture in "$SCRATCH"/frames/*.png; do
        IFS=- read -r _ X Y _ <<<"$(basename "$picture")"
        convert "$picture" -fill white -stroke black -draw "translate $X,$Y $POINTER" "$picture"
        hash=$(convert "$picture" rgb:- | sha256sum)
        if [[ $hash == "$before" ]]; then
            held=$((held + delay))
        else
            [[ -z $last ]] || film+=(-delay "$held" "$last")
            before=$hash last=$picture held=$delay
        fi
    done
    film+=(-delay "$((held + 150))" "$last")
    convert "${film[@]}" -loop 0 +dither -colors 64 -layers optimize "$OUT/film.gif"
    echo "$OUT/film.gif: $(stat -c %s "$OUT/film.gif") bytes, $((${#film[@]} / 3)) pictures"
}

main() {
    cd "$(dirname "${BASH_SOURCE[0]}")/../.."
    install_packages "${DISPLAY_PACKAGES[@]}" "${PACKAGES[@]}" "${FILM_PACKAGES[@]}"
    [[ -n ${VISIBLE_PROGRAM:-} ]] || cargo build --locked --quiet
    local target=${CARGO_TARGET_DIR:-$PWD/target}
    export PROGRAM=${VISIBLE_PROGRAM:-$target/debug/pilotlight} OUT=$target/visible/$DESKTOP
    export COPILOT=${PILOTLIGHT_TEST_COPILOT:-$target/copilot-cli/node_modules/@github/copilot-linux-x64/copilot}
    export COPILOT_CACHE=${PILOTLIGHT_TEST_CACHE:-$target/copilot-cache} VARIANT=dark
    [[ -x $COPILOT ]] || fail "there is no Copilot CLI at $COPILOT: tests/all.sh installs it"
    mkdir -p "$OUT"
    on_display "$SIZE" "${ENVIRONMENT[@]}" DESKTOP="$DESKTOP" bash "$PWD/tests/visible/film.sh" --inside || fail 'the film could not be made'
    [[ ${1:-} != --readme ]] || cp "$OUT/film.gif" assets/screenshots/approve.gif
}

case ${1:-} in
--inside) inside ;;
*) main "$@" ;;
esac

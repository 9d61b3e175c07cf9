#!/usr/bin/env bash
# The light on a real panel, to be looked at: Xvfb at 1024x600, xfce4-panel in light and in dark; the menu with 0, 1, 12 and 40
# sessions, a submenu, the tooltip; and a session that is put right by a click on the entry below its row. Pictures go to
# target/visible.
#
#   tests/visible.sh              everything
#   tests/visible.sh --readme     and the best of them to assets/screenshots
#
# It checks what a machine can (case 106 by a mouse, 127 in two clicks); the rest is for eyes. Linux only; installs what is
# missing.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=visible/display.sh
source "$(dirname "${BASH_SOURCE[0]}")/visible/display.sh"

# Behind the program, or the file, that shows whether each is there.
readonly PACKAGES=(Xvfb:xvfb xdotool:xdotool import:imagemagick xfce4-panel:xfce4-panel dbus-run-session:dbus-daemon
    openbox:openbox xsetroot:x11-xserver-utils gdbus:libglib2.0-bin
    '/usr/lib/*/xfce4/notifyd/xfce4-notifyd:xfce4-notifyd' '/usr/share/fonts/truetype/dejavu:fonts-dejavu-core'
    '/usr/share/icons/Adwaita:adwaita-icon-theme' '/usr/lib/*/gdk-pixbuf-2.0/*/loaders/*svg*:librsvg2-common')

# --- Sessions ---------------------------------------------------------------------------------------------------------

# The time $1 seconds ago, as Copilot writes it.
ago() {
    date -u -d "@$(($(date +%s) - $1))" +%FT%T.000Z
}

# session N FOLDER TITLE BRANCH: makes the folder of the session whose id ends in N, and events go there from now on.
session() {
    local WORK=$CODE/$2
    id=$(printf '36535f61-5c7b-4f09-a70b-2f8aed97%04d' "$1")
    folder=$HOME_DIR/session-state/$id
    events=0
    set -- "$1" "$3" "$4"
    mkdir -p "$WORK"
    mkdir -p "$folder"
    cat >"$folder/workspace.yaml" <<YAML
id: $id
cwd: $WORK
branch: $3
client_name: github/cli
name: $2
created_at: $(ago $((7200 - $1 * 60)))
YAML
    event session.start 7000 '{"sessionId":"'"$id"'","selectedModel":"gpt-5.2","context":{"cwd":"'"$WORK"'"}}'
}

# event TYPE SECONDS_AGO DATA: one line of the log.
event() {
    printf '{"type":"%s","data":%s,"id":"%s-%d","timestamp":"%s","parentId":"%s-%d"}\n' \
        "$1" "$3" "$id" $((events + 1)) "$(ago "$2")" "$id" "$events" >>"$folder/events.jsonl"
    events=$((events + 1))
}

prompt() { event user.message "$1" '{"content":"go on"}'; event assistant.turn_start "$1" '{"turnId":"0"}'; }
requests() { event assistant.message "$1" '{"model":"gpt-5.2","content":"I will.","toolRequests":[{"toolCallId":"'"$2"'"}]}'; }
tool() { event tool.execution_start "$1" '{"toolCallId":"'"$2"'","toolName":"'"$3"'","arguments":{"command":"'"$4"'"}}'; }
tool_done() { event tool.execution_complete "$1" '{"toolCallId":"'"$2"'","success":true}'; }
answer() { event assistant.message "$1" '{"model":"gpt-5.2","content":"'"$2"'","toolRequests":[]}'; event assistant.turn_end "$1" '{"turnId":"0"}'; }
denied() {
    tool "$1" "$2" bash 'make'
    event tool.execution_complete "$1" '{"toolCallId":"'"$2"'","success":false,"error":{"code":"denied","message":"Permission denied and could not request permission from user. Stop."}}'
}

runs_copilot() { [[ $(readlink "/proc/$1/exe") == "$OWNERS/copilot" ]]; }

# The session has an owner: a copy of sleep(1) by Copilot's name that holds its folder as Copilot does. Copilot makes its lock
# itself, so there is none before the process is Copilot's.
owned() {
    perl -e 'use Fcntl; $^F = 999; open(F, ">", "$ARGV[0]/inuse.$$.hold") or die; flock(F, 6) or die; exec $ARGV[1], 600' \
        "$folder" "$OWNERS/copilot" &
    owner=$!
    owners="$owners $owner"
    until_true 5 'the owner' runs_copilot "$owner"
    echo "$owner" >"$folder/inuse.$owner.lock"
}

# A Copilot to be resumed: its process holds the session as the other owners do theirs, and goes on with its turn.
make_copilot() {
    mkdir -p "$OWNERS" "$SCRATCH/bin"
    cp "$(command -v sleep)" "$OWNERS/copilot"
    cat >"$SCRATCH/bin/copilot" <<'SH'
#!/usr/bin/env bash
[[ $1 == --resume=* ]] || { echo 'GitHub Copilot CLI 1.0.102.'; exit; }
folder=$HOME_DIR/session-state/${1#--resume=}
at() { date -u +%FT%T.000Z; }
printf '{"type":"session.resume","data":{},"id":"again-1","timestamp":"%s"}\n' "$(at)" >>"$folder/events.jsonl"
printf '{"type":"user.message","data":{"content":"go on"},"id":"again-2","timestamp":"%s","parentId":"again-1"}\n' "$(at)" >>"$folder/events.jsonl"
rm -f "$folder"/inuse.*
echo $$ >"$SCRATCH/resumed"
echo $$ >"$folder/inuse.$$.lock"
exec perl -e 'use Fcntl; $^F = 999; open(F, ">", "$ARGV[0]/inuse.$$.hold") or die; flock(F, 6) or die; exec $ARGV[1], 600' "$folder" "$OWNERS/copilot"
SH
    printf '#!/bin/sh\n[ "$1" != -e ] || shift\nexec "$@"\n' >"$SCRATCH/bin/terminal"
    chmod +x "$SCRATCH/bin/copilot" "$SCRATCH/bin/terminal"
    mkdir -p "$XDG_CONFIG_HOME/pilotlight"
    printf '[actions]\nterminal = ["%s/bin/terminal"]\n[notifications]\n' "$SCRATCH" >"$XDG_CONFIG_HOME/pilotlight/config.toml"
    # No popup in front of the menu.
    printf '%s = false\n' needs-permission needs-input permission-lost stuck crashed failed done \
        >>"$XDG_CONFIG_HOME/pilotlight/config.toml"
    touch "$STATE/welcomed"
}

one_session() {
    session 1 billing-api 'Write the migration' main; owned
    prompt 400; requests 395 a; tool 390 a bash 'rm -rf build'
    event permission.requested 120 '{"requestId":"r","permissionRequest":{"kind":"shell","toolCallId":"a","fullCommandText":"rm -rf build && cargo test"}}'
}

twelve_sessions() {
    session 2 web-shop 'Cart & <b>checkout</b>' release/2.0; owned
    prompt 400; requests 390 a
    event tool.execution_start 380 '{"toolCallId":"a","toolName":"ask_user","arguments":{"question":"Which one do you want?","choices":["one","two"]}}'
    session 3 infra 'Load test' schema; owned
    prompt 900; requests 890 a; tool 888 a bash 'ls'; tool_done 800 a
    session 4 ml-train 'Train again' perf/render; owned
    prompt 43; requests 35 a; tool 32 a bash 'python train.py'
    session 5 docs 'Translate the error messages' main; owned
    prompt 300; requests 290 a; tool 280 a bash 'grep -r'; tool_done 200 a
    session 6 tools 'Tidy up the test support' tests; owned
    prompt 190; answer 185 'Everything is tidy now.'
    session 7 scripts 'Port the scripts to the new shell' main; owned
    prompt 700; event assistant.turn_end 650 '{"turnId":"0"}'
    event session.error 650 '{"errorType":"rate_limit","message":"Too many requests, try again later","statusCode":429}'
    session 8 infra 'Rotate TLS' review; owned
    prompt 800; denied 700 a; denied 690 b; denied 680 c; answer 670 'I was not allowed to.'
    session 9 deps 'Bump the dependencies' deps
    prompt 1000; requests 990 a; tool 980 a bash 'cargo update'
    echo 4194000 >"$folder/inuse.4194000.lock"
    session 10 build 'Explain the build cache' main; owned
    event user.message 4000 '{"content":"go"}'; answer 3900 'It is content-addressed.'
    event session.shutdown 3800 '{"shutdownType":"routine"}'
    kill "$owner"
    rm "$folder/inuse.$owner.lock"
    for n in 11 12 13; do
        session "$n" "service-$n" "Answered long ago" main; owned
        prompt $((n * 100)); answer $((n * 100 - 20)) 'Done.'
    done
}

forty_sessions() {
    local n
    for n in $(seq 14 40); do
        session "$n" "project-number-$n-of-many" "A longer title of session $n" main; owned
        case $((n % 4)) in
        0) prompt $((n * 20)); requests $((n * 19)) a; tool $((n * 19)) a bash 'make'
            event permission.requested $((n * 19)) '{"requestId":"r","permissionRequest":{"kind":"shell","toolCallId":"a","fullCommandText":"make -j8 all install"}}' ;;
        1 | 2) prompt $((n * 10)); requests 15 a; tool 12 a bash 'npm run build' ;;
        3) prompt $((n * 100)); answer $((n * 100 - 20)) 'Done.' ;;
        esac
    done
}

# --- The desktop ------------------------------------------------------------------------------------------------------

write_panel() {
    local dark=false conf=$XDG_CONFIG_HOME/xfce4/xfconf/xfce-perchannel-xml
    [[ $PANEL == light ]] || dark=true
    mkdir -p "$conf"
    cat >"$conf/xfce4-panel.xml" <<XML
<?xml version="1.0" encoding="UTF-8"?>
<channel name="xfce4-panel" version="1.0">
  <property name="configver" type="int" value="2"/>
  <property name="panels" type="array"><value type="int" value="1"/><property name="dark-mode" type="bool" value="$dark"/>
    <property name="panel-1" type="empty">
      <property name="position" type="string" value="p=6;x=0;y=0"/><property name="length" type="uint" value="100"/>
      <property name="position-locked" type="bool" value="true"/><property name="size" type="uint" value="28"/>
      <property name="plugin-ids" type="array"><value type="int" value="1"/><value type="int" value="2"/><value type="int" value="3"/></property>
    </property></property>
  <property name="plugins" type="empty">
    <property name="plugin-1" type="string" value="tasklist"/>
    <property name="plugin-2" type="string" value="separator"><property name="expand" type="bool" value="true"/></property>
    <property name="plugin-3" type="string" value="systray"><property name="square-icons" type="bool" value="true"/></property>
  </property>
</channel>
XML
    # Menus and tooltips follow the panel, as they do on a desktop that is dark throughout.
    mkdir -p "$XDG_CONFIG_HOME/gtk-3.0"
    printf '[Settings]\ngtk-application-prefer-dark-theme=%s\n' "$dark" >"$XDG_CONFIG_HOME/gtk-3.0/settings.ini"
}

has_panel() {
    gdbus call --session -d org.freedesktop.DBus -o / -m org.freedesktop.DBus.NameHasOwner org.kde.StatusNotifierWatcher |
        grep -q true
}

crashed_works() { says '0009".*"status":"working"'; }

has_icon() {
    gdbus call --session -d org.kde.StatusNotifierWatcher -o /StatusNotifierWatcher \
        -m org.freedesktop.DBus.Properties.Get org.kde.StatusNotifierWatcher RegisteredStatusNotifierItems | grep -q "'"
}

shot() { import -window root "$OUT/$PANEL-$1.png"; }
# point X Y: the pointer goes there, in two steps, as a hand would: a menu wants to see it move.
point() { xdotool mousemove --sync $(($1 + 3)) $(($2 + 1)) sleep 0.1 mousemove "$1" "$2"; sleep 0.3; }
seen() { grep -o '"36535f61[^"]*"' "$STATE/seen.json" 2>/dev/null | sort -u || true; }

# How high an entry of the menu is, and a line between entries, in pixels; and where the first entry begins.
# The crashed session's remedy stands below so many entries.
readonly REMEDY=7
readonly ENTRY=25 LINE=1 FIRST=33

# entry ENTRIES LINES: the middle of the entry below so many entries and lines.
entry() { echo $((FIRST + ENTRY * $1 + LINE * $2 + ENTRY / 2)); }

# Opens the menu, and the first session's submenu, and rests on its first line.
aim() {
    xdotool key Escape key Escape
    point "$icon_x" "$icon_y"
    xdotool click 3
    sleep 0.5
    point $((width - 200)) "$(entry 1 1)"
    sleep 0.8
    point $((width - 420)) "$(entry 1 1)"
    point $((width - 590)) "$(entry 1 1)"
}

# menu NAME: a picture of the menu.
menu() {
    xdotool key Escape key Escape
    sleep 0.3
    point "$icon_x" "$icon_y"
    xdotool click 1
    sleep 1
    shot "$1"
}

says() { "$PROGRAM" --home "$HOME_DIR" status --json | grep -q "$1"; }

# Whether two pictures differ by more than a tooltip does.
different() { (($(compare -metric AE "$1" "$2" null: 2>&1 || true) > 100000)); }

# A part of the last picture, as it is and enlarged.
closer() { convert "$OUT/$PANEL-menu.png" -crop "$2" +repage -filter point -resize 600% "$OUT/$PANEL-$1.png"; }

inside() {
    local width icon_x icon_y
    export HOME_DIR=$HOME/.copilot OWNERS=$SCRATCH/owners
    STATE=$HOME/.local/state/pilotlight CODE=$HOME/code
    pids=''
    owners=''
    trap 'cp "$STATE/pilotlight.log" "$OUT/$PANEL-program.log"; for p in $pids $owners $(cat "$SCRATCH/resumed" 2>/dev/null); do kill "$p" 2>/dev/null || true; done' EXIT
    PATH=$SCRATCH/bin:$PATH
    mkdir -p "$HOME_DIR/session-state" "$STATE"
    make_copilot
    write_panel
    openbox >/dev/null 2>&1 & pids+=" $!"
    xfce4-panel --disable-wm-check >/dev/null 2>&1 & pids+=" $!"
    for d in /usr/lib/*/xfce4/notifyd/xfce4-notifyd; do "$d" >/dev/null 2>&1 & pids+=" $!"; done
    until_true 20 'the panel' has_panel
    xsetroot -solid '#3b4252'
    "$PROGRAM" --home "$HOME_DIR" >/dev/null 2>&1 & pids+=" $!"
    local program=$!
    until_true 10 'the icon' has_icon
    sleep 1.5
    width=$(xdotool getdisplaygeometry | cut -d' ' -f1)
    icon_x=$((width - 14)) icon_y=14
    menu 0-sessions
    one_session
    until_true 20 'the first session' says needs-permission
    sleep 1.5
    menu 1-session
    twelve_sessions
    until_true 20 'twelve sessions' says permission-lost
    sleep 6
    xdotool key Escape key Escape
    point "$icon_x" "$icon_y"
    sleep 1
    shot tooltip
    menu menu
    closer icon "56x28+$((width - 56))+0"
    # The first session's submenu opens when the pointer rests on it.
    point $((width - 200)) "$(entry 1 1)"
    sleep 0.8
    shot submenu

    # case 106, by a mouse: the pointer rests on a line of the first session's submenu, another session comes, and only
    # then the button goes down. It does nothing to any other session. Without the change it marks the first one as seen.
    aim
    session 41 late 'Came while the menu was open' main; owned
    prompt 1; requests 1 a; tool 0 a bash 'true'
    event permission.requested 0 '{"requestId":"r","permissionRequest":{"kind":"shell","toolCallId":"a"}}'
    sleep 0.6
    shot changed
    xdotool click 1
    sleep 0.5
    [[ -z $(seen | grep -v 0001 || true) ]] || fail "a click landed on another session: $(seen)"
    aim
    xdotool click 1
    until_true 5 'the click' test -s "$STATE/seen.json"
    [[ $(seen) == '"36535f61-5c7b-4f09-a70b-2f8aed970001"' ]] || fail "the click was meant for the first session: $(seen)"

    # case 127: from the icon to a session that works again in two clicks. The crashed one's remedy stands below its row.
    menu before-remedy
    point $((width - 200)) "$(entry "$REMEDY" 1)"
    shot on-remedy
    xdotool click 1
    sleep 1
    shot clicked
    until_true 20 'the session to be resumed' test -s "$SCRATCH/resumed"
    until_true 20 'the session to work' crashed_works
    sleep 1.5
    menu after-remedy
    forty_sessions
    until_true 30 'forty sessions' says 0040
    sleep 6
    menu 40-sessions

    # The left button opens the same menu.
    xdotool key Escape key Escape
    sleep 0.5
    point "$icon_x" "$icon_y"
    shot closed
    xdotool click 1
    sleep 1
    shot click
    different "$OUT/$PANEL-closed.png" "$OUT/$PANEL-click.png" || fail 'a left click opened no menu'
    kill "$program"
    wait "$program" || fail "the program ended with $?"
}

main() {
    local panel
    cd "$(dirname "${BASH_SOURCE[0]}")/.."
    install_packages "${PACKAGES[@]}"
    cargo build --quiet
    export OUT=$PWD/target/visible PROGRAM=${CARGO_TARGET_DIR:-$PWD/target}/debug/pilotlight
    [[ -z ${VISIBLE_PROGRAM:-} ]] || PROGRAM=$VISIBLE_PROGRAM
    mkdir -p "$OUT"
    for panel in light dark; do
        on_display 1024x600 PANEL=$panel bash "$PWD/tests/visible.sh" --inside || fail "on the $panel panel"
    done
    echo "pictures: $OUT"
    if [[ ${1:-} == --readme ]]; then
        mkdir -p assets/screenshots
        small() { convert "$OUT/$1.png" -crop "$2" +repage +dither -colors 96 -strip "PNG8:assets/screenshots/$1.png"; }
        small light-menu 460x420+564+0
        small dark-submenu 724x420+300+0
    fi
}

case ${1:-} in
--inside) inside ;;
*) main "$@" ;;
esac

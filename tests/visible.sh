#!/usr/bin/env bash
# The light on a real panel, to be looked at: Xvfb, xfce4-panel in light and in dark, sessions in ten statuses, the menu and
# a submenu opened by the mouse, the tooltip, and again the menu by the left button. Pictures go to target/visible.
#
#   tests/visible.sh              everything
#   tests/visible.sh --readme     and the best of them to assets/screenshots
#
# It checks what a machine can (case 106 by a mouse); the rest is for eyes. Linux only; installs what is missing.
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

# session N TITLE BRANCH: makes the folder of the session whose id ends in N, and events go there from now on.
session() {
    id=$(printf '36535f61-5c7b-4f09-a70b-2f8aed97%04d' "$1")
    folder=$HOME_DIR/session-state/$id
    events=0
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

# A process that passes for Copilot's owns the session: a copy of sleep(1) by that name.
# The session has an owner: a process by Copilot's name that holds its folder as Copilot does.
owned() {
    perl -e 'use Fcntl; $^F = 999; open(F, ">", "$ARGV[0]/inuse.$$.hold") or die; flock(F, 6) or die; exec $ARGV[1], 600' \
        "$folder" "$OWNERS/copilot" &
    owner=$!
    owners="$owners $owner"
    echo "$owner" >"$folder/inuse.$owner.lock"
}

make_sessions() {
    rm -rf "$HOME_DIR/session-state"
    mkdir -p "$OWNERS" "$WORK"
    cp "$(command -v sleep)" "$OWNERS/copilot"
    session 1 'Fix the parser of the settings' main; owned
    prompt 130; requests 125 a; tool 124 a bash 'cargo test -p settings'
    event permission.requested 120 '{"requestId":"r","permissionRequest":{"kind":"shell","toolCallId":"a","fullCommandText":"cargo test"}}'
    session 2 'Release notes & <b>changelog</b> for 2.0' release/2.0; owned
    prompt 400; requests 390 a; tool 380 a ask_user 'Which version comes first?'
    session 3 'Move the store to the new schema' schema; owned
    prompt 900; requests 890 a; tool 888 a bash 'ls'; tool_done 800 a
    session 4 'Speed up the first render' perf/render; owned
    prompt 20; requests 15 a; tool 12 a bash 'npm run build'
    session 5 'Translate the error messages' main; owned
    prompt 300; requests 290 a; tool 280 a bash 'grep -r'; tool_done 200 a
    session 6 'Tidy up the test support' tests; owned
    prompt 190; answer 185 'Everything is tidy now.'
    session 7 'Port the scripts to the new shell' main; owned
    prompt 700; event assistant.turn_end 650 '{"turnId":"0"}'
    event session.error 650 '{"errorType":"rate_limit","message":"Too many requests, try again later","statusCode":429}'
    session 8 'Review the pull request of the week' review; owned
    prompt 800; denied 700 a; denied 690 b; denied 680 c; answer 670 'I was not allowed to.'
    session 9 'Bump the dependencies' deps
    prompt 1000; requests 990 a; tool 980 a bash 'cargo update'
    echo 4194000 >"$folder/inuse.4194000.lock"
    session 10 'Explain the build cache' main; owned
    event user.message 4000 '{"content":"go"}'; answer 3900 'It is content-addressed.'
    event session.shutdown 3800 '{"shutdownType":"routine"}'
    kill "$owner"
    rm "$folder/inuse.$owner.lock"
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

has_icon() {
    gdbus call --session -d org.kde.StatusNotifierWatcher -o /StatusNotifierWatcher \
        -m org.freedesktop.DBus.Properties.Get org.kde.StatusNotifierWatcher RegisteredStatusNotifierItems | grep -q "'"
}

shot() { import -window root "$OUT/$PANEL-$1.png"; }
# point X Y: the pointer goes there, in two steps, as a hand would: a menu wants to see it move.
point() { xdotool mousemove --sync $(($1 + 3)) $(($2 + 1)) sleep 0.1 mousemove "$1" "$2"; sleep 0.3; }
seen() { grep -o '"36535f61[^"]*"' "$STATE/seen.json" 2>/dev/null | sort -u || true; }

# Opens the menu, and the first session's submenu, and rests on its first line.
aim() {
    xdotool key Escape key Escape
    point "$icon_x" "$icon_y"
    xdotool click 3
    sleep 0.5
    point $((width - 800)) 76
    sleep 0.8
    point $((width - 400)) 76
    sleep 0.2
    # A line of its details, wherever the submenu begins.
    point $((width - 400)) 171
}

# Whether two pictures differ by more than a tooltip does.
different() { (($(compare -metric AE "$1" "$2" null: 2>&1 || true) > 100000)); }

# A part of the last picture, as it is and enlarged.
closer() { convert "$OUT/$PANEL-menu.png" -crop "$2" +repage -filter point -resize 600% "$OUT/$PANEL-$1.png"; }

inside() {
    local width icon_x icon_y
    HOME_DIR=$HOME/.copilot STATE=$HOME/.local/state/pilotlight OWNERS=$SCRATCH/owners WORK=$HOME/project
    pids=''
    owners=''
    trap 'for p in $pids $owners; do kill "$p" 2>/dev/null || true; done' EXIT
    write_panel
    openbox >/dev/null 2>&1 & pids+=" $!"
    xfce4-panel --disable-wm-check >/dev/null 2>&1 & pids+=" $!"
    for d in /usr/lib/*/xfce4/notifyd/xfce4-notifyd; do "$d" >/dev/null 2>&1 & pids+=" $!"; done
    until_true 20 'the panel' has_panel
    xsetroot -solid '#3b4252'
    make_sessions
    "$PROGRAM" --home "$HOME_DIR" >"$OUT/$PANEL-program.log" 2>&1 & pids+=" $!"
    local program=$!
    until_true 10 'the icon' has_icon
    sleep 1.5
    width=$(xdotool getdisplaygeometry | cut -d' ' -f1)
    icon_x=$((width - 14)) icon_y=14

    shot welcome
    point "$icon_x" "$icon_y"
    sleep 1
    shot tooltip
    xdotool click 3
    sleep 0.7
    shot menu
    closer icon "56x28+$((width - 56))+0"
    # The third entry is the first session: its menu opens when the pointer rests on it.
    point $((width - 260)) 76
    sleep 0.8
    shot submenu

    # case 106, by a mouse: the pointer rests on a line of the first session's submenu, another session comes, and only
    # then the button goes down. It does nothing to any other session. Without the change it marks the first one as seen.
    aim
    session 11 'Came while the menu was open' main; owned
    prompt 1; requests 1 a; tool 0 a bash 'true'
    event permission.requested 0 '{"requestId":"r","permissionRequest":{"kind":"shell","toolCallId":"a"}}'
    sleep 0.6
    shot changed
    xdotool click 1
    sleep 0.5
    [[ -z $(seen | grep -v 0001 || true) ]] || fail "a click landed on another session: $(seen)"
    aim
    xdotool click 1
    until_true 2 'the click' test -s "$STATE/seen.json"
    [[ $(seen) == '"36535f61-5c7b-4f09-a70b-2f8aed970001"' ]] || fail "the click was meant for the first session: $(seen)"

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
        on_display 1100x640 PANEL=$panel bash "$PWD/tests/visible.sh" --inside || fail "on the $panel panel"
    done
    echo "pictures: $OUT"
    if [[ ${1:-} == --readme ]]; then
        mkdir -p assets/screenshots
        small() { convert "$OUT/$1.png" -crop 980x580+120+0 +repage +dither -colors 96 -strip "PNG8:assets/screenshots/$1.png"; }
        small light-menu
        small dark-submenu
    fi
}

case ${1:-} in
--inside) inside ;;
*) main "$@" ;;
esac

# shellcheck shell=bash disable=SC2034
# Wine's own desktop, whose task bar has a tray, with the program for Windows. There is no bus and no Linux panel, so
# `inside` replaces the one of tests/visible.sh.
#
# Wine 8 lacks bcryptprimitives.dll, which Rust's standard library needs: tests/wine/bcryptprimitives.c takes its place.
# It does not report an icon's position (Shell_NotifyIconGetRect), without which no menu opens: a patched copy of the
# program calls another function, which always succeeds. It shows no notifications.

PACKAGES=(wine:wine '/usr/lib/*/wine/x86_64-unix:libwine' wine64:wine64 openbox:openbox xterm:xterm
    x86_64-w64-mingw32-gcc:gcc-mingw-w64-x86-64 x86_64-w64-mingw32-windres:binutils-mingw-w64-x86-64)
VARIANTS=(shell:1100x760)
ENVIRONMENT=(WINEDLLOVERRIDES='mscoree=;mshtml=' WINEDEBUG=-all)
readonly WINDOWS=x86_64-pc-windows-gnu
# The task bar is at the bottom.
readonly BAR_HEIGHT=16

# Builds the program for Windows. Its output is compared with that of the program for Linux.
build_more() {
    rustup target list --installed | grep -qx "$WINDOWS" || rustup target add "$WINDOWS"
    cargo build --locked --quiet --target "$WINDOWS"
    export WINDOWS_PROGRAM=${CARGO_TARGET_DIR:-$PWD/target}/$WINDOWS/debug/pilotlight.exe
}

make_program() {
    mkdir -p "$own"
    sed 's/Shell_NotifyIconGetRect/SHUpdateRecycleBinIcon\x00/' "$WINDOWS_PROGRAM" >"$own/pilotlight.exe"
    x86_64-w64-mingw32-gcc -shared -o "$own/bcryptprimitives.dll" tests/wine/bcryptprimitives.c -ladvapi32
}

# windows ARGUMENT...: runs the program in Wine and prints its output.
windows() { timeout 60 wine 'C:\pilotlight\pilotlight.exe' "$@" 2>"$SCRATCH/errors" | tr -d '\r'; }

# agrees ARGUMENT...: checks that the output is the same as on Linux, except for the path of the settings.
agrees() {
    windows "$@" | sed '/^# Read from /d' >"$SCRATCH/there" || fail "pilotlight.exe $* failed: $(<"$SCRATCH/errors")"
    "$PROGRAM" "$@" | sed '/^# Read from /d' | diff "$SCRATCH/there" - || fail "pilotlight.exe $* does not print the same as on Linux"
}

# Sets icon_x and icon_y: only the icon is coloured at the right of the task bar.
find_icon() {
    local x y w h
    read -r w h x y < <(import -window root -crop "200x$((BAR_HEIGHT - 2))+$((width - 200))+$((height - BAR_HEIGHT))" +repage png:- |
        convert - -colorspace HCL -channel G -separate +channel -threshold 35% -trim -format '%w %h %X %Y\n' info: | tr -d +)
    ((w >= 6 && w <= 24 && h >= 6)) || return 1
    icon_x=$((width - 200 + x + w / 2)) icon_y=$((height - BAR_HEIGHT + y + h / 2))
}

# Whether an area above the task bar has changed that is as large as a menu.
menu_is_open() {
    local w h
    import -window root "$SCRATCH/after.png"
    read -r w h < <(convert "$SCRATCH/before.png" "$SCRATCH/after.png" -compose difference -composite -gravity south -chop "0x$BAR_HEIGHT" \
        -colorspace gray -threshold 3% -trim -format '%w %h\n' info:)
    ((w > 150 && h > 150))
}

# Tests the table in a terminal: one key explains, another one quits.
live() {
    local terminal
    xterm -geometry 110x30+20+20 -fa 'DejaVu Sans Mono' -fs 10 -e \
        sh -c 'wine C:\\pilotlight\\pilotlight.exe --home C:\\home live; echo $? >"$SCRATCH/live"' & terminal=$!
    pids+=" $terminal"
    sleep 6
    shot live
    xdotool mousemove --sync 300 200 click 1 key Down
    sleep 1
    xdotool key Return
    sleep 4
    shot live-explain
    xdotool key Return
    sleep 2
    xdotool key q
    until_true 20 'live to end' test -s "$SCRATCH/live"
    [[ $(<"$SCRATCH/live") == 0 ]] || fail "live exited with $(<"$SCRATCH/live")"
}

inside() {
    local width height own icon_x icon_y button
    export WINEPREFIX=$SCRATCH/prefix HOME_DIR=$SCRATCH/prefix/drive_c/home OWNERS=$SCRATCH/owners STATE=$SCRATCH CODE=$SCRATCH/code
    own=$WINEPREFIX/drive_c/pilotlight
    pids=''
    trap 'shot last; wineserver -k 2>/dev/null || true; for p in $pids; do kill "$p" 2>/dev/null || true; done' EXIT
    read -r width height < <(xdotool getdisplaygeometry)
    wineboot -i >/dev/null 2>&1
    make_program
    mkdir -p "$HOME_DIR/session-state"
    session 9 deps 'Bump the dependencies' deps
    prompt 1000; requests 990 a; tool 980 a bash 'cargo update'
    echo 4194000 >"$folder/inuse.4194000.lock"

    windows --version | grep -q '^pilotlight ' || fail "the program does not start: $(<"$SCRATCH/errors")"
    windows --home 'C:\home' status >"$OUT/status.txt"
    grep -q 'deps.*Bump' "$OUT/status.txt" || fail "status: $(<"$OUT/status.txt")"
    windows --home 'C:\home' status --json | grep -q '0009".*"status":"crashed"' || fail 'status --json does not say crashed'
    agrees replay --json tests/traces/01-normal-two-tools-live-idle/*/events.jsonl
    agrees config --print
    agrees completions powershell
    windows --home 'C:\home' doctor >"$OUT/doctor.txt" || true
    grep -qi 'copilot' "$OUT/doctor.txt" || fail "doctor: $(<"$OUT/doctor.txt") $(<"$SCRATCH/errors")"
    (timeout 15 wine 'C:\pilotlight\pilotlight.exe' --home 'C:\home' watch --json 2>/dev/null || true) | head -1 | grep -q '0009' ||
        fail 'watch does not print the session'

    begin openbox
    begin wine explorer "/desktop=shell,${width}x$height"
    sleep 5
    begin wine explorer "/desktop=shell,${width}x$height" 'C:\pilotlight\pilotlight.exe' demo
    until_true 60 'the icon' find_icon
    sleep 25
    for button in 3 1; do
        find_icon || fail 'the icon is gone'
        xdotool mousemove --sync 300 300
        sleep 1
        import -window root "$SCRATCH/before.png"
        xdotool mousemove --sync "$icon_x" "$icon_y"
        sleep 1
        xdotool click "$button"
        until_true 20 "the menu at button $button" menu_is_open
        sleep 1
        shot "menu-$button"
        xdotool key Escape
        sleep 1
    done
    live
}

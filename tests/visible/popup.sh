#!/usr/bin/env bash
# A notification on a real display: Xvfb, xfce4-notifyd, a session of the real Copilot CLI that asks for a permission, and
# Approve clicked with the mouse. Pictures go to target/visible; with --readme, the popup also to assets/screenshots.
#
# The test is Rust's, and ignored elsewhere; where the CLI lies, tests/all.sh says. Linux only; installs what is missing.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=display.sh
source "$(dirname "${BASH_SOURCE[0]}")/display.sh"

readonly PACKAGES=(Xvfb:xvfb openbox:openbox xsetroot:x11-xserver-utils dbus-run-session:dbus-daemon xdotool:xdotool
    import:imagemagick xterm:xterm '/usr/lib/*/xfce4/notifyd/xfce4-notifyd:xfce4-notifyd' '/usr/share/fonts/truetype/dejavu:fonts-dejavu-core'
    '/usr/share/icons/Adwaita:adwaita-icon-theme')

inside() {
    local manager status=0
    openbox >/dev/null 2>&1 & manager=$!
    until_true 10 'the window manager' xdotool get_num_desktops
    xsetroot -solid '#3b4252'
    cargo test --locked --quiet --test e2e approve_is_clicked_with_the_mouse -- --ignored --nocapture || status=$?
    kill "$manager"
    return "$status"
}

main() {
    local out
    cd "$(dirname "${BASH_SOURCE[0]}")/../.."
    out=${CARGO_TARGET_DIR:-$PWD/target}/visible
    install_packages "${PACKAGES[@]}"
    cargo test --locked --quiet --tests --no-run
    mkdir -p "$out"
    on_display 900x400 PILOTLIGHT_TEST_PICTURES="$out" bash "$PWD/tests/visible/popup.sh" --inside ||
        fail 'the popup was not approved with the mouse'
    echo "pictures: $out"
    [[ ${1:-} == --readme ]] || return 0
    convert "$out/popup.png" -crop 440x168+460+0 +repage +dither -colors 96 -strip PNG8:assets/screenshots/popup.png
    # The display has no pointer of its own to be seen; one is drawn where it was.
    local pointer='translate 540,106 polygon 0,0 0,17 4,13 7,20 10,19 7,12 12,12'
    convert -delay 220 "$out/popup.png" -delay 120 '(' "$out/popup-pressed.png" -fill white -stroke black -draw "$pointer" ')' \
        -delay 260 "$out/popup-gone.png" -loop 0 +dither -colors 64 -layers optimize assets/screenshots/approve.gif
}

case ${1:-} in
--inside) inside ;;
*) main "$@" ;;
esac

#!/usr/bin/env bash
# A notification on a real display: Xvfb, xfce4-notifyd, a session of the real Copilot CLI that asks for a permission, and
# Approve clicked with the mouse. Pictures go to target/visible; with --readme, the popup also to assets/screenshots.
#
# The test is Rust's, and ignored elsewhere; where the CLI lies, tests/all.sh says. Linux only; installs what is missing.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=display.sh
source "$(dirname "${BASH_SOURCE[0]}")/display.sh"

readonly PACKAGES=(Xvfb:xvfb openbox:openbox xsetroot:x11-xserver-utils dbus-run-session:dbus-daemon xdotool:xdotool
    import:imagemagick '/usr/lib/*/xfce4/notifyd/xfce4-notifyd:xfce4-notifyd' '/usr/share/fonts/truetype/dejavu:fonts-dejavu-core'
    '/usr/share/icons/Adwaita:adwaita-icon-theme')

inside() {
    local manager status=0
    openbox >/dev/null 2>&1 & manager=$!
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
    [[ ${1:-} != --readme ]] ||
        convert "$out/popup.png" -crop 440x168+460+0 +repage +dither -colors 96 -strip PNG8:assets/screenshots/popup.png
}

case ${1:-} in
--inside) inside ;;
*) main "$@" ;;
esac

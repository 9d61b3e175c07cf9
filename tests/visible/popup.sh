#!/usr/bin/env bash
# A notification on a real display: Xvfb, a desktop's notification server, and a session of the real Copilot CLI that
# asks for a permission. Clicks Approve with the mouse, and Deny the next time; and types into a terminal while requests
# pop up, which must answer none (case 220). Screenshots go to target/visible/DESKTOP.
#
#   tests/visible/popup.sh [DESKTOP]      on this desktop; without a name, XFCE
#
# The test itself is in Rust, and ignored elsewhere. tests/all.sh says where the CLI is. Linux only; installs what is
# missing.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=display.sh
source "$(dirname "${BASH_SOURCE[0]}")/display.sh"

readonly TESTS=(approve_and_deny_can_be_clicked_with_the_mouse case_220)

inside() {
    local status=0
    pids=''
    trap 'for p in $pids; do kill "$p" 2>/dev/null || true; done' EXIT
    mkdir -p "$XDG_CONFIG_HOME"
    put_up_popups
    until_true 60 'the notification server' has org.freedesktop.Notifications
    xsetroot -solid '#3b4252'
    cargo test --locked --quiet --test e2e -- --ignored --nocapture --test-threads=1 "${TESTS[@]}" || status=$?
    return "$status"
}

# button approve|deny: prints its position, if a popup is shown.
button() {
    local place x y
    place=$(approve_button) || return 1
    read -r x y <<<"$place"
    # DENY is its distance to the right of Approve, in pixels.
    [[ $1 != deny ]] || x=$((x + DENY))
    echo "$x $y"
}

main() {
    local out desktop=${1:-xfce}
    cd "$(dirname "${BASH_SOURCE[0]}")/../.."
    [[ -f tests/visible/desktops/$desktop.sh ]] || fail "Unknown desktop $desktop; known: $(basename -s .sh tests/visible/desktops/*)"
    # shellcheck source=desktops/xfce.sh
    source "tests/visible/desktops/$desktop.sh"
    declare -F approve_button >/dev/null || fail "The positions of the buttons on $desktop are unknown: not tested."
    out=${CARGO_TARGET_DIR:-$PWD/target}/visible/$desktop
    install_packages "${DISPLAY_PACKAGES[@]}" xterm:xterm "${PACKAGES[@]}"
    cargo test --locked --quiet --test e2e --no-run
    mkdir -p "$out"
    VARIANT=${VARIANTS[0]%%:*}
    on_display 1000x500 "${ENVIRONMENT[@]}" DESKTOP="$desktop" VARIANT="$VARIANT" PILOTLIGHT_TEST_PICTURES="$out" \
        PILOTLIGHT_TEST_DISPLAY_SCRIPT="$PWD/tests/visible/popup.sh" bash "$PWD/tests/visible/popup.sh" --inside ||
        fail "the popups could not be answered with the mouse on $desktop"
    echo "$desktop: screenshots in $out"
}

case ${1:-} in
--inside | --button)
    # shellcheck source=desktops/xfce.sh
    source "$(dirname "${BASH_SOURCE[0]}")/desktops/$DESKTOP.sh"
    if [[ $1 == --button ]]; then button "$2"; else inside; fi
    ;;
*) main "$@" ;;
esac

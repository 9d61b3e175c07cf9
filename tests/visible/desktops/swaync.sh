# shellcheck shell=bash disable=SC2034
# swaync's popups under sway, with buttons.

# shellcheck source=sway.sh
source "$(dirname "${BASH_SOURCE[0]}")/sway.sh"
unset -f put_up
PACKAGES+=(swaync:sway-notification-center)
VARIANTS=(light:1024x600)

put_up_popups() {
    begin_sway
    begin swaync
}

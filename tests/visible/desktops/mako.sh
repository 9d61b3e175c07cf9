# shellcheck shell=bash disable=SC2034
# mako's popups under sway: it draws no buttons, and a click on a popup is its default action.

# shellcheck source=sway.sh
source "$(dirname "${BASH_SOURCE[0]}")/sway.sh"
unset -f put_up
VARIANTS=(light:1024x600)

put_up_popups() {
    begin_sway
    begin mako
}

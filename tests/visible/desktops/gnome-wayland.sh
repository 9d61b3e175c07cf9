# shellcheck shell=bash disable=SC2034
# GNOME's Wayland session, in a window of the X server, whose mouse and keyboard it gets.

# shellcheck source=gnome.sh
source "$(dirname "${BASH_SOURCE[0]}")/gnome.sh"
unset -f put_up_popups approve_button
VARIANTS=(dark:1280x800)
ENVIRONMENT+=(XDG_SESSION_TYPE=wayland MUTTER_DEBUG_DUMMY_MODE_SPECS=1280x800)

begin_panel() {
    begin gnome-shell --wayland --nested --no-x11
    panel=$!
    until_true 60 'the shell' has org.gnome.Shell
    leave_overview
}

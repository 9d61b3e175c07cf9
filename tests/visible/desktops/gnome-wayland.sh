# shellcheck shell=bash disable=SC2034
# GNOME's Wayland session, in a window of the X server, whose mouse and keyboard it gets.

# shellcheck source=gnome.sh
source "$(dirname "${BASH_SOURCE[0]}")/gnome.sh"
unset -f approve_button
VARIANTS=(dark:1280x800)
ENVIRONMENT+=(XDG_SESSION_TYPE=wayland MUTTER_DEBUG_DUMMY_MODE_SPECS=1280x800)
# GNOME 48, in its own font.
(($(debian_release) < 13)) || { PANEL_HEIGHT=32; LINE=19; DRAWN='345 45 330 37'; }

begin_panel() {
    begin gnome-shell --wayland --nested --no-x11
    panel=$!
    until_true 60 'the shell' has org.gnome.Shell
    leave_overview
}

# A popup leaves when the pointer does, and the next one appears in its place (bodies.sh).
LEAVES_WITH_POINTER=1

# The test itself is the panel that icons register with.
put_up_popups() {
    prepare
    gsettings set org.gnome.shell enabled-extensions '[]'
    begin_panel
}

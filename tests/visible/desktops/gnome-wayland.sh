# shellcheck shell=bash disable=SC2034,SC2154
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

# The test itself is the panel that icons register with.
put_up_popups() {
    prepare
    gsettings set org.gnome.shell enabled-extensions '[]'
    begin_panel
}

# A popup shows its buttons while the pointer is on it. Those of a crashed session, "Resume" and "Mute", share its width.
first_button() {
    if [[ $(xdotool getmouselocation) != *y:9?\ * ]]; then
        sleep 1
        xdotool mousemove --sync 640 200 sleep 0.3 mousemove --sync 640 130 sleep 0.2 mousemove --sync 640 100 sleep 0.2 mousemove 645 90
        sleep 1
    fi
    find_popup && ((body_height > 100)) || return 1
    echo "$((body_x + body_width / 4)) $((body_y + body_height - 28))"
}

# shellcheck shell=bash disable=SC2034,SC2154
# KDE Plasma's Wayland session: KWin in a window of the X server, whose mouse and keyboard it gets.

# shellcheck source=kde.sh
source "$(dirname "${BASH_SOURCE[0]}")/kde.sh"
unset -f approve_button
PACKAGES+=(kwin_wayland:kwin-wayland wl-copy:wl-clipboard)
if ((PLASMA == 5)); then
    PACKAGES+=('/usr/lib/*/qt5/plugins/platforms/libqwayland-generic.so:qtwayland5')
else
    PACKAGES+=('/usr/lib/*/qt6/plugins/platforms/libqwayland*.so:qt6-wayland')
fi
VARIANTS=(light:1280x800)
# Only where it is named.
[[ ${VISIBLE_VARIANTS:-} != *dark* ]] || VARIANTS+=(dark:1280x800)
ENVIRONMENT+=(XDG_SESSION_TYPE=wayland QT_QPA_PLATFORM=wayland KWIN_COMPOSE=Q)
LINE=7 PICTURED=below ROW=26
# Plasma 6.7.
(($(debian_release) < 14)) || LINE=5 EDGE=3 ROW=29

# begin_kwin: starts KWin, as large as the display, and has what is started from now on use it.
begin_kwin() {
    local width height
    read -r width height < <(xdotool getdisplaygeometry)
    write_settings
    # The program itself may raise its priority, which a container may refuse: then it does not start at all. A copy may not.
    cp "$(command -v kwin_wayland)" "$SCRATCH/bin/"
    begin "$SCRATCH/bin/kwin_wayland" --x11-display "$DISPLAY" --width "$width" --height "$height" --no-lockscreen
    until_true 20 'KWin' test -S "$XDG_RUNTIME_DIR/wayland-0"
    export WAYLAND_DISPLAY=wayland-0
    # What the bus starts, too.
    dbus-update-activation-environment WAYLAND_DISPLAY
}

put_up() {
    begin_kwin
    begin "kded$PLASMA"
    begin_panel
    until_true 60 'the notifications' has org.freedesktop.Notifications
    until_true 60 'the desktop' lay_out
}

put_up_popups() {
    begin_kwin
    begin_panel
    # With its usual panels, which come late, it shows popups already.
    until_true 60 'the first panels' has org.freedesktop.Notifications
    until_true 60 'the desktop' lay_out org.kde.plasma.notifications
    until_true 60 'the notifications' has org.freedesktop.Notifications
}

# The buttons of a crashed session, "Resume" and "Mute", are at the lower right of what bodies.sh found.
first_button() { echo "$((body_x + body_width - 83)) $((body_y + body_height - 18))"; }

# shellcheck shell=bash disable=SC2034
# KDE Plasma's Wayland session: KWin in a window of the X server, whose mouse and keyboard it gets.

# shellcheck source=kde.sh
source "$(dirname "${BASH_SOURCE[0]}")/kde.sh"
unset -f put_up_popups approve_button
PACKAGES+=(kwin_wayland:kwin-wayland '/usr/lib/*/qt5/plugins/platforms/libqwayland-generic.so:qtwayland5')
VARIANTS=(light:1280x800)
ENVIRONMENT+=(XDG_SESSION_TYPE=wayland QT_QPA_PLATFORM=wayland KWIN_COMPOSE=Q)
LINE=7 PICTURED=below ROW=26

put_up() {
    local width height
    read -r width height < <(xdotool getdisplaygeometry)
    write_settings
    # The program itself may raise its priority, which a container may refuse: then it does not start at all. A copy may not.
    cp "$(command -v kwin_wayland)" "$SCRATCH/bin/"
    begin "$SCRATCH/bin/kwin_wayland" --x11-display "$DISPLAY" --width "$width" --height "$height" --no-lockscreen
    until_true 20 'KWin' test -S "$XDG_RUNTIME_DIR/wayland-0"
    export WAYLAND_DISPLAY=wayland-0
    begin kded5
    begin_panel
    until_true 60 'the notifications' has org.freedesktop.Notifications
    until_true 60 'the desktop' lay_out
}

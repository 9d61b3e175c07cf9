# shellcheck shell=bash disable=SC2034
# GNOME Shell as a window manager on X11, with the extension AppIndicator.

PACKAGES=(gnome-shell:gnome-shell gjs:gjs '/usr/lib/*/dri/swrast_dri.so:libgl1-mesa-dri'
    '/usr/share/gnome-shell/extensions/*ppindicator*:gnome-shell-extension-appindicator')
VARIANTS=(dark:1280x800 small:1024x600)
ENVIRONMENT=(GSETTINGS_BACKEND=keyfile XDG_CURRENT_DESKTOP=GNOME XDG_SESSION_TYPE=x11 XDG_SESSION_CLASS=user
    GNOME_SHELL_SESSION_MODE=user)
PANEL_HEIGHT=27 LINE=13 EDGE=12 DENY=169
# Submenus open below their rows. The shell draws menus itself, without windows.
SUBMENUS=below DRAWN='470 45 457 36'
# With more there would be no room for the crashed sessions.
ASKING=1

prepare() {
    local extension=(/usr/share/gnome-shell/extensions/*ppindicator*)
    begin_system_bus
    gsettings set org.gnome.shell welcome-dialog-last-shown-version 999
    gsettings set org.gnome.shell disable-user-extensions false
    gsettings set org.gnome.shell disable-extension-version-validation true
    gsettings set org.gnome.shell enabled-extensions "['$(basename "${extension[0]}")']"
    gsettings set org.gnome.desktop.interface enable-animations false
    gsettings set org.gnome.desktop.session idle-delay 0
    gsettings set org.gnome.desktop.background picture-options none
    gsettings set org.gnome.desktop.background primary-color '#3b4252'
    [[ $VARIANT != light ]] || gsettings set org.gnome.desktop.interface color-scheme prefer-light
}

put_up() {
    prepare
    begin_panel
}

# The shell shows popups one at a time, and starts with one of its own. The test itself is the panel that icons register
# with, so the extension, which would take its place, is disabled.
put_up_popups() {
    prepare
    gsettings set org.gnome.shell enabled-extensions '[]'
    begin_panel
    local _
    for _ in {1..8}; do
        ! banner || xdotool mousemove --sync 500 60 sleep 1 mousemove --sync 725 58 sleep 0.5 click 1 mousemove --sync 30 300
        sleep 1
    done
    until_true 60 "the shell's own popup to disappear" no_banner
}

# Sets popup_y and popup_height to the area below the middle of the panel that has the colour of a banner, or of one under the
# pointer, which differ little from the background, and much from a window. Fails if there is no popup.
banner() {
    read -r popup_height popup_y < <(import -window root -crop '300x150+350+30' +repage png:- |
        convert - -fuzz 1% -fill red -opaque '#3f3f3f' -opaque '#474747' -fill black +opaque red -trim -format '%h %Y\n' info: 2>/dev/null | tr -d +)
    ((popup_height > 40 && popup_height < 150))
}

# Prints where the line between two buttons is, for each of them, in a banner under the pointer.
between_buttons() {
    import -window root -crop "300x1+350+$((30 + popup_y + popup_height - 8))" +repage txt:- | sed -n 's/^\([0-9]*\),.*#474747.*/\1/p'
}

# A banner stays until it detects user activity, so this moves the pointer.
no_banner() {
    xdotool mousemove 30 $((300 + RANDOM % 100))
    ! banner
}

# A popup shows its buttons when the pointer moves onto it after it has settled, and disappears when the pointer leaves.
# The buttons are in one row: "Not now", Approve and Deny on a request, two on a note.
approve_button() {
    local X Y SCREEN WINDOW lines
    banner || return 1
    eval "$(xdotool getmouselocation --shell)"
    if ((Y > 120)); then
        sleep 1
        xdotool mousemove --sync 500 120 sleep 0.2 mousemove --sync 500 90 sleep 0.2 mousemove --sync 500 70 sleep 0.2 mousemove --sync 505 66
    fi
    sleep 1
    ! banner || mapfile -t lines < <(between_buttons)
    # A note stays while the pointer is on it, and until the pointer moves.
    if ((${#lines[@]} != 2)); then
        xdotool mousemove --sync 30 $((300 + RANDOM % 100))
        return 1
    fi
    echo "$((350 + (lines[0] + lines[1]) / 2)) $((30 + popup_y + popup_height - 20))"
}

# Opens the list of earlier popups, below the clock; and where the first one is in it.
open_history() {
    point $((width / 2)) 14
    xdotool click 1
    sleep 2
}
in_history() { echo $((width / 2 - 220)) 80; }

# The shell starts in its overview.
leave_overview() {
    sleep 5
    xdotool key Escape
    sleep 1
    xdotool key Escape
    sleep 1
}

begin_panel() {
    begin gnome-shell --x11
    panel=$!
    until_true 60 'the shell' has org.gnome.Shell
    leave_overview
}

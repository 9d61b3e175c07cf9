# shellcheck shell=bash disable=SC2034
# GNOME Shell as a window manager on X11, with the extension AppIndicator.

PACKAGES=(gnome-shell:gnome-shell gjs:gjs '/usr/lib/*/dri/swrast_dri.so:libgl1-mesa-dri'
    '/usr/share/gnome-shell/extensions/*ppindicator*:gnome-shell-extension-appindicator')
VARIANTS=(dark:1280x800)
ENVIRONMENT=(GSETTINGS_BACKEND=keyfile XDG_CURRENT_DESKTOP=GNOME XDG_SESSION_TYPE=x11 XDG_SESSION_CLASS=user
    GNOME_SHELL_SESSION_MODE=user)
PANEL_HEIGHT=27 LINE=13 EDGE=12
# Submenus open below their rows.
SUBMENUS=below

prepare() {
    local extension=(/usr/share/gnome-shell/extensions/*ppindicator*)
    # A system bus with nobody on it: the shell wants one, and does without its services.
    mkdir -p "$SCRATCH/system"
    cat >"$SCRATCH/system/bus.conf" <<X
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path=$SCRATCH/system/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
X
    begin dbus-daemon --config-file="$SCRATCH/system/bus.conf" --nofork --nopidfile
    export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$SCRATCH/system/bus
    until_true 10 'the system bus' test -S "$SCRATCH/system/bus"
    gsettings set org.gnome.shell welcome-dialog-last-shown-version 999
    gsettings set org.gnome.shell disable-user-extensions false
    gsettings set org.gnome.shell disable-extension-version-validation true
    gsettings set org.gnome.shell enabled-extensions "['$(basename "${extension[0]}")']"
    gsettings set org.gnome.desktop.interface enable-animations false
    gsettings set org.gnome.desktop.session idle-delay 0
    gsettings set org.gnome.desktop.background picture-options none
    gsettings set org.gnome.desktop.background primary-color '#3b4252'
}

put_up() {
    prepare
    begin_panel
}

# It begins with its overview.
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

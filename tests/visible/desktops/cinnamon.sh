# shellcheck shell=bash disable=SC2034
# Cinnamon's panel and popups, as a window manager on X11. A process beside the panel (xapp-sn-watcher) shows the menus of icons of
# this kind, with GTK.

PACKAGES=(cinnamon:cinnamon '/usr/lib*/*/*/xapp-sn-watcher:xapp-sn-watcher' '/usr/lib/*/dri/swrast_dri.so:libgl1-mesa-dri')
# Dark are only the menus: the panel always is.
VARIANTS=(light:1280x800 dark:1280x800)
ENVIRONMENT=(GSETTINGS_BACKEND=keyfile XDG_CURRENT_DESKTOP=X-Cinnamon XDG_SESSION_TYPE=x11 DESKTOP_SESSION=cinnamon)
# A click with the left button is one on the icon.
PANEL_HEIGHT=40 LINE=1 EDGE=4 BUTTON=3

prepare() {
    # Cinnamon 6.6 does not start without one.
    begin_system_bus
    gsettings set org.cinnamon panels-enabled "['1:0:top']"
    gsettings set org.cinnamon desktop-effects false
    gsettings set org.cinnamon startup-animation false
    gsettings set org.cinnamon.desktop.background picture-options none
    gsettings set org.cinnamon.desktop.background primary-color '#3b4252'
    mkdir -p "$XDG_CONFIG_HOME/gtk-3.0"
    [[ $VARIANT == light ]] || printf '[Settings]\ngtk-application-prefer-dark-theme=true\n' >"$XDG_CONFIG_HOME/gtk-3.0/settings.ini"
}

put_up() {
    prepare
    gsettings set org.cinnamon enabled-applets "['panel1:right:0:xapp-status@cinnamon.org:0']"
    begin_panel
}

# Without applets: some of the usual ones fail to load here, and the shell says so in a popup of its own.
put_up_popups() {
    prepare
    gsettings set org.cinnamon enabled-applets '[]'
    begin_shell
}

begin_shell() {
    begin cinnamon --replace
    until_true 60 'the shell' has org.Cinnamon
}

begin_panel() {
    begin_shell
    panel=$!
    begin /usr/lib*/*/*/xapp-sn-watcher
}

# The first button is at the lower left of the text.
first_button() { echo "$((body_x + 100)) $((body_y + body_height - 27))"; }

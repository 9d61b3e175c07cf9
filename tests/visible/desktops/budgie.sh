# shellcheck shell=bash disable=SC2034
# Budgie's panel and popups under labwc, in a window of the X server, whose mouse and keyboard it gets.

PACKAGES=(budgie-panel:budgie-desktop labwc:labwc wl-copy:wl-clipboard '/usr/lib/*/dri/swrast_dri.so:libgl1-mesa-dri')
# In the large one three menus have room beside each other.
VARIANTS=(light:1440x800 dark:1280x800)
ENVIRONMENT=(GSETTINGS_BACKEND=keyfile XDG_CURRENT_DESKTOP=Budgie XDG_SESSION_TYPE=wayland WLR_BACKENDS=x11 WLR_RENDERER=pixman WLR_NO_HARDWARE_CURSORS=1)
PANEL_HEIGHT=36 LINE=1 EDGE=4 PICTURED=over ROW=27

# begin_labwc: starts labwc, as large as the display, and has what is started from now on use it.
begin_labwc() {
    begin labwc
    until_true 20 'labwc' test -S "$XDG_RUNTIME_DIR/wayland-0"
    export WAYLAND_DISPLAY=wayland-0 GDK_BACKEND=wayland
    dbus-update-activation-environment WAYLAND_DISPLAY GDK_BACKEND XDG_CURRENT_DESKTOP
    # Its window has no name to find it by, and takes any size.
    until_true 20 'the window of labwc' /usr/bin/python3 -c 'from Xlib import display
server = display.Display()
screen = server.screen()
window = screen.root.query_tree().children[0]
window.configure(x=0, y=0, width=screen.width_in_pixels, height=screen.height_in_pixels)
server.sync()'
}

# A panel at the top, with the tray.
write_settings() {
    local panel=com.solus-project.budgie-panel at=/com/solus-project/budgie-panel dark=false
    [[ $VARIANT == light ]] || dark=true
    gsettings set $panel dark-theme $dark
    gsettings set $panel migration-level 1
    gsettings set $panel panels "['panel']"
    gsettings set $panel.panel:$at/panels/{panel}/ location top
    gsettings set $panel.panel:$at/panels/{panel}/ size $PANEL_HEIGHT
    gsettings set $panel.panel:$at/panels/{panel}/ applets "['tray']"
    gsettings set $panel.applet:$at/applets/{tray}/ name 'System Tray'
    gsettings set $panel.applet:$at/applets/{tray}/ alignment end
    gsettings set org.gnome.desktop.background picture-options none
    gsettings set org.gnome.desktop.background primary-color '#3b4252'
}

put_up() {
    write_settings
    begin_labwc
    begin budgie-daemon
    begin_panel
}

begin_panel() { begin budgie-panel; panel=$!; }

put_up_popups() {
    write_settings
    begin_labwc
    begin budgie-daemon
}

# Two buttons, "Resume" and "Mute", are in the middle below the text.
first_button() { echo "$((body_x + body_width / 2 - 45)) $((body_y + body_height - 27))"; }

# shellcheck shell=bash disable=SC2034
# LXQt's panel and its notification daemon.

PACKAGES=(lxqt-panel:lxqt-panel lxqt-notificationd:lxqt-notificationd openbox:openbox '/usr/share/lxqt/themes/dark:lxqt-themes'
    '/usr/lib/*/qt[56]/plugins/platformthemes/libqtlxqt.so:lxqt-qtplugin' '/usr/share/icons/breeze:breeze-icon-theme')
VARIANTS=(light:1024x600 dark:1024x600)
ENVIRONMENT=(XDG_CURRENT_DESKTOP=LXQt QT_QPA_PLATFORM=xcb QT_QPA_PLATFORMTHEME=lxqt)
PANEL_HEIGHT=32 LINE=1 EDGE=4
POPUPS=lxqt-notificationd DENY=76
# The panel calls Activate on a left click, whatever ItemIsMenu says.
BUTTON=3

write_settings() {
    local own=$XDG_CONFIG_HOME/lxqt palette=''
    mkdir -p "$own"
    [[ $VARIANT == light ]] || palette='[Palette]
base_color=#232629
highlight_color=#3daee9
text_color=#eff0f1
tooltip_base_color=#31363b
tooltip_text_color=#eff0f1
window_color=#31363b
window_text_color=#eff0f1'
    cat >"$own/lxqt.conf" <<X
[General]
__userfile__=true
theme=$VARIANT
icon_theme=breeze
single_click_activate=false

$palette

[Qt]
style=Fusion
font="DejaVu Sans,10,-1,5,50,0,0,0,0,0"
X
    cat >"$own/panel.conf" <<X
[General]
__userfile__=true
iconTheme=breeze
panels=panel1

[panel1]
alignment=-1
desktop=0
hidable=false
iconSize=22
lineCount=1
lockPanel=false
panelSize=$PANEL_HEIGHT
plugins=taskbar, statusnotifier
position=Top
width=100
width-percent=true

[taskbar]
type=taskbar
alignment=Left

[statusnotifier]
type=statusnotifier
alignment=Right
X
    printf '[General]\nunattendedMaxNum=0\nplacement=bottom-right\n' >"$own/notifications.conf"
}

put_up() {
    write_settings
    begin openbox
    # A panel that is there first may not appear.
    until_true 60 'the window manager' xdotool get_desktop
    begin_panel
    begin_notifier
}

put_up_popups() {
    write_settings
    begin openbox
    begin_notifier
}

begin_panel() { begin lxqt-panel; panel=$!; }

begin_notifier() { begin lxqt-notificationd; }

# The first button is at the left, below the text.
approve_button() {
    popup_window || return 1
    echo "$((popup_x + 72)) $((popup_y + popup_height - 39))"
}

first_button() { approve_button; }

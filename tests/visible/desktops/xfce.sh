# shellcheck shell=bash disable=SC2034
# XFCE's panel with its "Status Tray", and xfce4-notifyd.

PACKAGES=(xfce4-panel:xfce4-panel openbox:openbox '/usr/lib/*/xfce4/notifyd/xfce4-notifyd:xfce4-notifyd')
VARIANTS=(light:1024x600 dark:1024x600)
ENVIRONMENT=(XDG_CURRENT_DESKTOP=XFCE)
PANEL_HEIGHT=28 LINE=1 EDGE=4
POPUPS=xfce4-notifyd DENY=102
# A click beside the buttons of a popup closes it, and does nothing else; one of the buttons does what it does elsewhere.
BODY_CLOSES='member=NotificationClosed'

put_up() {
    local dark=false conf=$XDG_CONFIG_HOME/xfce4/xfconf/xfce-perchannel-xml
    [[ $VARIANT == light ]] || dark=true
    mkdir -p "$conf"
    cat >"$conf/xfce4-panel.xml" <<XML
<?xml version="1.0" encoding="UTF-8"?>
<channel name="xfce4-panel" version="1.0">
  <property name="configver" type="int" value="2"/>
  <property name="panels" type="array"><value type="int" value="1"/><property name="dark-mode" type="bool" value="$dark"/>
    <property name="panel-1" type="empty">
      <property name="position" type="string" value="p=6;x=0;y=0"/><property name="length" type="uint" value="100"/>
      <property name="position-locked" type="bool" value="true"/><property name="size" type="uint" value="28"/>
      <property name="plugin-ids" type="array"><value type="int" value="1"/><value type="int" value="2"/><value type="int" value="3"/></property>
    </property></property>
  <property name="plugins" type="empty">
    <property name="plugin-1" type="string" value="tasklist"/>
    <property name="plugin-2" type="string" value="separator"><property name="expand" type="bool" value="true"/></property>
    <property name="plugin-3" type="string" value="systray"><property name="square-icons" type="bool" value="true"/></property>
  </property>
</channel>
XML
    # Menus and tooltips use the same theme as the panel, as on a desktop that is dark throughout.
    mkdir -p "$XDG_CONFIG_HOME/gtk-3.0"
    printf '[Settings]\ngtk-application-prefer-dark-theme=%s\n' "$dark" >"$XDG_CONFIG_HOME/gtk-3.0/settings.ini"
    begin openbox
    begin_panel
    begin_notifier
}

put_up_popups() {
    begin openbox
    begin_notifier
}

begin_panel() { begin xfce4-panel --disable-wm-check; panel=$!; }

begin_notifier() { begin /usr/lib/*/xfce4/notifyd/xfce4-notifyd; }

# The first button is at the lower left.
approve_button() {
    popup_window || return 1
    echo "$((popup_x + 50)) $((popup_y + popup_height - 30))"
}

first_button() { approve_button; }

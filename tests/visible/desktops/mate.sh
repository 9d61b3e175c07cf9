# shellcheck shell=bash disable=SC2034
# MATE's panel and its notification daemon. The indicator applet shows the icon on the light panel, the panel's own
# notification area on the dark one.

PACKAGES=(mate-panel:mate-panel openbox:openbox dconf:dconf-cli /usr/share/icons/mate:mate-icon-theme
    '/usr/lib/*/gio/modules/libdconfsettings.so:dconf-gsettings-backend'
    '/usr/share/dbus-1/services/*IndicatorAppletComplete*:mate-indicator-applet'
    '/usr/libexec/ayatana-indicator-application/ayatana-indicator-application-service:ayatana-indicator-application'
    '/usr/share/dbus-1/services/*mate*otification*:mate-notification-daemon' /usr/libexec/at-spi-bus-launcher:at-spi2-core
    '/usr/lib/*/girepository-1.0/Atspi-2.0.typelib:gir1.2-atspi-2.0' /usr/lib/python3/dist-packages/gi:python3-gi)
VARIANTS=(light:1024x600 dark:1024x600)
ENVIRONMENT=(XDG_CURRENT_DESKTOP=MATE)
PANEL_HEIGHT=28 LINE=1 EDGE=4
POPUPS=mate-notification-daemon DENY=75

put_up() {
    local applet=IndicatorAppletCompleteFactory::IndicatorAppletComplete
    if [[ $VARIANT == dark ]]; then
        applet=NotificationAreaAppletFactory::NotificationArea
        # The panel calls Activate on a left click, whatever ItemIsMenu says.
        BUTTON=3
        export GTK_THEME=Adwaita:dark
    else
        # Makes the menu available to screen readers. The bus starts the applet, with its own environment.
        gdbus call --session -d org.freedesktop.DBus -o /org/freedesktop/DBus \
            -m org.freedesktop.DBus.UpdateActivationEnvironment "{'NO_AT_BRIDGE': '0'}"
        export NO_AT_BRIDGE=0
    fi
    dconf load / <<X
[org/mate/panel/general]
toplevel-id-list=['top']
object-id-list=['tray']

[org/mate/panel/toplevels/top]
expand=true
orientation='top'
size=$PANEL_HEIGHT

[org/mate/panel/objects/tray]
object-type='applet'
toplevel-id='top'
position=0
panel-right-stick=true
locked=true
applet-iid='$applet'

[org/mate/desktop/interface]
icon-theme='Adwaita'
gtk-theme='Adwaita'
X
    begin openbox
    [[ $VARIANT == dark ]] || begin /usr/libexec/ayatana-indicator-application/ayatana-indicator-application-service
    begin_panel
    begin_notifier
}

put_up_popups() {
    begin openbox
    begin_notifier
}

begin_panel() { begin mate-panel --replace; panel=$!; }

# The service file has the daemon's path.
begin_notifier() {
    local daemon
    daemon=$(sed -n 's/^Exec=//p' /usr/share/dbus-1/services/org.freedesktop.mate.Notifications.service)
    begin "$daemon"
}

# Checks what a screen reader receives of the open menu: each entry in words, a session's status instead of its mark.
spoken() {
    local label said=$OUT/$VARIANT-spoken.txt
    [[ $VARIANT == light ]] || return 0
    /usr/bin/python3 tests/visible/spoken.py >"$said"
    for label in "${SPOKEN[@]}"; do
        grep -qE "^$label" "$said" || fail "a screen reader does not receive $label, but: $(<"$said")"
    done
    # Both begin with the count and the name of the first session; the icon says more.
    [[ $(sed -n 1p "$said") == "Pilotlight: $(sed -n 2p "$said" | cut -d' ' -f1-6)"* ]] || fail "a screen reader receives this for the icon: $(sed -n 1p "$said")"
    ! grep -E '[⚑⊘◷╳✗◌▶▷✓○•]' "$said" || fail 'a screen reader receives marks'
}
SPOKEN=('[0-9]+ need you' 'needs permission: billing-api .*— rm -rf build' 'needs input: web-shop .*— .Which one'
    'permission lost: infra · Rotate TLS — permissions lost' 'stuck: infra · Load test — silent' 'crashed: deps · ' 'Resume deps in'
    'failed: scripts · ' 'quiet: docs · ' 'working: ml-train · Train again — ' '4 idle' 'Notifications' 'Settings' 'Quit')

# The first button is in the middle, below the text.
approve_button() {
    popup_window || return 1
    echo "$((popup_x + popup_width - 197)) $((popup_y + popup_height - 26))"
}

# shellcheck shell=bash disable=SC2034
# KDE Plasma: plasmashell with its system tray, and KWin.

# 5.27 in Debian 12, 6 in later releases.
PLASMA=5
(($(debian_release) < 13)) || PLASMA=6
PACKAGES=(plasmashell:plasma-workspace kwin_x11:kwin-x11 '/usr/share/plasma/layout-templates/*:plasma-desktop'
    '/usr/share/icons/breeze:breeze-icon-theme' '/usr/lib/*/qt[56]/plugins/styles/breeze*.so:kde-style-breeze'
    '/usr/lib/*/qt[56]/plugins/platformthemes/KDEPlasmaPlatformTheme*.so:plasma-integration')
VARIANTS=(light:1280x800 dark:1024x600)
ENVIRONMENT=(XDG_CURRENT_DESKTOP=KDE KDE_FULL_SESSION=true KDE_SESSION_VERSION="$PLASMA" XDG_SESSION_TYPE=x11 XDG_MENU_PREFIX=plasma-
    QT_QPA_PLATFORM=xcb QT_QUICK_BACKEND=software KWIN_COMPOSE=N PLASMA_USE_QT_SCALING=1)
PANEL_HEIGHT=36 LINE=9 EDGE=4 DENY=78

write_settings() {
    local scheme=BreezeLight theme=breeze-light
    [[ $VARIANT == light ]] || scheme=BreezeDark theme=breeze-dark
    printf '[General]\nColorScheme=%s\n[Icons]\nTheme=%s\n[KDE]\nAnimationDurationFactor=0\n' "$scheme" "${theme/-light/}" \
        >"$XDG_CONFIG_HOME/kdeglobals"
    if ((PLASMA == 5)); then
        printf '[Theme]\nname=%s\n' "$theme" >"$XDG_CONFIG_HOME/plasmarc"
    else
        # The default theme has the colours of the scheme, which is only read from here.
        cat "/usr/share/color-schemes/$scheme.colors" >>"$XDG_CONFIG_HOME/kdeglobals"
    fi
    printf '[KSplash]\nEngine=none\n' >"$XDG_CONFIG_HOME/ksplashrc"
    printf '[Basic Settings]\nIndexing-Enabled=false\n' >"$XDG_CONFIG_HOME/baloofilerc"
}

put_up() {
    write_settings
    begin kwin_x11
    begin "kded$PLASMA"
    begin_panel
    until_true 60 'the notifications' has org.freedesktop.Notifications
    until_true 60 'the desktop' lay_out
}

# Plasma's shell shows popups. The test itself is the panel that icons register with, so kded, which would take its
# place, is not started.
put_up_popups() {
    write_settings
    begin kwin_x11
    begin_panel
    until_true 60 'the desktop' lay_out org.kde.plasma.notifications
    until_true 60 'the notifications' has org.freedesktop.Notifications
}

# lay_out [WIDGET]: creates a panel with this widget at its right; without a name, the system tray. Panels float in Plasma 6.
lay_out() {
    gdbus call --session -d org.kde.plasmashell -o /PlasmaShell -m org.kde.PlasmaShell.evaluateScript "
        panels().forEach(function (p) { p.remove(); });
        desktops().forEach(function (d) { d.wallpaperPlugin = 'org.kde.color'; });
        var p = new Panel; p.location = 'top'; p.height = $PANEL_HEIGHT; p.floating = false;
        p.addWidget('org.kde.plasma.panelspacer'); p.addWidget('${1:-org.kde.plasma.systemtray}');"
}

begin_panel() { begin plasmashell --no-respawn; panel=$!; }

# All windows of the shell have the same class; a popup is 336 pixels wide. Its buttons are at the lower right.
approve_button() {
    local window WINDOW X Y WIDTH HEIGHT SCREEN
    for window in $(xdotool search --onlyvisible --class plasmashell); do
        eval "$(xdotool getwindowgeometry --shell "$window")"
        ((WIDTH == 336)) || continue
        echo "$((X + WIDTH - 166)) $((Y + HEIGHT - 20))"
        return 0
    done
    return 1
}

# shellcheck shell=bash disable=SC2034
# sway with waybar's tray, in a window of the X server, whose mouse and keyboard it gets: without a window it has none.

# The bus starts mako for the first popup.
PACKAGES=(sway:sway waybar:waybar wl-copy:wl-clipboard mako:mako-notifier)
# In the large one three menus have room beside each other.
VARIANTS=(light:1440x800 dark:1024x600)
ENVIRONMENT=(XDG_CURRENT_DESKTOP=sway XDG_SESSION_TYPE=wayland WLR_BACKENDS=x11 WLR_RENDERER=pixman WLR_NO_HARDWARE_CURSORS=1)
PANEL_HEIGHT=28 LINE=1 EDGE=4 PICTURED=over ROW=26
(($(debian_release) < 13)) || ROW=27

# begin_sway: starts sway, as large as the display, and has what is started from now on use it.
begin_sway() {
    local width height run=()
    read -r width height < <(xdotool getdisplaygeometry)
    printf 'output * bg #3b4252 solid_color\noutput X11-1 mode --custom %dx%d\n' "$width" "$height" >"$SCRATCH/sway"
    # It refuses to run as root, whom a namespace gives another number.
    ((EUID != 0)) || run=(unshare --user --map-user=1000 --map-group=1000)
    begin "${run[@]}" sway --config "$SCRATCH/sway"
    until_true 20 'sway' test -S "$XDG_RUNTIME_DIR/wayland-1"
    export WAYLAND_DISPLAY=wayland-1 GDK_BACKEND=wayland
}

put_up() {
    local colour='#eeeeee' theme=Adwaita
    [[ $VARIANT == light ]] || colour='#1d2027' theme=Adwaita:dark
    export GTK_THEME=$theme
    begin_sway
    # Where several servers of popups are installed, the bus might start one that is of no use here.
    begin mako
    until_true 20 'mako' has org.freedesktop.Notifications
    mkdir -p "$XDG_CONFIG_HOME/waybar"
    printf '{"layer": "top", "position": "top", "height": %d, "modules-right": ["tray"], "tray": {"icon-size": 18}}\n' "$PANEL_HEIGHT" \
        >"$XDG_CONFIG_HOME/waybar/config"
    printf 'window { background: %s; }\n' "$colour" >"$XDG_CONFIG_HOME/waybar/style.css"
    begin_panel
}

begin_panel() { begin waybar; panel=$!; }

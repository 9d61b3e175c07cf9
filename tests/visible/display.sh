# shellcheck shell=bash
# A private display, for tests/visible.sh and the scripts in this folder, which source it.

# Packages that every script here needs, as PROGRAM:PACKAGE or FILE:PACKAGE. If the program or file exists, the package
# is installed.
readonly DISPLAY_PACKAGES=(Xvfb:xvfb xdotool:xdotool import:imagemagick dbus-run-session:dbus-daemon xsetroot:x11-xserver-utils
    gdbus:libglib2.0-bin '/usr/share/fonts/truetype/dejavu:fonts-dejavu-core' '/usr/share/icons/Adwaita:adwaita-icon-theme'
    '/usr/lib/*/gdk-pixbuf-2.0/*/loaders/*svg*:librsvg2-common')

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

# install_packages PROGRAM:PACKAGE...: installs the Debian packages whose program or file does not exist. A file may be
# a glob pattern.
install_packages() {
    local entry missing=()
    for entry in "$@"; do
        [[ -n $(command -v "${entry%%:*}") || -n $(compgen -G "${entry%%:*}") ]] || missing+=("${entry#*:}")
    done
    ((${#missing[@]} > 0)) || return 0
    ((EUID == 0)) || fail "Install these first: sudo apt-get install --no-install-recommends ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# debian_release: the number of this Debian's release; a large one where it has none yet.
debian_release() {
    local release
    release=$(sed -n 's/^VERSION_ID="*\([0-9]*\).*/\1/p' /etc/os-release)
    echo "${release:-99}"
}

# until_true SECONDS WHAT COMMAND...: waits until the command succeeds.
until_true() {
    local tries=$(($1 * 10)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        ((tries-- > 0)) || fail "timed out waiting for $what"
        sleep 0.1
    done
}

# on_display SIZE VARIABLE=VALUE... COMMAND...: runs the command on a new display and a new session bus. Its home is in
# a scratch folder, $SCRATCH, which is removed afterwards.
on_display() {
    local size=$1 display server status=0
    shift
    SCRATCH=$(mktemp -d)
    mkdir -p "$SCRATCH"/{home,run}
    chmod 700 "$SCRATCH/run"
    for display in $(seq 70 99); do [[ -e /tmp/.X11-unix/X$display ]] || break; done
    Xvfb ":$display" -screen 0 "${size}x24" -nolisten tcp >/dev/null 2>&1 & server=$!
    until_true 5 'the display' test -e "/tmp/.X11-unix/X$display"
    # The toolchain is in the real home; everything else that programs write goes into the scratch folder.
    env -u WAYLAND_DISPLAY -u TERMINAL CARGO_HOME="${CARGO_HOME:-$HOME/.cargo}" RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}" \
        SCRATCH="$SCRATCH" DISPLAY=":$display" HOME="$SCRATCH/home" XDG_RUNTIME_DIR="$SCRATCH/run" LANG=C.UTF-8 \
        XDG_CONFIG_HOME="$SCRATCH/home/.config" XDG_CACHE_HOME="$SCRATCH/home/.cache" GDK_BACKEND=x11 NO_AT_BRIDGE=1 \
        LIBGL_ALWAYS_SOFTWARE=1 dbus-run-session -- env "$@" || status=$?
    kill "$server"
    wait "$server" 2>/dev/null || true
    rm -rf "$SCRATCH"
    return "$status"
}

# begin PROGRAM...: starts a part of the desktop, without its output. It is killed when the script ends.
begin() {
    "$@" >/dev/null 2>&1 &
    pids+=" $!"
}

# begin_system_bus: a system bus without services. Some shells require the bus, but not its services.
begin_system_bus() {
    mkdir -p "$SCRATCH/system"
    cat >"$SCRATCH/system/bus.conf" <<X
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path=$SCRATCH/system/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
X
    begin dbus-daemon --config-file="$SCRATCH/system/bus.conf" --nofork --nopidfile
    export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$SCRATCH/system/bus
    until_true 10 'the system bus' test -S "$SCRATCH/system/bus"
}

# has NAME: whether this name on the bus has an owner.
has() {
    gdbus call --session -d org.freedesktop.DBus -o / -m org.freedesktop.DBus.NameHasOwner "$1" | grep -q true
}

# Sets popup_x, popup_y, popup_width and popup_height to the visible popup's window, of the class $POPUPS. Fails if
# there is none.
popup_window() {
    local window WINDOW X Y WIDTH HEIGHT SCREEN
    window=$(xdotool search --onlyvisible --class "$POPUPS" | tail -1) && [[ -n $window ]] || return 1
    eval "$(xdotool getwindowgeometry --shell "$window")"
    popup_x=$X popup_y=$Y popup_width=$WIDTH popup_height=$HEIGHT
}

# Sets icon_x and icon_y to the middle of the icon: only the icon is coloured in the panel.
find_icon() {
    local width height x y
    read -r width height x y < <(import -window root -crop "x$PANEL_HEIGHT+0+0" +repage png:- |
        convert - -colorspace HCL -channel G -separate +channel -threshold 35% -trim -format '%w %h %X %Y\n' info: | tr -d +)
    ((width >= 6 && width <= PANEL_HEIGHT && height >= 6)) || return 1
    icon_x=$((x + width / 2)) icon_y=$((y + height / 2))
}

# shellcheck shell=bash disable=SC2034
# GNOME's Wayland session, in a window of the X server, whose mouse and keyboard it gets; from GNOME 49 on, which has no such window,
# on a display of its own, with an extension that takes pictures and has a mouse (headless).

# shellcheck source=gnome.sh
source "$(dirname "${BASH_SOURCE[0]}")/gnome.sh"
unset -f approve_button
VARIANTS=(dark:1280x800)
# Only where it is named.
[[ ${VISIBLE_VARIANTS:-} != *light* ]] || VARIANTS+=(light:1280x800)
ENVIRONMENT+=(XDG_SESSION_TYPE=wayland MUTTER_DEBUG_DUMMY_MODE_SPECS=1280x800)
# GNOME 48 and later, in their own font.
(($(debian_release) < 13)) || { PANEL_HEIGHT=32; LINE=19; DRAWN='345 45 330 37'; }

# Whether the shell has no window.
is_headless() { (($(debian_release) > 13)); }

! is_headless || PACKAGES+=('/usr/share/fonts/*/adwaita*:fonts-adwaita-sans')

# prepare_headless: what the scripts here call to click and to take pictures, for a shell without a window.
prepare_headless() {
    local own=$HOME/.local/share/gnome-shell/extensions/headless@tests version
    [[ -e $own ]] && return
    mkdir -p "$own"
    version=$(gnome-shell --version | grep -oE '[0-9]+' | head -1)
    SIZE=$(xdotool getdisplaygeometry | tr ' ' x)
    export SIZE
    printf '{"uuid": "headless@tests", "name": "Headless", "description": "Pictures and a mouse", "shell-version": ["%s"]}' "$version" >"$own/metadata.json"
    cp tests/visible/headless/extension.js "$own/"
    cp tests/visible/headless/{xdotool,import} "$SCRATCH/bin/"
    hash -r
}

begin_panel() {
    if is_headless; then
        prepare_headless
        gsettings set org.gnome.shell enabled-extensions "$(gsettings get org.gnome.shell enabled-extensions | with_headless)"
        begin env -u DISPLAY gnome-shell --wayland --headless --virtual-monitor "$SIZE" --no-x11
        panel=$!
        until_true 60 'the mouse' xdotool getmouselocation
    else
        begin gnome-shell --wayland --nested --no-x11
        panel=$!
    fi
    until_true 60 'the shell' has org.gnome.Shell
    leave_overview
    ! is_headless || gdbus call --session -d org.gnome.Shell -o /tests/Headless -m tests.Headless.LeaveOverview >/dev/null
}

# with_headless: adds our extension to this list.
with_headless() { sed "/headless@tests/! { s/^@as //; s/\]/, 'headless@tests']/; s/\[, /[/ }"; }

# A popup leaves when the pointer does, and the next one appears in its place (bodies.sh).
LEAVES_WITH_POINTER=1

# The test itself is the panel that icons register with.
put_up_popups() {
    prepare
    gsettings set org.gnome.shell enabled-extensions '[]'
    begin_panel
}

# A popup shows its buttons once the pointer is on it: "Not now" at the left, which only closes it, and in the middle the first that
# acts. It is looked for at the top: elsewhere, the pointer itself may have been.
first_button() {
    local h y
    point $((width / 2)) 190
    point $((width / 2)) 66
    sleep 1.5
    import -window root "$SCRATCH/now.png"
    read -r h y < <(convert "$SCRATCH/empty.png" "$SCRATCH/now.png" -compose difference -composite -crop "${width}x220+0+30" \
        -colorspace gray -threshold 2% -trim -format '%h %Y\n' info: | tr -d +)
    ((h > 125)) && echo "$((width / 2)) $((y + h - 25))"
}

not_now() {
    local x y
    read -r x y < <(first_button) && echo "$((x - 170)) $y"
}

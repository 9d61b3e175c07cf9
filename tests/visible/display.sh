# shellcheck shell=bash
# A display of one's own, for the scripts beside this one and for tests/visible.sh, which source it.

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

# install_packages PROGRAM:PACKAGE...: Debian's packages, each behind the program that shows whether it is there. A path
# may be a pattern.
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

# until_true SECONDS WHAT COMMAND...: waits until the command succeeds.
until_true() {
    local tries=$(($1 * 10)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        ((tries-- > 0)) || fail "waited in vain for $what"
        sleep 0.1
    done
}

# on_display SIZE VARIABLE=VALUE... COMMAND...: runs the command on a new display and a new session bus, at home in a scratch
# folder, which is $SCRATCH to it and gone afterwards.
on_display() {
    local size=$1 display server status=0
    shift
    SCRATCH=$(mktemp -d)
    mkdir -p "$SCRATCH"/{home,run}
    chmod 700 "$SCRATCH/run"
    for display in $(seq 70 99); do [[ -e /tmp/.X11-unix/X$display ]] || break; done
    Xvfb ":$display" -screen 0 "${size}x24" -nolisten tcp >/dev/null 2>&1 & server=$!
    until_true 5 'the display' test -e "/tmp/.X11-unix/X$display"
    # The toolchain is found by the real home; what programs remember goes into the scratch folder.
    env -u WAYLAND_DISPLAY -u TERMINAL CARGO_HOME="${CARGO_HOME:-$HOME/.cargo}" RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}" \
        SCRATCH="$SCRATCH" DISPLAY=":$display" HOME="$SCRATCH/home" XDG_RUNTIME_DIR="$SCRATCH/run" LANG=C.UTF-8 \
        XDG_CONFIG_HOME="$SCRATCH/home/.config" XDG_CACHE_HOME="$SCRATCH/home/.cache" GDK_BACKEND=x11 NO_AT_BRIDGE=1 \
        LIBGL_ALWAYS_SOFTWARE=1 dbus-run-session -- env "$@" || status=$?
    kill "$server"
    wait "$server" 2>/dev/null || true
    rm -rf "$SCRATCH"
    return "$status"
}

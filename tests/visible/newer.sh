#!/usr/bin/env bash
# The desktops of Debian 13, or of the release in NEWER_SUITE, in a system of its own below target/: entries pressed while rows move (storm.sh), first openings of
# submenus (submenus.sh), the panel killed and back (../visible.sh, starts.sh), clicks on popups (bodies.sh), as an ordinary user.
#
#   tests/visible/newer.sh [DESKTOP]...      these desktops; without a name, all that are listed below
#
# PILOTLIGHT_CHROOT is the folder of that system, which is kept: what is missing in it is installed, 2.5 GB for all desktops.
# NEWER_CHECKS names the checks, all by default. What the scripts read (STORM_PRESSES, STARTS and so on) is passed on; without
# VISIBLE_VARIANTS each desktop is tried in the first of its variants. Pictures and records go to target/visible/debian-trixie/DESKTOP.
# Needs root: it makes namespaces, mounts and a user. Linux only.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source-path=SCRIPTDIR source=stage.sh
source tests/visible/stage.sh

readonly SUITE=${NEWER_SUITE:-trixie} DESKTOPS=(kde-wayland gnome-wayland sway xfce lxqt mako)
# `pictures` and `film` (kde-wayland) only where they are named: they are for looking at.
readonly CHECKS=(storm submenus panel starts rest bodies)
# Who runs the desktops, and where this repository's tests are, in the new system.
readonly WHO=tester
readonly THERE=/home/$WHO/pilotlight
# What the desktops' packages only recommend: with the fonts that users have, rows are as high as theirs.
readonly COMMON_PACKAGES=(perl:perl awk:mawk '/usr/share/fonts/truetype/noto:fonts-noto-core' dbus-monitor:dbus-bin
    '/usr/share/fonts/*/cantarell:fonts-cantarell' dbus-update-activation-environment:dbus-bin)

# The mirror that this machine installs Debian from.
mirror() {
    local from
    from=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[[^]]*\] \)*\([^ ]*\).*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
        grep '/debian/*$' || true)
    [[ -n $from ]] || fail "none of apt's sources is a mirror of Debian"
    echo "${from%%$'\n'*}"
}

# make_system: Debian's smallest system in $root, with a user, unless it is there.
make_system() {
    local scripts=/usr/share/debootstrap/scripts new=$root.new from
    [[ ! -e $root/etc/debian_version ]] || return 0
    [[ ! -e $root ]] || fail "$root is no Debian system: name another folder in PILOTLIGHT_CHROOT"
    install_packages debootstrap:debootstrap
    from=$(mirror)
    # A release that debootstrap does not know yet is made like the one that never gets old.
    [[ -e $scripts/$SUITE ]] || ln -s sid "$scripts/$SUITE"
    # Of an earlier run that did not get far.
    rm -rf "$new"
    mkdir -p "$new"
    debootstrap --variant=minbase --include=ca-certificates,procps,passwd "$SUITE" "$new" "$from" >/dev/null
    apt-config dump | grep -i '^Acquire::.*Proxy' >"$new/etc/apt/apt.conf.d/90proxy" || true
    # The lists of a release that is not out yet expire within a week, which a mirror may lag behind.
    echo 'Acquire::Check-Valid-Until "false";' >"$new/etc/apt/apt.conf.d/90expired"
    # Nothing that is installed may start a service.
    printf '#!/bin/sh\nexit 101\n' >"$new/usr/sbin/policy-rc.d"
    chmod +x "$new/usr/sbin/policy-rc.d"
    # Nobody needs this system after a power failure.
    echo force-unsafe-io >"$new/etc/dpkg/dpkg.cfg.d/90fast"
    chroot "$new" useradd --create-home --shell /bin/bash "$WHO"
    mv "$new" "$root"
}

# enter USER [--net] COMMAND...: runs the command in the system, as this user, in namespaces: what it starts ends with it, and what
# was mounted for it goes with it, however this script ends. With --net nothing of the network is there, nor the sockets of this
# machine's displays, which have names that a folder does not keep apart.
enter() {
    local user=$1 spaces=(--mount --pid --fork --kill-child --ipc)
    shift
    if [[ $1 == --net ]]; then spaces+=(--net) && shift; fi
    unshare "${spaces[@]}" bash tests/visible/newer.sh --within "$root" "$user" "$@"
}

# within ROOT USER COMMAND...: the same, in the namespaces.
within() {
    local root=$1 user=$2 variables=()
    shift 2
    # What is served on this machine is reached, also where there is no other network.
    ! command -v ip >/dev/null || ip link set lo up
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
    mount -t tmpfs -o mode=1777 tmp "$root/tmp"
    # What the scripts here read, and what apt needs.
    mapfile -t variables < <(env | grep -E '^(STORM_[A-Z]*|VISIBLE_(PROGRAM|VARIANTS)|PILOTLIGHT_TEST_(COPILOT|CACHE)|PICTURES_OF|STARTS|https?_proxy)=' || true)
    # shellcheck disable=SC2016 # for that shell
    exec chroot --userspec="$user:" "$root" env -i "${variables[@]}" HOME="/home/$WHO" USER="$user" LOGNAME="$user" SHELL=/bin/bash LANG=C.UTF-8 \
        PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin TERM=dumb bash -c 'cd "$1"; shift; exec "$@"' - "$THERE" "$@"
}

# install_inside DESKTOP...: in the system, what these desktops and the scripts need.
install_inside() {
    local desktop packages
    packages=("${DISPLAY_PACKAGES[@]}" "${READER_PACKAGES[@]}" "${COMMON_PACKAGES[@]}" foot:foot tmux:tmux)
    for desktop in "$@"; do
        # shellcheck source-path=SCRIPTDIR source=desktops/xfce.sh
        source "tests/visible/desktops/$desktop.sh"
        packages+=("${PACKAGES[@]}")
    done
    install_packages "${packages[@]}"
}

# copy_in: the tests and the program, into the system.
copy_in() {
    local program=${VISIBLE_PROGRAM:-${CARGO_TARGET_DIR:-$PWD/target}/debug/pilotlight}
    [[ -n ${VISIBLE_PROGRAM:-} ]] || cargo build --locked --quiet
    rm -rf "${root:?}$THERE"
    mkdir -p "$root$THERE/tests" "$root$THERE/target"
    cp -r tests/visible tests/visible.sh "$root$THERE/tests/"
    cp --remove-destination "$program" "$root/usr/local/bin/pilotlight"
    export VISIBLE_PROGRAM=/usr/local/bin/pilotlight
    if [[ " ${NEWER_CHECKS:-} " == *' film '* ]]; then
        cp "$PILOTLIGHT_TEST_COPILOT" "$root/usr/local/lib/copilot"
        cp -r "$PILOTLIGHT_TEST_CACHE" "$root$THERE/cache"
        export PILOTLIGHT_TEST_COPILOT=/usr/local/lib/copilot PILOTLIGHT_TEST_CACHE=$THERE/cache
    fi
    chroot "$root" chown -R "$WHO:" "$THERE"
}

# first_variant DESKTOP: what its script names first, as light or dark.
first_variant() {
    # shellcheck disable=SC2016 # for that shell
    bash -c 'source tests/visible/display.sh; source "$1"; echo "${VARIANTS[0]%%:*}"' - "tests/visible/desktops/$1.sh"
}

# checks DESKTOP: the checks that make sense on it: a line for each that it prints, with its script.
checks() {
    local file=tests/visible/desktops/$1.sh functions
    functions=$(bash -c 'source tests/visible/display.sh; source "$1"; compgen -A function; echo "submenus ${SUBMENUS:-beside}, pictured ${PICTURED:-no}"' - "$file")
    if grep -qx put_up <<<"$functions"; then
        echo storm tests/visible/storm.sh
        echo rest tests/visible/rest.sh
        echo film tests/visible/film.sh
        echo pictures tests/visible/pictures.sh
        # They open in the menu itself on GNOME.
        ! grep -q '^submenus beside' <<<"$functions" || echo submenus tests/visible/submenus.sh
        # It finds menus that are below the panel, and submenus beside them.
        ! grep -qE '^submenus beside, pictured (no|below)' <<<"$functions" || echo panel tests/visible.sh
        echo starts tests/visible/starts.sh
    fi
    ! grep -qx put_up_popups <<<"$functions" || echo bodies tests/visible/bodies.sh
}

main() {
    local word name script status=0 out
    ((EUID == 0)) || fail 'This needs root: it makes namespaces, mounts and a user.'
    (($# > 0)) || set -- "${DESKTOPS[@]}"
    for word in "$@"; do
        [[ -f tests/visible/desktops/$word.sh ]] || fail "Unknown desktop $word; known: $(basename -s .sh tests/visible/desktops/*)"
    done
    root=${PILOTLIGHT_CHROOT:-${CARGO_TARGET_DIR:-$PWD/target}/debian-$SUITE}
    out=${VISIBLE_OUT:-${CARGO_TARGET_DIR:-$PWD/target}/visible}/debian-$SUITE
    make_system
    copy_in
    enter root bash tests/visible/newer.sh --install "$@"
    for word in "$@"; do
        while read -r name script; do
            [[ " ${NEWER_CHECKS:-${CHECKS[*]}} " == *" $name "* ]] || continue
            VISIBLE_VARIANTS=${VISIBLE_VARIANTS:-$(first_variant "$word")} enter "$WHO" --net bash "$script" "$word" </dev/null || { status=1 && echo "$word: $name failed"; }
        done < <(checks "$word")
        mkdir -p "$out"
        [[ ! -d $root$THERE/target/visible/$word ]] || cp -r "$root$THERE/target/visible/$word" "$out/"
    done
    echo "pictures and records are in $out"
    return "$status"
}

case ${1:-} in
--within) within "${@:2}" ;;
--install) install_inside "${@:2}" ;;
*) main "$@" ;;
esac

#!/usr/bin/env bash
# Tests the Debian package: builds it, runs Debian's own checkers, installs it on this machine, starts it, upgrades it
# while it runs, and removes it without a trace. Needs root. If Pilotlight is already installed, it says so and changes
# nothing.
#
# The package contains a debug build: the test is of the package.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly PACKAGES=(lintian:lintian desktop-file-validate:desktop-file-utils appstreamcli:appstream dpkg-shlibdeps:dpkg-dev
    man:man-db dbus-run-session:dbus-daemon)

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

install_packages() {
    local entry missing=()
    for entry in "${PACKAGES[@]}"; do
        [[ -n $(command -v "${entry%%:*}") ]] || missing+=("${entry#*:}")
    done
    ((${#missing[@]} > 0)) || return 0
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${missing[@]}"
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

is_installed() { dpkg-query -W -f '${db:Status-Status}' pilotlight 2>/dev/null | grep -qx installed; }

# Debian's checkers report neither errors nor warnings.
check() {
    lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$1"
    desktop-file-validate packaging/linux/pilotlight.desktop
    appstreamcli validate --no-net target/package/*.metainfo.xml
}

# The installed files work.
look() {
    local page
    pilotlight --version
    for page in /usr/share/man/man1/pilotlight*.1.gz; do
        [[ -z $(LC_ALL=C.UTF-8 MANWIDTH=100 man --warnings -l "$page" 2>&1 >/dev/null) ]] || fail "man complains of $page"
    done
    bash -c 'source /usr/share/bash-completion/completions/pilotlight && complete -p pilotlight' >/dev/null
    bash -c 'source /usr/share/bash-completion/completions/pilotlight
        COMP_WORDS=(pilotlight stat) COMP_CWORD=1; _clap_complete_pilotlight pilotlight stat pilotlight
        [[ " ${COMPREPLY[*]} " == *status* ]]' ||
        fail 'the completion does not know "status"'
    grep -qx 'KillMode=process' /usr/lib/systemd/user/pilotlight.service
    [[ -z $(command -v systemd-analyze) ]] || XDG_RUNTIME_DIR=$scratch systemd-analyze verify --user /usr/lib/systemd/user/pilotlight.service
    # A package must not enable start at login on its own.
    [[ ! -e /etc/xdg/autostart/pilotlight.desktop ]] || fail 'the package starts the program at login without being asked'
}

# install.sh, which other systems' packages use, installs the same files as this package, except for zsh's folder and
# Debian's own files.
compare() {
    packaging/linux/install.sh /usr/bin/pilotlight "$scratch/root" /usr
    (cd "$scratch/root" && find . -type f | sed -e 's|^\.||' -e 's|/zsh/site-functions/|/zsh/vendor-completions/|') |
        grep -v '^/usr/share/licenses/' | sort >"$scratch/ours"
    dpkg -L pilotlight | while read -r file; do [[ -d $file ]] || echo "${file%.gz}"; done |
        grep -vE '/(copyright|changelog(\.Debian)?|CHANGELOG\.md)$' | sort >"$scratch/debian"
    diff <(grep -v '/CHANGELOG.md$' "$scratch/ours") "$scratch/debian" || fail 'install.sh does not install the same files as the package'
}

# On a private bus: the tray starts, survives the upgrade, and exits when terminated.
inside() {
    local light said
    mkdir -p "$HOME/.copilot/session-state"
    pilotlight tray >"$HOME/said" 2>&1 &
    light=$!
    trap 'kill "$light" 2>/dev/null || true' EXIT
    until_true 20 'the tray to reach the bus' grep -q 'no panel with a system tray' "$HOME/said"
    until_true 20 'its socket' test -S "$XDG_RUNTIME_DIR/pilotlight/pilotlight.sock"
    said=$(dpkg -i "$1")
    [[ $said != *bridge* ]] || fail "the upgrade prints how to remove the bridge: $said"
    [[ $(readlink "/proc/$light/exe") == '/usr/bin/pilotlight (deleted)' ]] || fail 'the program was not replaced'
    kill -0 "$light" || fail 'the tray ended with the upgrade'
    pilotlight tray | grep -q "already running: process $light" || fail 'the new program does not find the old one'
    pilotlight status --json | grep -qx '\[\]' || fail 'the new program lists sessions although there are none'
    kill "$light"
    wait "$light" || fail "the tray exited with $?"
    trap - EXIT
}

main() {
    local first second files file said bridge=$scratch/user/.local/share/pilotlight/bridge
    ((EUID == 0)) || fail 'tests/package.sh installs a package, and needs root for that.'
    if is_installed || [[ -e /usr/bin/pilotlight ]]; then
        fail 'Pilotlight is installed here: remove it first (dpkg -P pilotlight).'
    fi
    install_packages
    first=$(packaging/linux/build.sh --profile dev --revision 1)
    cp "$first" "$scratch/first.deb"
    second=$(packaging/linux/build.sh --profile dev --revision 2)
    check "$second"
    trap 'dpkg -P pilotlight >/dev/null 2>&1 || true; userdel pilotlight-test 2>/dev/null || true; rm -rf "$scratch"' EXIT
    # A user whose Copilot starts the bridge: the removal detects that by our own folder.
    useradd --no-create-home --home-dir "$scratch/user" pilotlight-test
    mkdir -p "$bridge"
    dpkg -i "$scratch/first.deb"
    look
    compare
    mkdir -m 700 "$scratch/home" "$scratch/run"
    env -i PATH="$PATH" HOME="$scratch/home" XDG_RUNTIME_DIR="$scratch/run" LANG=C.UTF-8 \
        dbus-run-session -- bash tests/package.sh --inside "$second"
    is_installed || fail 'the package is no longer installed'
    [[ $(dpkg-query -W -f '${Version}' pilotlight) == *-2 ]] || fail 'it was not upgraded'
    files=$(dpkg -L pilotlight)
    said=$(dpkg -P pilotlight)
    echo "$said"
    [[ $said == *"still installed in Copilot, from $bridge."*"copilot plugin uninstall pilotlight@pilotlight"* ]] ||
        fail 'the removal does not print how to remove the bridge from Copilot'
    [[ -d $bridge ]] || fail "the user's bridge was removed"
    while read -r file; do
        [[ -d $file || ! -e $file ]] || fail "$file was left behind"
    done <<<"$files"
    [[ ! -e /usr/share/doc/pilotlight ]] || fail 'a folder was left behind'
    [[ -d $scratch/home/.local/state/pilotlight ]] || fail "the user's files were removed"
    echo 'the package: built, checked, installed, started, upgraded, removed'
}

case ${1:-} in
--inside) inside "$2" ;;
*)
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    main "$@"
    ;;
esac

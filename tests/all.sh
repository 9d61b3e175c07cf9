#!/usr/bin/env bash
# All tests that a change must pass. Run it from any folder, on Linux; it installs what is missing.
#
# What takes longer is tests/long.sh, which sources this file for what both need; what concerns other systems is
# tests/elsewhere.sh.
set -euo pipefail

# Debian packages that the tests need, as PROGRAM:PACKAGE. If the program exists, the package is not installed.
readonly PACKAGES=(tmux:tmux dbus-daemon:dbus-daemon)
# The release of the Copilot CLI that the tests run. Another release may write other events: update it together with
# tests/traces. PILOTLIGHT_TEST_RELEASE overrides it.
readonly COPILOT=${PILOTLIGHT_TEST_RELEASE:-1.0.102}
# Most tests spend their time waiting for a program, a limit or a server, so more of them run at once than there are
# cores.
readonly THREADS=6

started_in=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# One target folder for everything that the tests build and keep. Absolute, because they run in folders of their own.
case ${CARGO_TARGET_DIR:-} in
'') target=$PWD/target ;;
/*) target=$CARGO_TARGET_DIR ;;
*) target=$started_in/$CARGO_TARGET_DIR ;;
esac
export CARGO_TARGET_DIR=$target PATH=$target/tools/bin:$PATH
export PILOTLIGHT_TEST_COPILOT='' PILOTLIGHT_TEST_CACHE=$target/copilot-cache
# The tests have their own homes and settings, and must not see the user's.
unset COPILOT_HOME PILOTLIGHT_CONFIG

# In the background of a shell without job control, this script ignores SIGINT; under nohup, SIGHUP. Child processes
# that the tests start and signal would inherit that.
readonly UNIGNORED=(env --default-signal=INT,QUIT,HUP)

# A folder for what is of no use afterwards.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Prints the reason and ends the run.
fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

# run COMMAND...: says what it runs, and how long that took. Not for functions: an error within would not end them.
run() {
    local begun=$SECONDS code=0
    echo "== $*"
    "$@" </dev/null || code=$?
    echo "== $((SECONDS - begun)) s"
    return "$code"
}

# fetch COMMAND...: runs a command that downloads something, up to three times: the network may fail for a moment.
fetch() {
    local wait
    for wait in 5 20; do
        "$@" && return 0
        echo "failed; retrying in $wait s: $*"
        sleep "$wait"
    done
    "$@"
}

# Requires the programs that are not installed from here, and installs the Debian packages.
install_packages() {
    local program missing=() entry
    for program in cargo rustup node npm; do
        [[ -n $(command -v "$program") ]] || fail "The tests need '$program', which is not installed."
    done
    for entry in "${PACKAGES[@]}"; do
        [[ -n $(command -v "${entry%%:*}") ]] || missing+=("${entry#*:}")
    done
    ((${#missing[@]} > 0)) || return 0
    if ((EUID != 0)); then
        fail "The tests need these packages, which are not installed: ${missing[*]}
Install them with: sudo apt-get install --no-install-recommends ${missing[*]}"
    fi
    export DEBIAN_FRONTEND=noninteractive
    fetch apt-get update -qq
    fetch apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# Uses the Rust that tests/rust-toolchain.toml names: warnings are errors here, and another one has others. Whoever only
# builds the program uses their own.
install_rust() {
    local pinned
    pinned=$(sed -nE 's/^channel = "(.*)"$/\1/p' tests/rust-toolchain.toml)
    if [[ $(rustc --version) != "rustc $pinned "* ]]; then
        fetch rustup toolchain install --profile minimal --component clippy,rustfmt "$pinned"
        export RUSTUP_TOOLCHAIN=$pinned
    fi
}

# Prints the path of the Copilot CLI's native program. The package's own `bin` is a script that starts it.
copilot_program() {
    local arch
    case $(uname -m) in
    x86_64) arch=x64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "There is no Copilot CLI for $(uname -m)." ;;
    esac
    echo "$target/copilot-cli/node_modules/@github/copilot-linux-$arch/copilot"
}

# Reinstalls what the package.json in the folder $1 names, from scratch. The package with the native program $2 is an
# optional dependency, so npm succeeds even if it could not be downloaded.
npm_install() {
    rm -rf "$1/node_modules" && (cd "$1" && npm install --no-audit --no-fund --no-package-lock --silent) && [[ -x $2 ]]
}

# Installs the Copilot CLI in the target folder, and starts it once: the first start unpacks 235 MB, which would delay a
# test.
install_copilot() {
    local folder=$target/copilot-cli installed
    installed=$folder/node_modules/@github/copilot/package.json
    if [[ ! -x $PILOTLIGHT_TEST_COPILOT ]] || ! grep -qs "\"version\": *\"$COPILOT\"" "$installed"; then
        mkdir -p "$folder"
        printf '{ "private": true, "dependencies": { "@github/copilot": "%s" } }\n' "$COPILOT" >"$folder/package.json"
        fetch npm_install "$folder" "$PILOTLIGHT_TEST_COPILOT" || true
    fi
    [[ -x $PILOTLIGHT_TEST_COPILOT ]] || fail "npm installed @github/copilot $COPILOT, but without its native program:
$PILOTLIGHT_TEST_COPILOT is missing. Were optional dependencies left out?"
    XDG_CACHE_HOME=$PILOTLIGHT_TEST_CACHE COPILOT_HOME=$scratch/copilot-home "$PILOTLIGHT_TEST_COPILOT" --version
}

# Installs everything that the tests need.
prepare() {
    install_packages
    install_rust
    fetch cargo fetch --locked --quiet
    PILOTLIGHT_TEST_COPILOT=$(copilot_program)
    install_copilot
}

# tests TARGET... [-- ARGUMENT...]: runs tests, as many at once as THREADS says.
tests() {
    local targets=()
    while (($# > 0)) && [[ $1 != -- ]]; do
        targets+=("$1")
        shift
    done
    run "${UNIGNORED[@]}" cargo test --locked --quiet "${targets[@]}" -- --test-threads="$THREADS" "${@:2}"
}

main() {
    local soak code=0
    prepare
    run cargo fmt --check
    run cargo clippy --locked --quiet --all-targets -- -D warnings
    run cargo test --locked --quiet --no-run
    # The soak takes two minutes on any machine, and little CPU: it runs alongside the others.
    tests --test e2e -- soak:: >"$scratch/soak" 2>&1 &
    soak=$!
    tests --lib --bins --test cases --test docs --test everywhere --test program
    wait "$soak" || code=$?
    cat "$scratch/soak"
    ((code == 0)) || exit "$code"
    # Last and alone: its tests use the whole machine.
    tests --test e2e -- --skip soak::
}

[[ ${BASH_SOURCE[0]} != "$0" ]] || main "$@"

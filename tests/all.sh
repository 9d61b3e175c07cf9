#!/usr/bin/env bash
# All tests that a change must pass. Run it from any folder, on Linux; it installs what is missing. It prints each stage
# with its time and, if a stage fails, all of its output.
#
# tests/long.sh sources this file for what both need; the stages are in `main`, at the end.
set -euo pipefail

# Debian packages that the tests need, as PROGRAM:PACKAGE. If the program exists, the package is installed.
readonly PACKAGES=(tmux:tmux dbus-daemon:dbus-daemon)
# Targets that the code is also checked for.
readonly WINDOWS=x86_64-pc-windows-msvc MACOS=aarch64-apple-darwin
# The release of the Copilot CLI that the tests run. Another release may write other events: update it together with
# tests/traces. PILOTLIGHT_TEST_RELEASE overrides it.
readonly COPILOT=${PILOTLIGHT_TEST_RELEASE:-1.0.102}
# Most tests spend their time waiting for a program, a limit or a server, so more of them run at once than there are
# cores.
readonly THREADS=6
# rustc uses jemalloc, and gigabytes for the SDK alone. With huge pages, and if it keeps what it has, it takes up to a
# fifth less time.
readonly RUSTC_MEMORY=thp:always,metadata_thp:always,dirty_decay_ms:-1,muzzy_decay_ms:-1

started_in=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# One target folder for every stage and for what the tests keep. Absolute, because tests run in folders of their own.
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

# A folder for the stages' output, removed at the end.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Prints the reason and ends the run.
fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

# Prints the time since the epoch in milliseconds.
now() {
    local micros=${EPOCHREALTIME/[.,]/}
    echo $((micros / 1000))
}

# Prints the milliseconds $1 as seconds.
seconds() {
    printf '%d.%d s' $(($1 / 1000)) $(($1 % 1000 / 100))
}

# stage NAME COMMAND...: runs the command, and shows its output only if it fails.
stage() {
    local name=$1 begun code=0
    shift
    begun=$(now)
    printf '== %s' "$name"
    # Not `if ("$@")`: in a condition, `set -e` is off, and a function would continue after an error.
    set +e
    (set -e; "$@") >"$scratch/output" 2>&1 </dev/null
    code=$?
    set -e
    if ((code != 0)); then
        printf '  FAILED after %s\n' "$(seconds $(($(now) - begun)))"
        cat "$scratch/output"
        exit "$code"
    fi
    printf '  %s\n' "$(seconds $(($(now) - begun)))"
}

# loud_stage NAME COMMAND...: the same, but shows the command's output as it arrives: it has the test results.
loud_stage() {
    local name=$1 begun code=0
    shift
    begun=$(now)
    printf '== %s\n' "$name"
    "$@" 2>&1 </dev/null || code=$?
    if ((code != 0)); then
        printf '== %s  FAILED after %s\n' "$name" "$(seconds $(($(now) - begun)))"
        exit "$code"
    fi
    printf '== %s  %s\n' "$name" "$(seconds $(($(now) - begun)))"
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

# Installs Rust's components and targets for the active toolchain.
install_rust() {
    local installed name
    installed=$(rustup component list --installed && rustup target list --installed)
    for name in clippy rustfmt; do
        grep -q "^$name" <<<"$installed" || fetch rustup component add "$name"
    done
    for name in "$WINDOWS" "$MACOS"; do
        grep -qx "$name" <<<"$installed" || fetch rustup target add "$name"
    done
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

# Installs everything that the stages need.
prepare() {
    stage 'packages' install_packages
    stage 'rust' install_rust
    stage 'crates' fetch cargo fetch --locked --quiet
    PILOTLIGHT_TEST_COPILOT=$(copilot_program)
    stage 'copilot cli' install_copilot
}

# Makes cargo lint our own crates right after it has compiled them, with the dependencies that it has compiled for them.
# `cargo clippy` would check all dependencies separately, which takes minutes.
lint_while_building() {
    export RUSTC_WORKSPACE_WRAPPER=$target/linting-rustc LINTS=$target/lints
    cat >"$RUSTC_WORKSPACE_WRAPPER" <<'SCRIPT'
#!/usr/bin/env bash
# linting-rustc RUSTC ARGUMENT...: compiles, then lints the same code without generating any.
"$@" -D warnings || exit
lint=() emits='' previous='' library=''
for argument in "${@:2}"; do
    case $argument in
    --emit=*) emits=1 argument=--emit=metadata ;;
    lib) library=1 ;; # the type of the crate, which cargo does not pass for unit tests
    --json=*) argument=${argument/,artifacts/} ;; # cargo would take them for the compiler's
    incremental=*) argument=incremental=$LINTS ;;
    esac
    [[ $previous != --out-dir ]] || argument=$LINTS
    lint+=("$argument")
    previous=$argument
done
# The library is linted together with its unit tests.
[[ -z $emits || $library ]] || exec clippy-driver "$1" "${lint[@]}" -D warnings
SCRIPT
    chmod +x "$RUSTC_WORKSPACE_WRAPPER"
    mkdir -p "$LINTS"
}

# clippy_elsewhere TARGET...: lints the program for other systems. Without the tests, which run on Linux only.
clippy_elsewhere() {
    # Some crates for macOS compile Objective-C in their build scripts. A check links nothing, so a compiler that writes
    # empty objects is enough. SDKROOT keeps the build scripts from asking Xcode for its headers.
    local compiler=$target/empty-objects-cc
    cat >"$compiler" <<'SCRIPT'
#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
    -E) echo '"clang"' ;; # build scripts ask: what kind of compiler is this?
    '-?') exit 1 ;;       # and: does it take Microsoft's options?
    -o) : >"$2" && shift ;;
    esac
    shift
done
SCRIPT
    chmod +x "$compiler"
    CC_aarch64_apple_darwin=$compiler CXX_aarch64_apple_darwin=$compiler AR_aarch64_apple_darwin=ar SDKROOT=$target \
        cargo clippy --locked --quiet --lib --bins "${@/#/--target=}" -- -D warnings
}

# Prints the names of the integration tests, as cargo finds them.
integration_tests() {
    local file
    for file in tests/*.rs tests/*/main.rs; do
        [[ -e $file ]] || continue
        file=${file%/main.rs}
        basename "$file" .rs
    done
}

# run_tests NAME [ARGUMENT...]: runs the integration tests NAME, with these arguments to the test program.
run_tests() {
    loud_stage "$*" "${UNIGNORED[@]}" cargo test --locked --quiet --test "$1" -- --test-threads="$THREADS" "${@:2}"
}

main() {
    local name soak code=0
    # What later builds need to be incremental costs the first one an eighth of its time.
    [[ -d $target/debug ]] || export CARGO_INCREMENTAL=0
    prepare
    stage 'format' cargo fmt --check
    MALLOC_CONF=$RUSTC_MEMORY stage 'clippy (windows, macos)' clippy_elsewhere "$WINDOWS" "$MACOS"
    lint_while_building
    # All at once, so that the times below are those of the tests alone. With the benches, so that they are linted.
    MALLOC_CONF=$RUSTC_MEMORY stage 'build tests, clippy (linux)' cargo test --locked --quiet --all-targets --no-run
    # The soak takes two minutes on any machine, and little CPU: it runs alongside the others.
    run_tests e2e soak:: >"$scratch/soak" &
    soak=$!
    loud_stage 'unit tests' "${UNIGNORED[@]}" cargo test --locked --quiet --lib --bins -- --test-threads="$THREADS"
    for name in $(integration_tests); do
        [[ $name == e2e ]] || run_tests "$name"
    done
    wait "$soak" || code=$?
    cat "$scratch/soak"
    ((code == 0)) || exit "$code"
    # Last and alone: its tests use the whole machine.
    run_tests e2e --skip soak::
}

[[ ${BASH_SOURCE[0]} != "$0" ]] || main "$@"

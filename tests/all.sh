#!/usr/bin/env bash
# All tests that a change must pass. Run it from any folder, on Linux; it installs what is missing.
#
# What takes longer is tests/long.sh, which sources this file for what both need; what concerns other systems is
# tests/elsewhere.sh.
set -euo pipefail

# Debian packages that the tests need, as PROGRAM:PACKAGE. If the program exists, the package is not installed.
readonly PACKAGES=(tmux:tmux dbus-daemon:dbus-daemon script:bsdutils)
# The releases of the agents that the tests run. Another release may write other events: update it together with
# tests/traces. The variables override them.
readonly COPILOT=${PILOTLIGHT_TEST_RELEASE:-1.0.102}
readonly CLAUDE_CODE=${PILOTLIGHT_TEST_CLAUDE_RELEASE:-2.1.332}
readonly CODEX=${PILOTLIGHT_TEST_CODEX_RELEASE:-0.171.0}
# Most tests spend their time waiting for a program, a limit or a server, so more of them run at once than there are
# cores. An agent needs seconds of CPU time to start.
readonly THREADS=12 AGENT_THREADS=6

started_in=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# One target folder for everything that the tests build and keep. Absolute, because they run in folders of their own.
case ${CARGO_TARGET_DIR:-} in
'') target=$PWD/target ;;
/*) target=$CARGO_TARGET_DIR ;;
*) target=$started_in/$CARGO_TARGET_DIR ;;
esac
export CARGO_TARGET_DIR=$target PATH=$target/tools/bin:$PATH
export PILOTLIGHT_TEST_COPILOT='' PILOTLIGHT_TEST_CLAUDE='' PILOTLIGHT_TEST_CODEX=''
export PILOTLIGHT_TEST_CACHE=$target/copilot-cache
# What is built once is built sooner without what the next build of a change could use.
[[ -z ${CI:-} ]] || export CARGO_INCREMENTAL=0
# The tests have their own homes and settings, and must not see the user's.
unset COPILOT_HOME CLAUDE_CONFIG_DIR CODEX_HOME PILOTLIGHT_CONFIG

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

# Prints the path of an agent's native program, below the folder in which npm installs it. The package's own `bin` may be
# a script that starts it.
agent_program() {
    local arch triple
    case $(uname -m) in
    x86_64) arch=x64 triple=x86_64 ;;
    aarch64 | arm64) arch=arm64 triple=aarch64 ;;
    *) fail "There are no agents for $(uname -m)." ;;
    esac
    case $1 in
    copilot-cli*) echo "$target/$1/node_modules/@github/copilot-linux-$arch/copilot" ;;
    claude-code) echo "$target/$1/node_modules/@anthropic-ai/claude-code-linux-$arch/claude" ;;
    codex) echo "$target/$1/node_modules/@openai/codex-linux-$arch/vendor/$triple-unknown-linux-musl/bin/codex" ;;
    opencode) echo "$target/$1/node_modules/opencode-linux-$arch/bin/opencode" ;;
    gemini) echo "$target/$1/node_modules/.bin/gemini" ;;
    esac
}

# Reinstalls what the package.json in the folder $1 names, from scratch, and runs no script of a package. The package
# with the native program $2 is an optional dependency, so npm succeeds even if it could not be downloaded.
npm_install() {
    rm -rf "$1/node_modules" &&
        (cd "$1" && npm install --no-audit --no-fund --no-package-lock --ignore-scripts --silent) && [[ -x $2 ]]
}

# install_agent FOLDER PACKAGE RELEASE: installs an agent's package of this release in a folder of the target folder.
install_agent() {
    local folder=$target/$1 program
    program=$(agent_program "$1")
    if [[ ! -x $program ]] || ! grep -qs "\"version\": *\"$3\"" "$folder/node_modules/$2/package.json"; then
        mkdir -p "$folder"
        printf '{ "private": true, "dependencies": { "%s": "%s" } }\n' "$2" "$3" >"$folder/package.json"
        fetch npm_install "$folder" "$program" || true
    fi
    [[ -x $program ]] || fail "npm installed $2 $3, but without its native program:
$program is missing. Were optional dependencies left out?"
}

# Installs the agents, and starts Copilot once: its first start unpacks 235 MB, which would delay a test.
install_agents() {
    install_agent copilot-cli @github/copilot "$COPILOT"
    install_agent claude-code @anthropic-ai/claude-code "$CLAUDE_CODE"
    install_agent codex @openai/codex "$CODEX"
    XDG_CACHE_HOME=$PILOTLIGHT_TEST_CACHE COPILOT_HOME=$scratch/copilot-home "$PILOTLIGHT_TEST_COPILOT" --version
}

# Installs everything that the tests need but the agents, and says where those will be.
prepare() {
    install_packages
    install_rust
    fetch cargo fetch --locked --quiet
    PILOTLIGHT_TEST_COPILOT=$(agent_program copilot-cli)
    PILOTLIGHT_TEST_CLAUDE=$(agent_program claude-code)
    PILOTLIGHT_TEST_CODEX=$(agent_program codex)
}

# alongside NAME COMMAND...: runs a command in the background.
declare -A alongside=()
alongside() {
    "${@:2}" </dev/null >"$scratch/$1" 2>&1 &
    alongside[$1]=$!
}

# await NAME: waits for a command in the background, shows what it said, and ends the run if it failed.
await() {
    local code=0
    wait "${alongside[$1]}" || code=$?
    cat "$scratch/$1"
    ((code == 0)) || exit "$code"
}

# tests THREADS TARGET... [-- ARGUMENT...]: runs tests, so many at once.
tests() {
    local threads=$1 targets=()
    shift
    while (($# > 0)) && [[ $1 != -- ]]; do
        targets+=("$1")
        shift
    done
    run cargo test --locked --quiet --workspace "${targets[@]}" -- --test-threads="$threads" "${@:2}"
}

main() {
    prepare
    # The compiler waits for the processor, and npm for the network.
    alongside agents install_agents
    run cargo fmt --all --check
    # A pattern names e2e, too, which `--all-targets` and `--tests` leave out.
    run cargo clippy --locked --quiet --workspace --lib --bins --benches --test '*' -- -D warnings
    await agents
    run cargo test --locked --quiet --workspace --lib --bins --test '*' --no-run
    # The soak takes two minutes on any machine, and little CPU.
    alongside soak tests "$AGENT_THREADS" --test e2e -- soak::
    run cargo test --locked --quiet --workspace --doc
    tests "$THREADS" --lib --bins --tests
    await soak
    # Last and alone: its tests use the whole machine.
    tests "$AGENT_THREADS" --test e2e -- --skip soak::
}

[[ ${BASH_SOURCE[0]} != "$0" ]] || main "$@"

#!/usr/bin/env bash
# Checks that take too long for every change, in addition to tests/all.sh: the tests marked `#[ignore]`, the benches, a
# random part of the mutants of the core, packages, desktops of two Debian releases, and the fuzz targets for ten minutes each
# (PILOTLIGHT_FUZZ_SECONDS changes that).
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=all.sh
source "$(dirname "${BASH_SOURCE[0]}")/all.sh"

# stage NAME COMMAND...: says what it does, and does it.
stage() {
    echo "== $1"
    "${@:2}" </dev/null
}

# Systems that the documentation is also built for.
readonly WINDOWS=x86_64-pc-windows-msvc MACOS=aarch64-apple-darwin

# Checks the dependencies (deny.toml).
readonly CARGO_DENY=0.20.2
# Builds and runs the fuzz targets.
readonly CARGO_FUZZ=0.13.2
# Mutates the code, to see whether a test notices. The mutants are divided into this many parts; each run takes one.
readonly CARGO_MUTANTS=27.1.0 MUTANT_PARTS=60

# install_cargo_program NAME VERSION: installs a cargo subcommand in the target folder.
install_cargo_program() {
    ! cargo "${1#cargo-}" --version 2>/dev/null | grep -qwF "$2" || return 0
    # Unoptimised: it runs for seconds, and an optimised build takes minutes.
    fetch env CARGO_TARGET_DIR="$target/tools/build" \
        cargo install --locked --quiet --debug --root "$target/tools" --version "$2" "$1"
    rm -rf "$target/tools/build"
}

# fuzz TARGET: fuzzes it, starting from recorded sessions. Failing inputs are kept in fuzz/artifacts. Without a
# sanitizer, because the fuzzed code is free of `unsafe`: so it needs no other toolchain, and runs twice as fast.
fuzz() {
    mkdir -p "fuzz/corpus/$1"
    CARGO_TARGET_DIR=$target/fuzz cargo fuzz run --sanitizer none "$1" "fuzz/corpus/$1" tests/traces -- \
        -max_total_time="${PILOTLIGHT_FUZZ_SECONDS:-600}" -max_len=65536 -timeout=20 -rss_limit_mb=1024 -print_final_stats=1 \
        -verbosity=1
}

# mutants: tests some mutants of the core. Those that no test notices are listed but are not a failure: each needs a
# test, or is equivalent.
mutants() {
    local code=0
    tests/mutants.sh --sharding round-robin --shard "$((RANDOM % MUTANT_PARTS))/$MUTANT_PARTS" || code=$?
    # 2: some were missed; 3: some made a test hang, which counts as noticed.
    ((code == 0 || code == 2 || code == 3)) || return "$code"
}

# Releases of the Copilot CLI that make no hold besides their locks (docs/owners.md), and that the bridge was tested
# with (docs/bridge.md). The first represents all if one is enough.
readonly OLD_COPILOTS=(1.0.86 1.0.83 1.0.92)
# Agents that are shown by what their hooks report (docs/hooks.md).
readonly OPENCODE=1.18.33 GEMINI=0.61.0

# install_package PROGRAM PACKAGE: installs a Debian package if its program is missing. Needs root.
install_package() {
    ! command -v "$1" >/dev/null || return 0
    fetch apt-get update -qq
    fetch apt-get install -y -qq --no-install-recommends "$2"
}

# Puts promtool among the tools, which checks docs/metrics.md. Its package is only unpacked: installed, it would start a
# server.
install_promtool() {
    ! command -v promtool >/dev/null || return 0
    (cd "$scratch" && fetch apt-get download -qq prometheus && dpkg -x prometheus_*.deb "$target/tools/prometheus")
    mkdir -p "$target/tools/bin"
    ln -sf ../prometheus/usr/bin/promtool "$target/tools/bin/promtool"
}

# fuse_tests: runs the tests that need a FUSE file system, which pass without checking anything where there is no bindfs.
fuse_tests() {
    install_package bindfs bindfs
    PILOTLIGHT_TEST_FUSE=1 cargo test --locked --quiet --test program -- case_161 case_179
}

# Builds the documentation as docs.rs does, for the systems that Cargo.toml names. DOCS_RS keeps crates from compiling
# Objective-C.
document() {
    rustup target add "$MACOS" "$WINDOWS"
    DOCS_RS=1 RUSTDOCFLAGS='-D warnings' cargo doc --locked --quiet --workspace --no-deps --lib --target x86_64-unknown-linux-gnu \
        --target "$MACOS" --target "$WINDOWS"
}

prepare
install_agents
PILOTLIGHT_TEST_OLD_COPILOT=$(agent_program "copilot-cli-${OLD_COPILOTS[0]}")
PILOTLIGHT_TEST_OLD_COPILOTS=
for release in "${OLD_COPILOTS[@]}"; do
    stage "copilot cli $release" install_agent "copilot-cli-$release" @github/copilot "$release"
    PILOTLIGHT_TEST_OLD_COPILOTS+=${PILOTLIGHT_TEST_OLD_COPILOTS:+:}$(agent_program "copilot-cli-$release")
done
stage 'opencode' install_agent opencode opencode-ai "$OPENCODE"
stage 'gemini cli' install_agent gemini @google/gemini-cli "$GEMINI"
PILOTLIGHT_TEST_OPENCODE=$(agent_program opencode)
PILOTLIGHT_TEST_GEMINI=$(agent_program gemini)
export PILOTLIGHT_TEST_OLD_COPILOT PILOTLIGHT_TEST_OLD_COPILOTS PILOTLIGHT_TEST_OPENCODE PILOTLIGHT_TEST_GEMINI
stage 'cargo-fuzz' install_cargo_program cargo-fuzz "$CARGO_FUZZ"
stage 'cargo-mutants' install_cargo_program cargo-mutants "$CARGO_MUTANTS"
stage 'cargo-deny' install_cargo_program cargo-deny "$CARGO_DENY"
stage 'dependencies' cargo deny check bans licenses sources
# Some tests break a network of their own. Without root they pass without checking anything.
((EUID != 0)) || stage 'iproute2' install_package ip iproute2
stage 'promtool' install_promtool
((EUID != 0)) || stage 'sshd' install_package sshd openssh-server
for which in '--lib --bins --tests' '--test e2e'; do
    # shellcheck disable=SC2086
    stage 'ignored tests' cargo test --locked --quiet --workspace $which -- --ignored --test-threads=2
done
stage 'rare stories' env PROPTEST_CASES=2048 cargo test --locked --quiet --test cases -- properties pieces edits places bounds
# What was shown in each situation in which a log is silent (tests/e2e/receiving).
cat "$target"/situations/*.txt
# Without benches, the pattern would match nothing, which is an error.
if compgen -G 'benches/*.rs' >/dev/null; then
    stage 'build benches' cargo bench --locked --quiet --bench '*' --no-run
    stage 'benches' cargo bench --locked --quiet --bench '*'
fi
stage 'documentation' document
stage 'crates' cargo package --locked --quiet --workspace --allow-dirty
stage 'packages for other systems' tests/elsewhere.sh
# desktop FILE: what this desktop's script can put up: its panel, its popups, or both.
desktop() {
    local name
    name=$(basename "$1" .sh)
    # On Cinnamon and Wayland, entries are only pressed (tests/visible/storm.sh).
    if grep -q '^put_up()' "$1" && [[ $name != cinnamon && $name != *-wayland ]]; then
        stage "desktop $name" tests/visible.sh "$name"
    fi
    if grep -q '^approve_button' "$1"; then
        stage "popup on $name" tests/visible/popup.sh "$name"
    else
        echo "== popup on $name  skipped: the positions of its buttons are unknown"
    fi
}

# Needs root: it installs desktops and their packages on this machine, 2 GB in all.
if ((EUID == 0)); then
    for file in tests/visible/desktops/*.sh; do
        desktop "$file"
    done
    stage 'twenty starts a desktop' tests/visible/starts.sh gnome mate xfce lxqt kde
    stage 'clicks while rows move' tests/visible/storm.sh xfce mate lxqt kde gnome cinnamon sway gnome-wayland kde-wayland
    stage 'first openings of submenus' tests/visible/submenus.sh kde
    stage 'clicks on popups' tests/visible/bodies.sh xfce mate lxqt kde gnome dunst mako swaync cinnamon
    stage 'the film in README' tests/visible/film.sh
    # Of what tests/visible/newer.sh knows, what fits in an hour.
    stage 'the desktops of debian 13' env STORM_PRESSES=10 STARTS=6 tests/visible/newer.sh
    stage 'an hour of changes on gnome' env STORM_MINUTES=60 STORM_RATES=1 VISIBLE_VARIANTS=dark tests/visible/storm.sh gnome
else
    echo '== desktops  skipped: they need root; or run tests/visible.sh DESKTOP, which says what to install'
fi
# Needs root: it installs the package on this machine, and removes it again.
if ((EUID == 0)); then
    stage 'debian package' tests/package.sh
else
    echo '== debian package  skipped: needs root'
fi
# Needs root: it mounts file systems, in mount namespaces of their own.
if ((EUID == 0)) && [[ -c /dev/fuse ]]; then
    stage 'homes on fuse' fuse_tests
else
    echo '== homes on fuse  skipped: needs root and /dev/fuse'
fi
stage 'mutants' mutants
for file in fuzz/fuzz_targets/*.rs; do
    name=$(basename "$file" .rs)
    stage "fuzz $name" fuzz "$name"
done

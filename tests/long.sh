#!/usr/bin/env bash
# What takes too long for every change, beside what tests/all.sh runs: the tests marked `#[ignore]`, the benches, a random part
# of the changes to the core that a test should notice, and the fuzz targets, ten minutes each; PILOTLIGHT_FUZZ_SECONDS gives
# them another time.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=all.sh
source "$(dirname "${BASH_SOURCE[0]}")/all.sh"

# What checks the dependencies (deny.toml).
readonly CARGO_DENY=0.20.2
# What builds and runs the fuzz targets.
readonly CARGO_FUZZ=0.13.2
# What changes the code here and there, to see whether a test notices; in so many parts, of which each run takes one.
readonly CARGO_MUTANTS=27.1.0 MUTANT_PARTS=60

# A program of cargo's, by its name and release, in the target folder.
install_cargo_program() {
    ! cargo "${1#cargo-}" --version 2>/dev/null | grep -qwF "$2" || return 0
    # Unoptimised: it runs for seconds, and would be built for minutes.
    fetch env CARGO_TARGET_DIR="$target/tools/build" \
        cargo install --locked --quiet --debug --root "$target/tools" --version "$2" "$1"
    rm -rf "$target/tools/build"
}

# fuzz TARGET: feeds it with anything, recorded sessions to begin with. What it finds is left in fuzz/artifacts. Without a
# sanitizer, because no code of ours is unsafe: so it needs no other toolchain, and runs twice as fast.
fuzz() {
    mkdir -p "fuzz/corpus/$1"
    CARGO_TARGET_DIR=$target/fuzz cargo fuzz run --sanitizer none "$1" "fuzz/corpus/$1" tests/traces -- \
        -max_total_time="${PILOTLIGHT_FUZZ_SECONDS:-600}" -max_len=65536 -timeout=20 -rss_limit_mb=1024 -print_final_stats=1 \
        -verbosity=1
}

# mutants: tries some of the changes to the core. Those that no test notices are listed, and are no failure: each wants a test, or
# makes no difference.
mutants() {
    local code=0
    CARGO_TARGET_DIR=$target/mutants cargo mutants --file 'src/core/**' --shard "$((RANDOM % MUTANT_PARTS))/$MUTANT_PARTS" \
        --output "$target" --cargo-arg=--locked --colors never -- --lib --test cases || code=$?
    # 2: some were not noticed; 3: some made a test hang, which is noticed.
    ((code == 0 || code == 2 || code == 3)) || return "$code"
}

# Releases of the Copilot CLI that make no hold beside their locks (docs/owners.md), and that the bridge was tried with
# (docs/bridge.md). The first stands for all where one is enough.
readonly OLD_COPILOTS=(1.0.86 1.0.83 1.0.92)

# old_copilot RELEASE: where its native program is.
old_copilot() {
    echo "${PILOTLIGHT_TEST_COPILOT/copilot-cli/copilot-cli-$1}"
}

# install_old_copilot RELEASE: installs it in the target folder.
install_old_copilot() {
    local folder=$target/copilot-cli-$1 program
    program=$(old_copilot "$1")
    if [[ ! -x $program ]] || ! grep -qs "\"version\": *\"$1\"" "$folder/node_modules/@github/copilot/package.json"; then
        mkdir -p "$folder"
        printf '{ "private": true, "dependencies": { "@github/copilot": "%s" } }\n' "$1" >"$folder/package.json"
        fetch npm_install "$folder" "$program" || true
    fi
    [[ -x $program ]] || fail "npm installed @github/copilot $1, but without its native program: $program is missing."
}

# The documentation, as docs.rs makes it for the systems that Cargo.toml names. DOCS_RS keeps crates from compiling Objective-C.
document() {
    DOCS_RS=1 RUSTDOCFLAGS='-D warnings' cargo doc --locked --quiet --no-deps --lib --target x86_64-unknown-linux-gnu \
        --target "$MACOS" --target "$WINDOWS"
}

prepare
PILOTLIGHT_TEST_OLD_COPILOT=$(old_copilot "${OLD_COPILOTS[0]}")
PILOTLIGHT_TEST_OLD_COPILOTS=
for release in "${OLD_COPILOTS[@]}"; do
    stage "copilot cli $release" install_old_copilot "$release"
    PILOTLIGHT_TEST_OLD_COPILOTS+=${PILOTLIGHT_TEST_OLD_COPILOTS:+:}$(old_copilot "$release")
done
export PILOTLIGHT_TEST_OLD_COPILOT PILOTLIGHT_TEST_OLD_COPILOTS
stage 'cargo-fuzz' install_cargo_program cargo-fuzz "$CARGO_FUZZ"
stage 'cargo-mutants' install_cargo_program cargo-mutants "$CARGO_MUTANTS"
stage 'cargo-deny' install_cargo_program cargo-deny "$CARGO_DENY"
stage 'dependencies' cargo deny check bans licenses sources
stage 'build tests' cargo test --locked --quiet --lib --bins --tests --no-run
loud_stage 'ignored tests' "${UNIGNORED[@]}" cargo test --locked --quiet --lib --bins --tests -- --ignored --test-threads=2
# Without benches, the pattern would match nothing and be an error.
if compgen -G 'benches/*.rs' >/dev/null; then
    stage 'build benches' cargo bench --locked --quiet --bench '*' --no-run
    loud_stage 'benches' cargo bench --locked --quiet --bench '*'
fi
stage 'documentation' document
stage 'crate' cargo package --locked --quiet --allow-dirty
stage 'packages for other systems' tests/elsewhere.sh
# Desktops and their packages are installed on this machine, 2 GB in all: for that it must be root.
for file in tests/visible/desktops/*.sh; do
    name=$(basename "$file" .sh)
    if ((EUID == 0)); then
        stage "desktop $name" tests/visible.sh "$name"
        if grep -q '^approve_button' "$file"; then
            stage "popup on $name" tests/visible/popup.sh "$name"
        else
            echo "== popup on $name  not tried: where its buttons are is not known"
        fi
    else
        echo "== desktop $name  not tried: that needs root, or run tests/visible.sh $name, which says what to install"
    fi
done
((EUID != 0)) || stage 'thirty starts on gnome' tests/visible/gnome-starts.sh
# It is installed on this machine, and removed again: for that it must be root.
if ((EUID == 0)); then
    stage 'debian package' tests/package.sh
else
    echo '== debian package  not tried: that needs root'
fi
loud_stage 'mutants' mutants
for file in fuzz/fuzz_targets/*.rs; do
    name=$(basename "$file" .rs)
    stage "fuzz $name" fuzz "$name"
done

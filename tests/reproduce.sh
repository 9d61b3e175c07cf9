#!/usr/bin/env bash
# Builds the last commit twice, as a release does, in two folders with homes of cargo of their own, and compares the
# archives byte for byte. No program may contain a path of the machine. Takes as long as two builds.
#
#   tests/reproduce.sh [TARGET [PROFILE]]       otherwise x86_64-unknown-linux-musl dist
set -euo pipefail
# Within $(…) too.
shopt -s inherit_errexit
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly TARGET=${1:-x86_64-unknown-linux-musl} PROFILE=${2:-dist}

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

# build FOLDER: builds in the folder, and prints the path of the archive.
build() {
    local crates=${CARGO_HOME:-$HOME/.cargo} program
    mkdir -p "$1/cargo/registry"
    # What is downloaded already need not be downloaded again.
    cp -r "$crates"/registry/{index,cache} "$1/cargo/registry"
    git clone --quiet . "$1/sources"
    export CARGO_HOME=$1/cargo CARGO_TARGET_DIR=$1/target
    program=$("$1/sources/packaging/program.sh" "$TARGET" "$PROFILE" --bin pilotlight)/pilotlight
    cp "$program" "$1/pilotlight"
    "$1/sources/packaging/linux/archive.sh" "$program" "$TARGET"
    # The second build needs no more of the disk than the first.
    rm -rf "$1/target" "$1/cargo"
}

# paths PROGRAM: prints the paths in it that the builds had, each as often as it occurs.
paths() {
    local folder arguments=()
    for folder in "$scratch" "$HOME/" "$(rustc --print sysroot)" "$PWD"; do
        arguments+=(-e "$folder")
    done
    strings --bytes=8 "$1" | grep --only-matching --fixed-strings "${arguments[@]}" || true
}

rustup target list --installed | grep -qx "$TARGET" || rustup target add "$TARGET"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/first" "$scratch/in/another/place"
first=$(umask 022 && build "$scratch/first")
second=$(umask 077 && build "$scratch/in/another/place")
for folder in first in/another/place; do
    found=$(paths "$scratch/$folder/pilotlight")
    [[ -z $found ]] || fail "$(wc -l <<<"$found") paths of this machine are in the program: $(sort -u <<<"$found")"
done
cmp "$scratch/first/pilotlight" "$scratch/in/another/place/pilotlight" || fail 'the programs differ'
cmp "$first" "$second" || fail 'the archives differ'
mkdir -p target/archive
cp "$first" target/archive
echo "the same twice, without a path of this machine: $(sha256sum "$PWD/target/archive/$(basename "$first")")"

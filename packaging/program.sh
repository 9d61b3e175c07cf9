#!/usr/bin/env bash
# Builds the program as a release contains it, and prints the folder of the result: without a path of this machine, and
# the same byte for byte in whatever folder it is built (tests/reproduce.sh).
#
#   packaging/program.sh TARGET [PROFILE [CARGO ARGUMENT...]]     for example: x86_64-unknown-linux-musl dist
#
# Runs on Linux, on macOS, and in Git's bash on Windows. Needs the target: rustup target add TARGET
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if (($# < 1)); then
    echo 'Usage: packaging/program.sh TARGET [PROFILE [CARGO ARGUMENT...]]' >&2
    exit 2
fi
triple=$1 profile=${2:-dist}
shift $(($# < 2 ? $# : 2))
target=${CARGO_TARGET_DIR:-target}
[[ $target == /* || $target == ?:* ]] || target=$(pwd -P)/$target
flags=()

# remap FOLDER NAME: paths below the folder are written as if it had this name. Of two that fit, rustc takes the later.
remap() {
    local folder=$1
    [[ -z $(command -v cygpath) ]] || folder=$(cygpath -w "$folder")
    flags+=("--remap-path-prefix=$folder=$2")
}

# The sources of all crates must be there before their folders can be named.
cargo fetch --locked --quiet --target "$triple"
home=${CARGO_HOME:-$HOME/.cargo}
remap "$home" /cargo
for folder in "$home"/registry/src/*; do
    remap "$folder" /crates
done
remap "$(pwd -P)" /pilotlight
remap "$target" /target
# With the component rust-src, the standard library's code is there too.
remap "$(rustc --print sysroot)/lib/rustlib/src/rust" "/rustc/$(rustc -vV | sed -n 's/^commit-hash: //p')"
case $triple in
# Rust brings what it links, so it needs no compiler of that system.
*-linux-musl) flags+=(-Clinker=rust-lld) ;;
# With Microsoft's runtime in it, which not every Windows has; and without the time of the build.
*-windows-msvc) flags+=(-Ctarget-feature=+crt-static -Clink-arg=/Brepro) ;;
esac
joined=$(printf '%s\x1f' "${flags[@]}")
# Its output is shown, because it takes minutes.
CARGO_ENCODED_RUSTFLAGS=${joined%$'\x1f'} CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=$target \
    cargo build --locked --profile "$profile" --target "$triple" "$@" >&2
echo "$target/$triple/${profile/#dev/debug}"

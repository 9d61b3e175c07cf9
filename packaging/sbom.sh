#!/usr/bin/env bash
# Makes the bill of materials of a release: what each target's program is built from, in the CycloneDX format. Prints the
# path: target/archive/pilotlight-VERSION-sbom.tar.gz. Installs cargo-cyclonedx into the target folder if it is missing. The
# same sources make the same bill in any folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Pinned: another version may name its files differently.
readonly CYCLONEDX=0.5.9
readonly TARGETS=(x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu x86_64-unknown-linux-musl aarch64-unknown-linux-musl
    x86_64-apple-darwin aarch64-apple-darwin x86_64-pc-windows-msvc)

target=${CARGO_TARGET_DIR:-$PWD/target}
tools=$target/tools
if ! "$tools/bin/cargo-cyclonedx" cyclonedx --version 2>/dev/null | grep -qwF "$CYCLONEDX"; then
    CARGO_TARGET_DIR=$tools/build cargo install --quiet --locked --debug --root "$tools" --version "$CYCLONEDX" cargo-cyclonedx
    rm -rf "$tools/build"
fi
source packaging/release.sh
name=pilotlight-$version-sbom
# With a date, it leaves out the random number of each document: the same sources make the same files.
export SOURCE_DATE_EPOCH=$stamp
rm -rf "target/archive/${name:?}"
mkdir -p "target/archive/$name"
for triple in "${TARGETS[@]}"; do
    # It writes beside the Cargo.toml of each crate, and nowhere else.
    "$tools/bin/cargo-cyclonedx" cyclonedx --quiet --format json --no-build-deps --target "$triple" --override-filename "sbom-$triple"
    rm crates/*/"sbom-$triple.json"
    mv "sbom-$triple.json" "target/archive/$name/$triple.cdx.json"
    cargo tree --locked --quiet --edges normal --target "$triple" --prefix none --format '{p}' |
        python3 packaging/sbom.py "target/archive/$name/$triple.cdx.json"
done
pack "$name"

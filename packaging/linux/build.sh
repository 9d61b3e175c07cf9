#!/usr/bin/env bash
# Builds the Debian package, and prints its path.
#
#   packaging/linux/build.sh                    as in a release (packaging/program.sh)
#   packaging/linux/build.sh --profile dev      faster, but larger; --revision N: a later package of the same version
#
# Needs dpkg-dev; installs cargo-deb into the target folder if it is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Pinned: another version may lay out the package differently.
readonly CARGO_DEB=3.8.0

profile=dist revision=1
while (($# > 0)); do
    case $1 in
    --profile) profile=$2 ;;
    --revision) revision=$2 ;;
    *)
        printf 'Unknown option %s: it takes --profile NAME and --revision NUMBER.\n' "$1" >&2
        exit 2
        ;;
    esac
    shift 2
done
target=${CARGO_TARGET_DIR:-$PWD/target}
tools=$target/tools
if [[ -z $(command -v dpkg-shlibdeps) ]]; then
    echo 'dpkg-shlibdeps is missing. Install it with: sudo apt-get install --no-install-recommends dpkg-dev' >&2
    exit 1
fi
if [[ $("$tools/bin/cargo-deb" --version 2>/dev/null) != "$CARGO_DEB" ]]; then
    # Unoptimised: it runs for seconds, and an optimised build takes minutes.
    CARGO_TARGET_DIR=$tools/build cargo install --quiet --locked --debug --root "$tools" --version "$CARGO_DEB" \
        --no-default-features --features lzma cargo-deb
    rm -rf "$tools/build"
fi

# Cargo.toml names `target/package`, so the files are made there, wherever the target folder is.
made=target/package
rm -rf "$made"
mkdir -p "$made"
host=$(rustc -vV | sed -n 's/^host: //p')
# A build for development keeps its paths, and so what the tests have built of it already.
if [[ $profile == dev ]]; then
    cargo build --locked --bin pilotlight >&2
    built=$target/debug/pilotlight places=()
else
    built=$(packaging/program.sh "$host" "$profile" --bin pilotlight)/pilotlight places=(--target "$host")
fi
"$built" man --dir "$made/man"
mkdir "$made/completions"
"$built" completions bash >"$made/completions/pilotlight.bash"
"$built" completions zsh >"$made/completions/_pilotlight"
"$built" completions fish >"$made/completions/pilotlight.fish"

source packaging/release.sh
export SOURCE_DATE_EPOCH=$stamp
packaging/linux/metainfo.sh >"$made/io.github.pilotlight.pilotlight.metainfo.xml"

# The newest section of the changelog, in Debian's format.
maintainer=$(sed -nE 's/^maintainer = "(.*)"$/\1/p' Cargo.toml)
{
    printf 'pilotlight (%s-%s) unstable; urgency=medium\n\n' "$version" "$revision"
    # Joins the lines of each entry, and folds them at Debian's shorter width.
    awk '/^## / { if (seen++) exit; next } !seen { next } /^- / { if (entry) print entry; entry = substr($0, 3); next }
        /^  / { entry = entry " " substr($0, 3) } END { if (entry) print entry }' CHANGELOG.md |
        fold -s -w 74 | awk 'BEGIN { head = 1 } { print (head ? "  * " : "    ") $0; head = !/ $/ }' | sed 's/ *$//'
    printf '\n -- %s  %s\n' "$maintainer" "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")"
} >"$made/changelog"

"$tools/bin/cargo-deb" deb --no-build --locked --quiet --profile "$profile" "${places[@]}" --strip --deb-revision "$revision" \
    --output "$made/pilotlight_$version-${revision}_$(dpkg --print-architecture).deb" >/dev/null
echo "$PWD/$made/pilotlight_$version-${revision}_$(dpkg --print-architecture).deb"

